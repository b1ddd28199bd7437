# Loss and gradient along the gradient during training, without a norm, with three norms, and with
# noise after BatchNorm, from the data of build/examples/landscape:
#
#     gnuplot plots/landscape.gp               plots/landscape.dat -> .svg
#     gnuplot -c plots/landscape.gp PREFIX     the same for another PREFIX.dat

load 'plots/style.gp'
out = given('plots/landscape'); data = out.'.dat'

array name[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "BatchNorm and noise"]
array last[5]
array ends[5]
# The decades drawn: of the loss's range in the left panel, of the medians in the right one.
low = 1e300; high = 0; least = 1e300; most = 0
do for [k in "1 2 5"] {
    stats data index name[k + 0] using "lowest" nooutput
    low = STATS_min < low ? STATS_min : low
    stats data index name[k + 0] using "highest" nooutput
    high = STATS_max > high ? STATS_max : high
}
do for [k = 1:5] {
    stats data index name[k] using (steps = column("step"), seeds = column("seeds"), \
        rate = column("rate"), last[k] = column("change"), column("change")) nooutput
    least = STATS_lo_quartile < least ? STATS_lo_quartile : least
    most = STATS_max > most ? STATS_max : most
}
# The height of a curve's end: the median of its last fifth.
do for [k = 1:5] {
    stats data index name[k] using (column("step") >= 0.8 * steps ? column("change") : NaN) nooutput
    last[k] = STATS_median
}
bottom = least / 12
top = most * 1.5

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 520, 0.22, 0.88)
    set label 1 sprintf("Points from half to four times the learning rate, %g for all. Medians of %d seeds; ", rate, seeds). \
        "band on the right: middle half of the seeds." \
        at screen 0.072,0.055 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.072,0.018 tc rgb faint font fine(kind)
    set logscale y
    set format y powers
    set xlabel "step" offset 0,0.4
    set xrange [0:steps]

    set lmargin at screen 0.072; set rmargin at screen 0.43
    eval headline("Loss along the gradient: lowest to highest")
    set ylabel "cross-entropy"
    set yrange [low / 1.3:high * 1.3]
    do for [n = 1:3] {
        k = word("1 2 5", n) + 0
        set label 10 + n name[k] at graph 0.03, graph 0.33 - 0.08 * n tc ls 10 + k
    }
    plot for [k in "1 2 5"] data index name[k + 0] using "step":"lowest":"highest" \
             with filledcurves ls (k + 0) fs transparent solid (k eq "1" ? 0.2 : 0.55) noborder
    unset label 1; unset label 2

    eval panel(0.53, 0.87, "Farthest change of the gradient there")
    set ylabel "norm of the difference"
    set yrange [bottom:top]
    gap = 0.075
    do for [k = 1:5] { ends[k] = log10(last[k] / bottom) / log10(top / bottom) }
    eval SPREAD
    do for [k = 1:5] { set label 10 + k name[k] at graph 1.02, graph ends[k] tc ls 10 + k font fine(kind) }
    plot for [k = 1:5] data index name[k] using "step":"change_low":"change_high" \
             with filledcurves ls k @BAND, \
         for [k = 1:5] data index name[k] using "step":"change" with linespoints ls k @MARKED
}
