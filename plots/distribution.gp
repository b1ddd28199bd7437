# A layer's activations before and after each norm, from the data of build/examples/distribution:
#
#     gnuplot plots/distribution.gp               plots/distribution.dat -> .svg
#     gnuplot -c plots/distribution.gp PREFIX     the same for another PREFIX.dat

load 'plots/style.gp'
out = given('plots/distribution'); data = out.'.dat'

array names[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array seen[4]  = ["", "Each feature at mean 0, deviation 1", "Each image at mean 0, deviation 1", \
                  "Each image at mean square 1"]
first(k) = 0.058 + 0.322 * (k - 2)
last(k)  = first(k) + 0.275
small = "#a8a8a8"

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 760, 0.60, 0.93)
    eval "set tics nomirror font '" . fine(kind) . "'"
    set label 1 "Each norm new, gamma 1, beta 0. Above: all values of all seeds; below: the first seed.\n" . what_of(data) \
        at screen 0.02,0.036 tc rgb faint font fine(kind)

    # ---- Histograms ----
    set xrange [-4:6]
    set yrange [0:0.6]
    set ytics 0.2
    set xtics 2
    set xlabel "activation" offset 0,0.5
    do for [k = 2:4] {
        eval panel(first(k), last(k), names[k])
        set ylabel k == 2 ? "density" : "" offset 1,0
        stats data index names[1] using (m0 = column("mean"), d0 = column("deviation"), 0) nooutput
        stats data index names[k] using (m1 = column("mean"), d1 = column("deviation"), 0) nooutput
        set label 2 sprintf("before: %.2f ± %.2f", m0, d0) at graph 0.98,0.92 right tc rgb faint
        set label 3 sprintf("after: %.2f ± %.2f", abs(m1) < 0.005 ? 0 : m1, d1) \
            at graph 0.98,0.82 right tc ls 10 + k
        plot data index names[1] using "x":"density" with boxes fs solid 0.25 noborder lc rgb faint, \
             data index names[k] using "x":"density" with histeps ls k
    }

    # ---- Mean and deviation of every image and of every feature ----
    set tmargin at screen 0.46; set bmargin at screen 0.13
    set xrange [-2:2]
    set yrange [0:2]
    set ytics 0.5
    set xtics 1
    set xlabel "mean"
    set parametric
    set trange [0:pi]
    do for [k = 2:4] {
        eval panel(first(k), last(k), seen[k])
        set ylabel k == 2 ? "deviation" : "" offset 1,0
        what = k == 2 ? "features" : "images"
        other = k == 2 ? "images" : "features"
        if (k == 2) {
            set label 2 "all features" at first -0.16,1.0 right tc ls 12
            set label 3 "images, before" at first 0.5,1.9 left tc rgb faint
            set label 4 "images, after" at first -0.12,0.35 right tc rgb ink
        }
        if (k == 3) {
            set label 2 "all images" at first -0.16,1.0 right tc rgb ink
            set label 4 "features, after" at first -1.9,0.45 left tc ls 13
        }
        if (k == 4) {
            set label 2 "all images" at first 0.35,1.08 right tc rgb ink
            set label 4 "features, after" at first -0.25,0.14 left tc ls 14
        }
        plot data index "no norm images" using 1:2 with points pt 7 ps 0.25 lc rgb small, \
             k == 4 ? cos(t) : NaN, sin(t) with lines ls 8, \
             data index names[k]." ".other using 1:2 with points pt (k == 2 ? 7 : 6) \
                 ps (k == 2 ? 0.35 : 0.6) lw 1 lc rgb k == 2 ? ink : word(palette, k), \
             data index names[k]." ".what using 1:2 with points pt 7 ps 0.4 lc rgb ink, \
             data index names[k]." ".what every ::0::0 using (k == 4 ? NaN : 0):(1) \
                 with points pt 6 ps 2.4 lw 2.2 lc rgb k == 2 ? word(palette, k) : ink
    }
    unset parametric
}
