# The loss by epoch with halves of BatchNorm and of LayerNorm. Data: build/examples/halves.

load 'plots/style.gp'
out = given('plots/halves'); data = out.'.dat'

array parts[3] = ["centring", "scaling", "both"]
array over[2] = ["batch", "features"]
array titles[2] = ["Over the batch: parts of BatchNorm", "Over the features: parts of LayerNorm"]
array styles[2] = [2, 3]
array dashes[3] = [3, 2, 1]
array signs[3] = [6, 1, 7]
seeds = 0
epochs = 1
least = 1e9
do for [k = 1:2] { do for [p = 1:3] {
    stats data index over[k].", ".parts[p] using (seeds = column("seeds"), epochs = column("epoch"), column("loss_low")) nooutput
    least = STATS_min < least ? STATS_min : least
} }

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half. Each at its own rate.   ", seeds).what_of(data) \
        at screen 0.065,0.035 tc rgb faint font fine(kind)
    set logscale y
    set yrange [0.8 * least:2.6]
    set ytics (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)
    set xrange [0.9:epochs + 0.1]
    set xtics 1
    set xlabel "epoch" offset 0,0.4
    do for [k = 1:2] {
        eval panel((k == 1 ? 0.09 : 0.56), (k == 1 ? 0.47 : 0.965), titles[k])
        set ylabel "training loss"
        set label 11 "no norm" at graph 0.68, graph 0.96 tc ls 11 point ls 1 offset 1,0
        do for [p = 1:3] {
            set label 11 + p parts[p].(p < 3 ? " alone" : "") at graph 0.68, graph 0.96 - 0.068 * p tc ls 10 + styles[k] \
                point ls styles[k] pt signs[p] offset 1,0
        }
        if (k == 2) { set label 15 "with gamma, beta" at graph 0.68, graph 0.69 tc ls 14 point ls 4 offset 1,0 }
        plot for [p = 1:3] data index over[k].", ".parts[p] using "epoch":"loss_low":"loss_high" \
                 with filledcurves ls styles[k] @BAND, \
             data index "no norm" using "epoch":"loss" with linespoints ls 1, \
             for [p = 1:3] data index over[k].", ".parts[p] using "epoch":"loss" \
                 with linespoints ls styles[k] pt signs[p] dt dashes[p], \
             data index "LayerNorm" using "epoch":(k == 2 ? column("loss") : NaN) with linespoints ls 4
    }
}
