# Growth of the squared gradient from layer to layer at the start, by norm and activation, and by
# batch size, from the data of build/examples/gradient_growth:
#
#     gnuplot plots/gradient_growth.gp               plots/gradient_growth.dat -> .svg
#     gnuplot -c plots/gradient_growth.gp PREFIX     the same for another PREFIX.dat

load 'plots/style.gp'
out = given('plots/gradient_growth'); data = out.'.dat'

array blocks[5] = ["BatchNorm", "leaky", "linear", "LayerNorm", "RMSNorm"]
array names[5] = ["BatchNorm, ReLU", "BatchNorm, leaky ReLU", "BatchNorm, no activation", "LayerNorm, ReLU", "RMSNorm, ReLU"]
array styles[5] = [2, 2, 2, 3, 4]
array dashes[5] = [1, 2, 3, 1, 1]
array growth[5]
array first_square[5]
layers = 1
do for [i = 1:5] {
    stats data index blocks[i] using (column("layer") == 1 ? first_square[i] = column("square") : 0, \
        layers = column("layer"), growth[i] = column("growth"), 0) nooutput
}
array widths[2]
array at_last[2]
array series[2] = ["narrow", "wide"]
do for [k = 1:2] {
    stats data index series[k] using (theory = column("theory"), widths[k] = column("width"), \
        at_last[k] = column("growth"), 0) nooutput
}
top = log10(first_square[1]) + 0.7
bottom = -1

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.21, 0.88)
    set label 1 "Line: median; band: middle half of the seeds. Grey, dashed: theory.   ".what_of(data) \
        at screen 0.075,0.035 tc rgb faint font fine(kind)
    eval panel(0.075, 0.38, "Gradients through BatchNorm explode")
    set logscale y
    set format y powers
    set xrange [1:layers]
    set yrange [10 ** bottom:10 ** top]
    set xtics (1, 10, 20, 30, 40)
    set xlabel "layer, from the input" offset 0,0.4
    set ylabel "squared gradient, last layer = 1"
    set label 11 sprintf("× %.3f a layer: ReLU", growth[1]) at 10, growth[1] ** (layers - 10) * 6 left tc ls 12
    set label 12 sprintf("× %.3f: leaky ReLU", growth[2]) at 3, growth[2] ** (layers - 3) / 200 left tc ls 12
    do for [i = 3:5] {
        set label 10 + i sprintf("× %.3f: ", growth[i]).names[i] at graph 1.03, graph 0.265 - 0.065 * (i - 3) \
            tc ls 10 + styles[i] font fine(kind)
    }
    plot for [i = 1:5] data index blocks[i] using "layer":"square_low":"square_high" with filledcurves ls styles[i] @BAND, \
         for [i = 1:5] data index blocks[i] using "layer":"square" with linespoints ls styles[i] dt dashes[i] @MARKED

    eval panel(0.64, 0.90, "Growth a layer, BatchNorm and ReLU")
    unset logscale y
    set logscale x
    set format y "%.1f"
    set xrange [7:280]
    set xtics (8, 16, 32, 64, 128, 256)
    set yrange [1.2:1.9]
    set xlabel "batch size"
    set ylabel "squared gradient, growth a layer"
    set label 2 "π / (π - 1)" at 8,theory - 0.025 left tc rgb faint
    do for [k = 1:2] {
        set label 2 + k sprintf("width %d", widths[k]) at graph 1.03, first at_last[k] + (k == 2 ? 0.02 : -0.02) tc ls 12
    }
    plot theory with lines ls 8, \
         for [k = 1:2] data index series[k] using "batch":"growth_low":"growth_high" with filledcurves ls 2 @BAND, \
         for [k = 1:2] data index series[k] using "batch":"growth" with linespoints ls 2 dt 3 - k
    unset logscale x
}
