# Validation loss by training loss, and the gap between them as a share of that without a norm.
# Data: build/examples/regularization.
load 'plots/style.gp'
array names[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "dropout"]
array gaps[2] = ["gap at equal training loss", "gap after equal training"]
eval figure('regularization', 1200, 460, "Line or mark: median; band or bar: middle half of the seeds.")
eval panel(0.095, 0.42, "Memorizing the training images", "training loss (falls to the right)", "validation loss")
set logscale xy; set xrange [1:0.003]
set yrange [0.12:1.2]; set xtics (1, 0.3, 0.1, 0.03, 0.01, 0.003); set ytics (0.15, 0.2, 0.3, 0.5, 1)
eval key(0.6, 0.95); eval series("train", "validation"); plot @CURVES

eval panel(0.52, 0.975, "Gap to the validation loss (no norm: 1)", "", "gap, as a multiple of no norm's")
set xrange [0.3:9.7]; set xtics ("at a training loss of 0.03" 2.5, "after equal training" 7.5) scale 0
set yrange [0.6:1.4]; set ytics 0.1
plot 1 with lines ls 8, \
     for [k = 1:2] for [i = 2:5] data index gaps[k] using (5 * k - 6 + i):(column("kind") == i - 1 ? column("share") : NaN): \
         "share_low":"share_high" with yerrorbars ls i lw 2.2 ps 1.3
