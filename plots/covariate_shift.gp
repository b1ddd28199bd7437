# The inputs of a hidden unit during training, from the data of build/examples/covariate_shift:
#
#     gnuplot plots/covariate_shift.gp               plots/covariate_shift.dat -> .svg
#     gnuplot -c plots/covariate_shift.gp PREFIX     the same for another PREFIX.dat

load 'plots/style.gp'
out = given('plots/covariate_shift'); data = out.'.dat'

array norms[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array titles[4] = ["No norm", "BatchNorm", "LayerNorm", "RMSNorm"]
unit(i) = "a unit, " . norms[i]

# The range of the units, and the last values of the curves below, for the labels.
low = 0; high = 0; epochs = 1; most = 0
array drift[4]
array change[4]
array ends[4]
do for [i = 1:4] {
    stats data index unit(i) using "p15" nooutput
    low = STATS_min < low ? STATS_min : low
    stats data index unit(i) using "p85" nooutput
    high = STATS_max > high ? STATS_max : high
    stats data index norms[i] using (epochs = column("epoch"), drift[i] = column("drift"), \
        change[i] = column("change"), column("drift_high")) nooutput
    most = STATS_max > most ? STATS_max : most
}

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 700, 0.59, 0.925)
    eval "set tics font '" . fine(kind) . "'"
    set label 1 "All at the rate that is best without norm; dashed: at each norm its own best rate. Above: one unit of the first seed. Below: median; band: middle half of the seeds." \
        at screen 0.02,0.042 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.02,0.016 tc rgb faint font fine(kind)

    # ---- A unit's input: the percentiles that Ioffe & Szegedy draw ----
    set xrange [0:epochs]
    set yrange [floor(low):ceil(high)]
    set xlabel "epoch" offset 0,0.5 font fine(kind)
    do for [i = 1:4] {
        eval panel(0.055 + 0.2415 * (i - 1), 0.235 + 0.2415 * (i - 1), titles[i])
        set ylabel i == 1 ? "input of a sigmoid" : "" offset 1,0 font fine(kind)
        do for [p in "15 50 85"] {
            stats data index unit(i) using (end = column("p".p), 0) nooutput
            set label 10 + p p." %" at epochs * 1.02, first end tc ls 10 + i font fine(kind)
        }
        plot data index unit(i) using "epoch":"p15":"p85" with filledcurves ls i @BAND, \
             for [p in "15 85"] data index unit(i) using "epoch":(column("p".p)) with lines ls i lw 1.2, \
             data index unit(i) using "epoch":"p50" with lines ls i
    }

    # ---- The whole layer ----
    set tmargin at screen 0.45; set bmargin at screen 0.135
    gap = 0.085
    eval panel(0.055, 0.40, "How far the layer's inputs have moved")
    set ylabel "drift, in the sigmoids' units" offset 1,0 font fine(kind)
    set yrange [0:most * 1.05]
    do for [i = 1:4] { ends[i] = drift[i] / (most * 1.05) }
    eval SPREAD
    do for [i = 1:4] { set label 10 + i norms[i] at graph 1.02, graph ends[i] tc ls 10 + i font fine(kind) }
    plot for [i = 1:4] data index norms[i] using "epoch":"drift_low":"drift_high" \
             with filledcurves ls i @BAND, \
         for [i = 1:4] data index norms[i] using "epoch":"drift" with linespoints ls i @MARKED, \
         for [i = 2:4] data index norms[i].", own rate" using "epoch":"drift" with lines ls i lw 1.6 dt 2

    eval panel(0.56, 0.905, "How a step of earlier layers changes the gradient")
    set ylabel "change / size of the gradient" offset 1,0 font fine(kind)
    set yrange [0:1.5]
    do for [i = 1:4] { ends[i] = change[i] / 1.5 }
    eval SPREAD
    do for [i = 1:4] { set label 10 + i norms[i] at graph 1.02, graph ends[i] tc ls 10 + i font fine(kind) }
    plot for [i = 1:4] data index norms[i] using "epoch":"change_low":"change_high" \
             with filledcurves ls i @BAND, \
         for [i = 1:4] data index norms[i] using "epoch":"change" with linespoints ls i @MARKED
}
