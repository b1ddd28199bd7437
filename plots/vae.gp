# Digits drawn by a conditional variational autoencoder, a row for each label, and its loss. Data:
# build/examples/vae.
load 'plots/style.gp'
set palette gray negative
eval figure('vae', 1200, 620, "")
eval panel(0.05, 0.52, "Drawn from one code a column, given the label of the row", "", "")
unset border; unset grid; unset xtics; unset ytics
do for [i = 0:9] { set label 10 + i sprintf("%d", i) at graph -0.03,first 10 * i + 4.5 right tc rgb ink }
set xrange [-0.5:95.5]; set yrange [99.5:-0.5]
plot out.'_images.dat' matrix with image

eval panel(0.61, 0.98, "Nats an image: its pixels and its code", "step", "loss (nats)")
set yrange [*:40]
plot data index 0 using "step":"loss" with lines ls 3 lw 1
