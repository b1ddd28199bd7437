# The last block's gradient by depth, training with 24 blocks, and what each block contributes, by
# the place of the norms. Data: build/examples/placement.

load 'plots/style.gp'
array names[2] = ["pre-norm", "post-norm"]
array styles[4] = [3, 5, 4, 2]
array score[4]
eval figure('placement', 1200, 500, "Line: median; band: middle half of the seeds. Contributions below 1e-4 are drawn there.")
eval panel(0.075, 0.285, "Untrained: gradient, last block", "blocks", "norm of the gradient")
block(i) = names[i].", gradient"
set logscale xy
set format y powers
set xtics (2, 4, 8, 16, 32)
set xrange [1.8:36]
eval key(0.06, 0.2)
eval series("depth", "gradient"); plot @CURVES

eval panel(0.365, 0.62, "Training 24 blocks: nats a character", "step", "training loss (nats)")
array names[4] = ["pre-norm", "post-norm", "DeepNorm", "LayerNorm scaling"]
block(i) = names[i].", training"
do for [i = 1:4] { stats data index block(i) using (score[i] = column("validation"), 1) nooutput }
shown(i) = sprintf("%s: %.2f on new text", names[i], score[i])
set xtics 100
set yrange [2.2:5]
eval key(0.08, 0.96)
eval series("step", "loss"); plot @CURVES

eval panel(0.715, 0.985, "Rise of the loss without a block", "block, from the input", "rise of the loss (nats)")
set logscale y
set format y powers
set xrange [1:24]
set yrange [1e-4:10]
set xtics (1, 6, 12, 18, 24)
up(x) = x > 1e-4 ? x : 1e-4
rise(i) = names[int(i)].", contributions"
plot for [i in "1 3 4"] data index rise(i) using "block":(up(column("rise_low"))):(up(column("rise_high"))) \
    with filledcurves ls styles[int(i)] @BAND, \
     for [i in "1 3 4"] data index rise(i) using "block":(up(column("rise"))) with linespoints ls styles[int(i)] @MARKED
