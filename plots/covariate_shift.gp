# The inputs of a hidden unit during training, the layer's drift, and the loss along the gradient,
# by norm. Data: build/examples/covariate_shift.

load 'plots/style.gp'
out = given('plots/covariate_shift'); data = out.'.dat'

array names[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "BatchNorm and noise"]
array drift[5]
array ends[5]
low = 0; high = 0; most = 0
do for [i = 1:5] {
    stats data index "a unit, ".names[i] using "p15" nooutput
    low = STATS_min < low ? STATS_min : low
    stats data index "a unit, ".names[i] using "p85" nooutput
    high = STATS_max > high ? STATS_max : high
    stats data index names[i] using (epochs = column("epoch"), drift[i] = column("drift"), seeds = column("seeds"), \
        column("drift_high")) nooutput
    most = STATS_max > most ? STATS_max : most
}

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 480, 0.23, 0.87)
    set label 1 sprintf("All at the rate that is best without a norm. A unit: 15th, 50th and 85th percentile of its input, first seed. Line: median of %d seeds; band: their middle half.\n", seeds) \
        . what_of(data) at screen 0.05,0.06 tc rgb faint font fine(kind)
    set xlabel "epoch" offset 0,0.4
    set xrange [0:epochs]
    set ylabel "input"
    eval panel(0.06, 0.265, "The input of a unit")
    set yrange [floor(low):ceil(high)]
    do for [i = 1:2] { set label 10 + i names[i] at graph 0.06, graph 1.02 - 0.07 * i tc ls 10 + i point ls i offset 1,0 }
    plot for [i = 1:2] data index "a unit, ".names[i] using "epoch":"p15":"p85" with filledcurves ls i fs transparent solid 0.2 noborder, \
         for [i = 1:2] data index "a unit, ".names[i] using "epoch":"p50" with linespoints ls i @MARKED
    unset label 1

    set ylabel "mean move of the percentiles"
    eval panel(0.345, 0.50, "Drift of the inputs")
    set yrange [0:1.05 * most]
    gap = 0.07
    do for [i = 1:5] { ends[i] = drift[i] / (1.05 * most) }
    eval SPREAD
    do for [i = 1:5] { set label 10 + i "".(i == 5 ? "BatchNorm, noise" : names[i]) at graph 1.03, graph ends[i] tc ls 10 + i }
    plot for [i = 1:5] data index names[i] using "epoch":"drift_low":"drift_high" with filledcurves ls i @BAND, \
         for [i = 1:5] data index names[i] using "epoch":"drift" with linespoints ls i @MARKED

    set ylabel "range of the loss"
    eval panel(0.69, 0.85, "Range of the loss along the gradient")
    set logscale y
    set format y powers
    set yrange [*:*]
    do for [i = 1:5] { set label 10 + i "".(i == 5 ? "BatchNorm, noise" : names[i]) at graph 1.04, graph 0.98 - 0.08 * i tc ls 10 + i point ls i offset 1,0 }
    set xrange [0:460]; set xtics 200
    set xlabel "step"
    set xtics 200
    plot for [i = 1:5] data index "range, ".names[i] using "step":"range_low":"range_high" with filledcurves ls i @BAND, \
         for [i = 1:5] data index "range, ".names[i] using "step":"range" with linespoints ls i @MARKED
    unset logscale y
    set format y "%g"
    set xtics auto
}
