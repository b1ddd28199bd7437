# The last block's gradient by depth, training with 24 blocks, and what each block contributes, by
# the place of the norms; newer placements at equal compute. Data: build/examples/placement.
load 'plots/style.gp'
array names[2] = ["pre-norm", "post-norm"]; array styles[4] = [3, 5, 4, 2]; array score[4]
eval figure('placement', 1200, 960, "Line: median; band: middle half of the seeds. Contributions below 1e-4 are drawn there.")
set tmargin at screen 0.93; set bmargin at screen 0.6
eval panel(0.075, 0.285, "Untrained: gradient, last block", "blocks", "norm of the gradient")
block(i) = names[i].", gradient"
set logscale xy; set format y powers; set xtics (2, 4, 8, 16, 32); set xrange [1.8:36]
eval key(0.06, 0.2); eval series("depth", "gradient"); plot @CURVES

eval panel(0.365, 0.62, "Training 24 blocks: nats a character", "step", "training loss (nats)")
array names[4] = ["pre-norm", "post-norm", "DeepNorm", "LayerNorm scaling"]; block(i) = names[i].", training"
do for [i = 1:4] { stats data index block(i) using (score[i] = column("validation"), 1) nooutput }
shown(i) = sprintf("%s: %.2f on new text", names[i], score[i])
set xtics 100; set yrange [2.2:5]
eval key(0.08, 0.96); eval series("step", "loss"); plot @CURVES

eval panel(0.715, 0.985, "Rise of the loss without a block", "block, from the input", "rise of the loss (nats)")
eval logs('y'); set xrange [1:24]; set yrange [1e-4:10]; set xtics (1, 6, 12, 18, 24)
up(x) = x > 1e-4 ? x : 1e-4; rise(i) = names[int(i)].", contributions"
plot for [i in "1 3 4"] data index rise(i) using "block":(up(column("rise_low"))):(up(column("rise_high"))) \
    with filledcurves ls styles[int(i)] @BAND, \
     for [i in "1 3 4"] data index rise(i) using "block":(up(column("rise"))) with linespoints ls styles[int(i)] @MARKED

set tmargin at screen 0.46; set bmargin at screen 0.14
unset logscale
eval panel(0.075, 0.5, "12 blocks at equal compute: nats a character", "share of the compute (%)", "training loss (nats)")
array names[5] = ["pre-norm", "post-norm", "Peri-LN", "OLMo 2", "hyper-connections"]
array styles[5] = [3, 5, 4, 2, 1]; block(i) = names[i].", compared"; shown(i) = names[i]
set format y "%g"; set xrange [0:100]; set xtics 20; set yrange [2.2:4.2]
eval key(0.62, 0.96); eval series("compute", "loss"); plot @CURVES

eval panel(0.6, 0.985, "New text: the loss less pre-norm's", "", "difference (nats)")
set xrange [0.5:4.5]; set yrange [-0.2:0.7]; set xtics ("post-norm" 1, "Peri-LN" 2, "OLMo 2" 3, "hyper-connections" 4)
plot 0 ls 8, data index "less pre-norm" using "place":"less":"less_min":"less_max" with yerrorbars ls 3
