# Digits drawn by a conditional variational autoencoder, a row for each label, and its loss. Data:
# build/examples/vae.

load 'plots/style.gp'
out = given('plots/vae'); data = out.'.dat'

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 620, 0.15, 0.9)
    set label 1 what_of(data) at screen 0.07,0.035 tc rgb faint font fine(kind)

    eval panel(0.05, 0.52, "Drawn from one code a column, given the label of the row")
    set palette gray negative
    unset colorbox; unset border; unset grid
    unset xtics; unset ytics
    do for [i = 0:9] { set label 10 + i sprintf("%d", i) at graph -0.03,first 10 * i + 4.5 right tc rgb ink }
    set xrange [-0.5:95.5]
    set yrange [99.5:-0.5]
    plot out.'_images.dat' matrix with image
    unset label 1
    do for [i = 0:9] { unset label 10 + i }

    set lmargin at screen 0.61; set rmargin at screen 0.98
    set border 3 lw 1 lc rgb ink
    set grid back ls 9
    set xtics nomirror out scale 0.6 tc rgb ink; set ytics nomirror out scale 0.6 tc rgb ink
    eval headline("Nats an image: its pixels and its code")
    set xlabel "step" offset 0,0.4
    set ylabel "loss"
    set xrange [0:*]
    set yrange [*:40]
    plot data index 0 using "step":"loss" with lines ls 3 lw 1
    unset xlabel; unset ylabel
}
