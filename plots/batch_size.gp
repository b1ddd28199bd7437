# Error on new images by batch size; noise of the gradient by batch size; accuracy by the number of
# workers. Data: build/examples/batch_size.

load 'plots/style.gp'
out = given('plots/batch_size'); data = out.'.dat'

array settings[4] = ["fully connected, BatchNorm", "fully connected, LayerNorm", \
    "convolutional, BatchNorm", "convolutional, GroupNorm"]
array shown[4] = ["BatchNorm", "LayerNorm", "BatchNorm, conv.", "GroupNorm, conv."]
array styles[4] = [2, 3, 2, 5]
array dashes[4] = [1, 1, 2, 2]
array kinds[3] = ["noise, BatchNorm", "noise, LayerNorm", "noise, BatchNorm, ghosts of 8"]
array kind_style[3] = [2, 3, 2]
array kind_dash[3] = [1, 1, 3]
array shards[2] = ["sorted shards", "random shards"]
array ends[4]
gap = 0.07
do for [i = 1:4] {
    stats data index settings[i] using (column("batch") == 2 ? (ends[i] = log(column("error") / 0.8) / log(100.0), 1) : NaN) nooutput
}
eval SPREAD
stats data index settings[1] using (seeds = column("seeds"), 1) nooutput

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half.   ", seeds).what_of(data) \
        at screen 0.055,0.03 tc rgb faint font fine(kind)
    set logscale x 2
    set logscale y 10
    set xlabel "batch size" offset 0,0.4
    set lmargin at screen 0.07; set rmargin at screen 0.235
    set ylabel "wrong answers (%)"
    eval headline("Wrong on new images, %")
    set xrange [34:1.9]
    set xtics (2, 8, 32)
    set yrange [0.8:80]
    set ytics (1, 2, 5, 10, 20, 50)
    do for [i = 1:4] { set label 10 + i shown[i] at graph 1.03, graph ends[i] tc ls 10 + styles[i] }
    plot for [i = 1:4] data index settings[i] using "batch":"error_low":"error_high" with filledcurves ls styles[i] @BAND, \
         for [i = 1:4] data index settings[i] using "batch":"error" with linespoints ls styles[i] dt dashes[i]
    unset label 1
    do for [i = 1:4] { unset label 10 + i }

    set lmargin at screen 0.445; set rmargin at screen 0.61
    set ylabel "variance times batch size" offset 1,0
    eval headline("Variance of gradient × size")
    set xrange [139:3.7]
    set xtics (4, 8, 16, 32, 64, 128)
    set yrange [*:*]
    set ytics auto
    set format y powers
    set label 2 "BatchNorm" at graph 0.97, graph 0.84 right tc ls 12
    set label 3 "ghosts of 8" at graph 0.04, graph 0.73 tc ls 12
    set label 4 "LayerNorm" at graph 0.97, graph 0.16 right tc ls 13
    plot for [i = 1:3] data index kinds[i] using "size":"variance_low":"variance_high" with filledcurves ls kind_style[i] @BAND, \
         for [i = 1:3] data index kinds[i] using "size":"variance" with linespoints ls kind_style[i] dt kind_dash[i]
    unset label 2; unset label 3; unset label 4
    unset logscale y
    set format y "%g"

    set lmargin at screen 0.68; set rmargin at screen 0.83
    set ylabel "right answers (%)" offset 0,0
    eval headline("BatchNorm with workers: right, %")
    set xlabel "workers"
    set xrange [0.9:17.8]
    set xtics (1, 4, 16)
    set yrange [40:102]
    set ytics 10
    set label 2 "combined" at graph 1.04, first 100.5 tc ls 13
    set label 3 "own, random shards" at graph 1.04, first 95.5 tc ls 12
    stats data index "sorted shards" using (end = column("own"), end) nooutput
    set label 4 "own, sorted by class" at graph 1.04, first end tc ls 12
    plot for [i = 1:2] data index shards[i] using "workers":"own_low":"own_high" with filledcurves ls 2 @BAND, \
         data index "sorted shards" using "workers":"combined" with linespoints ls 3, \
         for [i = 1:2] data index shards[i] using "workers":"own" with linespoints ls 2 dt i
    unset label 2; unset label 3; unset label 4
}
