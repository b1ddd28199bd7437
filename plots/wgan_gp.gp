# Points drawn by a generator, the points that it learned from, and the critic's estimate of the
# distance between them. Data: build/examples/wgan_gp.

load 'plots/style.gp'
out = given('plots/wgan_gp'); data = out.'.dat'

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 560, 0.18, 0.89)
    set label 1 what_of(data) at screen 0.07,0.035 tc rgb faint font fine(kind) noenhanced

    eval panel(0.07, 0.45, "Points it was shown, and points the generator draws")
    set xlabel "x" offset 0,0.4
    set ylabel "y"
    set xrange [-1.5:1.5]
    set yrange [-1.5:1.5]
    set key at graph 0.99,0.99
    plot data index "real" using "x":"y" with points pt 7 ps 0.5 lc rgb "#b5b5b5" title "shown", \
         data index "drawn" using "x":"y" with points ls 3 pt 6 ps 0.5 lw 1 title "drawn"
    unset label 1; unset key

    eval panel(0.55, 0.98, "The critic's estimate of their distance")
    set xlabel "step of the generator"
    set ylabel "Wasserstein distance"
    set xrange [0:*]
    set yrange [0:*]
    plot data index 0 using "step":"distance" with lines ls 3 lw 1
}
