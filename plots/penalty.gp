# The gradient of each output with respect to each point of a batch, and the distance measured by
# the critic, by norm. Data: build/examples/penalty.
load 'plots/style.gp'
array names[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "BatchNorm, batches apart"]
array styles[5] = [1, 2, 3, 4, 2]; array dashes[5] = [1, 1, 1, 1, 3]
set palette defined (-3 "#e4eff7", -1.5 "#5aa2d0", 0 "#08306b")
set cbrange [-3:0]
eval figure('penalty', 1200, 470, \
    "Left: |d critic i / d point j|, first seed, log10; white: 0. Right: median and middle half of the seeds.")
do for [k = 2:3] {
    eval panel(0.245 * k - 0.435, 0.245 * k - 0.21, "Gradients, ".names[k], "point j", k == 2 ? "output i" : "")
    eval square
    if (k == 3) { set format y ""; eval scale_at(0.535, 0.25, 0.62) }
    plot data index names[k] @MAP
}
eval panel(0.675, 0.965, "Distance by the critic, over the true one", "step of the critic", "share of the true distance")
block(i) = "distance, ".names[i]; set yrange [-1:3]
do for [i in "1 3 4"] { set label 10 + i names[i + 0] at graph 0.05, graph 1.02 - 0.07 * (i > 1 ? i - 1 : 1) tc ls 10 + i point ls i + 0 offset 1,0 }
set label 12 "BatchNorm" at graph 0.62, graph 0.83 right tc ls 12
set label 15 "BatchNorm, each kind a batch" at graph 0.98, graph 0.05 right tc ls 12
eval series("step", "distance"); plot 1 with lines ls 8, @CURVES
