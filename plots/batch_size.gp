# Error on new images by batch size, for two networks and three norms. Data:
# build/examples/batch_size.

load 'plots/style.gp'
out = given('plots/batch_size'); data = out.'.dat'

array names[3] = ["BatchNorm", "GroupNorm", "LayerNorm"]
array styles[3] = [2, 5, 3]
array networks[2] = ["fully connected", "convolutional"]
block(k, i) = networks[k].", ".names[i]
array last[8]   # the right ends of a panel's curves: three norms, and BatchNorm in train mode
bottom = 100
top = 1
do for [k = 1:2] {
    do for [i = 1:3] {
        stats data index block(k, i) using (last[(k - 1) * 4 + i] = column("eval"), \
            seeds = column("seeds"), column("eval_low")) nooutput
        bottom = STATS_min > 0 && STATS_min < bottom ? STATS_min : bottom
        stats data index block(k, i) using "eval_high" nooutput
        top = STATS_max > top ? STATS_max : top
    }
    stats data index block(k, 1) using (last[k * 4] = column("train"), column("train_high")) nooutput
    top = STATS_max > top ? STATS_max : top
}
bottom = 0.7 * bottom
top = 1.3 * top
place(error) = log((error > 0 ? error : bottom) / bottom) / log(top / bottom)
array ends[4]
gap = 0.062

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.21, 0.88)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half.\n", seeds).what_of(data) \
        at screen 0.065,0.055 tc rgb faint font fine(kind)
    set logscale xy
    set xrange [1.9:34]
    set yrange [bottom:top]
    set format "%g"
    set xtics (2, 4, 8, 16, 32)
    set ytics (0.5, 1, 2, 3, 5, 10, 20, 50)
    set xlabel "batch size" offset 0,0.4
    do for [k = 1:2] {
        eval panel((k == 1 ? 0.065 : 0.56), (k == 1 ? 0.345 : 0.835), k == 1 ? "Fully connected: a value a sample" : "Convolutional: 16 or 64 values a sample")
        set ylabel (k == 1 ? "wrong answers on new images (%)" : "")
        do for [i = 1:4] { ends[i] = place(last[(k - 1) * 4 + i]) }
        eval SPREAD
        do for [i = 1:3] { set label 10 + i names[i] at graph 1.03, graph ends[i] tc ls 10 + styles[i] }
        set label 14 "BatchNorm, train mode" at graph 1.03, graph ends[4] tc ls 12
        plot for [i = 1:3] data index block(k, i) using "batch":"eval_low":"eval_high" \
                 with filledcurves ls styles[i] @BAND, \
             data index block(k, 1) using "batch":"train" with lines ls 2 dt 2, \
             for [i = 1:3] data index block(k, i) using "batch":"eval" with linespoints ls styles[i]
    }
}
