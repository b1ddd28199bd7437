# The noise of a batch's gradient by batch size, and the distance of its mean from the gradient of
# all data, by norm. Data: build/examples/noise.

load 'plots/style.gp'
out = given('plots/noise'); data = out.'.dat'

array blocks[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "BatchNorm, ghosts of 8"]
array styles[5] = [1, 2, 3, 4, 2]
array dashes[5] = [1, 1, 1, 1, 3]
seeds = 0
least = 1e9
most = 0.0
do for [i = 1:5] {
    stats data index blocks[i] using (seeds = column("seeds"), column("variance_low")) nooutput
    least = STATS_min < least ? STATS_min : least
    stats data index blocks[i] using "variance_high" nooutput
    most = STATS_max > most ? STATS_max : most
}

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half.   ", seeds).what_of(data) \
        at screen 0.065,0.035 tc rgb faint font fine(kind)
    set logscale x 2
    set xrange [3.7:139]
    set xtics (4, 8, 16, 32, 64, 128)
    set xlabel "batch size" offset 0,0.4
    eval panel(0.065, 0.47, "Noise of the gradient, times the batch size")
    set logscale y 10
    set yrange [0.8 * least:1.6 * most]
    set ylabel "variance × size / |gradient of all|²" offset 1.2,0
    set label 10 "in ghosts of 8" at 33,570 left tc ls 12
    do for [i = 1:4] {
        set label 10 + i blocks[i] at graph 0.70, graph 0.42 - 0.068 * i tc ls 10 + i point ls i offset 1,0
    }
    plot for [i = 1:5] data index blocks[i] using "size":"variance_low":"variance_high" with filledcurves ls styles[i] @BAND, \
         for [i = 1:5] data index blocks[i] using "size":"variance" with linespoints ls styles[i] dt dashes[i]
    unset logscale y
    eval panel(0.56, 0.965, "The mean gradient off that of all data")
    do for [i = 1:4] { set label 10 + i blocks[i] at graph 0.70, graph 1.03 - 0.068 * i tc ls 10 + i point ls i offset 1,0 }
    set yrange [0:1.25]
    set ylabel "share of its length"
    plot for [i = 1:5] data index blocks[i] using "size":"off_low":"off_high" with filledcurves ls styles[i] @BAND, \
         for [i = 1:5] data index blocks[i] using "size":"off" with linespoints ls styles[i] dt dashes[i]
    unset logscale x
    set xtics auto
}
