# Loss and gradient along the gradient, through training, without a norm, with BatchNorm, and with
# noise after it, from what build/examples/landscape wrote:
#
#     gnuplot plots/landscape.gp               plots/landscape.dat -> .svg and .png
#     gnuplot -c plots/landscape.gp PREFIX     the same for another PREFIX.dat

load 'plots/style.gp'
out  = (exists("ARG1") && strlen(ARG1)) ? ARG1 : 'plots/landscape'
data = out . '.dat'

array name[3] = ["no norm", "BatchNorm", "BatchNorm and noise"]
array label[3] = ["no norm", "BatchNorm", "BatchNorm\nand noise"]
style(k) = k < 3 ? k : 5
array middle[3]
do for [k = 1:3] {
    stats data index name[k] using (steps = column("step"), seeds = column("seeds"), \
        rate = column("rate"), column("loss_high")) nooutput
    stats data index name[k] using "change" nooutput
    middle[k] = STATS_median
}

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500)
    set multiplot
    set label 1 sprintf("Points from half to four times the learning rate %g. ", rate).sprintf("Medians of %d seeds; ", seeds). \
        "bands on the right: lowest to highest seed." \
        at screen 0.072,0.055 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.072,0.018 tc rgb faint font fine(kind)
    set logscale y
    set format y powers
    set xlabel "step" offset 0,0.4
    set xrange [0:steps]

    set lmargin at screen 0.072; set rmargin at screen 0.43
    set bmargin at screen 0.22; set tmargin at screen 0.88
    eval headline("Loss along the gradient: its range")
    set ylabel "cross-entropy"
    set yrange [0.001:30]
    do for [k = 1:3] { set label 10 + k name[k] at graph 0.03,0.33 - 0.08 * k tc ls 10 + style(k) }
    plot for [k = 1:3] data index name[k] using "step":"loss_low":"loss_high" \
             with filledcurves ls style(k) fs transparent solid (k == 1 ? 0.2 : 0.55) noborder
    do for [k = 1:3] { unset label 10 + k }
    unset label 1; unset label 2

    set lmargin at screen 0.53; set rmargin at screen 0.87
    eval headline("Farthest change of the gradient there")
    set ylabel "norm of the difference"
    set yrange [0.1:300]
    do for [k = 1:3] {
        set label 10 + k label[k] at steps * 1.02,middle[k] * (k == 3 ? 1.5 : 0.8) tc ls 10 + style(k)
    }
    plot for [k = 1:3] data index name[k] using "step":"change_low":"change_high" \
             with filledcurves ls style(k) @BAND, \
         for [k = 1:3] data index name[k] using "step":"change" with linespoints ls style(k) @MARKED
    do for [k = 11:13] { unset label k }
    unset multiplot
    unset output
}
