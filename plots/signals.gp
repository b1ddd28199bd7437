# Activations and gradients by layer, the growth of squared gradients in wide layers, and saturated
# tanh by the width of the weights. Data: build/examples/signals.
load 'plots/style.gp'
array what[2] = ["activation", "gradient"]
eval figure('signals', 1200, 860, \
    "Above: weights half (dashed) and twice as wide as He et al. have them. Line: median; band: middle half of the seeds.")
do for [c = 1:2] {
    set bmargin at screen 0.59
    eval panel(0.49 * c - 0.41, 0.49 * c - 0.1, c == 1 ? "Activations at the start (r.m.s.)" : "Gradients at the start (r.m.s.)", \
        "layer, from the input", c == 1 ? "root mean square" : "root mean square of the gradient")
    eval logs('y'); set yrange [(c == 1 ? 1e-9 : 1e-12):1e9]; set xtics (1, 6, 12, 18, 24); set ytics 1e3
    do for [i = 2:4] { set label 10 + i names[i] at graph 1.035, graph (c == 1 ? 0.64 : 0.72) - 0.075 * i tc ls 10 + i point ls i offset 1,0 }
    set label 20 "no norm, large weights" at graph 0.2 * c - 0.15, graph 0.9 tc ls 11
    set label 21 "no norm, small weights" at graph 0.2 * c - 0.15, graph 0.08 tc ls 11
    eval series("layer", what[c])
    block(i) = names[i].", ".gain.", start"
    plot for [gain in "2 0.5"] for [i = 1:4] data index block(i) \
        using "layer":(column(by_y."_low")):(column(by_y."_high")) with filledcurves ls i @BAND, \
         for [gain in "2 0.5"] for [i = 1:4] data index block(i) using "layer":(column(by_y)) \
             with linespoints ls i dt 1 + (gain ne "2") @MARKED
}
set tmargin at screen 0.46; set bmargin at screen 0.145
eval panel(0.08, 0.39, "Wide layers: squared gradient, last layer 1", "layer, from the input", "squared gradient")
array names[3] = ["BatchNorm", "LayerNorm", "RMSNorm"]; array styles[3] = [2, 3, 4]; block(i) = names[i].", wide"
eval logs('y'); set xtics (1, 10, 20, 30, 40); set yrange [0.1:1e8]; set ytics 1e2
set label 20 "BatchNorm, and in\ntheory: 1.467 a layer" at graph 0.42, graph 0.9 tc ls 12
set label 21 "LayerNorm and RMSNorm" at graph 0.05, graph 0.2 tc ls 13
eval series("layer", "square"); plot @CURVES, data index block(1) using "layer":"theory" with lines ls 8

eval panel(0.57, 0.88, "Layers of tanh: saturated after training", "width of the first weights (Xavier = 1)", \
    "share of saturated values")
array names[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]; array styles[4] = [1, 2, 3, 4]; scale = 100
block(i) = names[i].", tanh"
set logscale x 2; set xrange [0.95:8.3]; set xtics (1, 2, 4, 8); set ytics 25; set format y "%g %%"
MARKED = ""; eval series("scale", "last"); eval name_ends(-3, 103, 0); plot @CURVES
