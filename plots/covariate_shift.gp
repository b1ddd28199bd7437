# The inputs of a hidden unit during training, the layer's drift, and the loss along the gradient,
# by norm. Data: build/examples/covariate_shift.
load 'plots/style.gp'
array names[2] = ["no norm", "BatchNorm"]
eval figure('covariate_shift', 1200, 480, \
    "All at the rate that is best without a norm. A unit: 15th, 50th and 85th percentile of its input, " \
    ."first seed. Line: median; band: middle half of the seeds.")
eval panel(0.06, 0.265, "The input of a unit", "epoch", "input")
block(i) = "a unit, ".names[i]
set yrange [-5:3]
eval key(0.06, 0.96); eval series("epoch", "p50")
plot for [i = 1:2] data index block(i) using "epoch":"p15":"p85" \
    with filledcurves ls i fs transparent solid 0.2 noborder, @LINES

eval panel(0.345, 0.50, "Drift of the inputs", "epoch", "mean move of the percentiles")
array names[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "BatchNorm and noise"]
shown(i) = i == 5 ? "BatchNorm, noise" : names[i]
set xtics 5
eval series("epoch", "drift"); eval name_ends(0, 10.7, 0); plot @CURVES

eval panel(0.715, 0.86, "Range of the loss along the gradient", "step", "range of the loss")
block(i) = "range, ".names[i]; shown(i) = i == 5 ? "BatchNorm, noise" : names[i]
eval logs('y'); set xtics 200
do for [i = 1:5] { set label 10 + i shown(i) at graph 1.06, graph 0.98 - 0.08 * i tc ls 10 + i point ls i offset 1,0 }
eval series("step", "range"); plot @CURVES
