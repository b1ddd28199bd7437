# Error on new images by batch size; noise of the gradient by batch size; accuracy by the number of
# workers. Data: build/examples/batch_size.
load 'plots/style.gp'
array names[4] = ["fully connected, BatchNorm", "fully connected, LayerNorm", "convolutional, BatchNorm", \
    "convolutional, GroupNorm"]
array given_name[4] = ["BatchNorm", "LayerNorm", "BatchNorm, conv.", "GroupNorm, conv."]
array styles[4] = [2, 3, 2, 5]; array dashes[4] = [1, 1, 2, 2]
eval figure('batch_size', 1200, 470, MEDIAN)
eval panel(0.07, 0.235, "Wrong on new images, %", "batch size", "wrong answers (%)")
shown(i) = given_name[i]
set logscale x 2; set xtics (2, 8, 32); set ytics (1, 2, 5, 10, 20, 50)
eval series("batch", "error"); eval name_ends(0.8, 80, 1); plot @CURVES

eval panel(0.445, 0.61, "Variance of gradient × size", "batch size", "variance times batch size")
array names[3] = ["noise, BatchNorm", "noise, LayerNorm", "noise, BatchNorm, ghosts of 8"]
array styles[3] = [2, 3, 2]; array dashes[3] = [1, 1, 3]
set logscale x 2; eval logs('y'); set xrange [3.8:140]; set xtics (4, 16, 64)
set label 2 "BatchNorm" at graph 0.06, graph 0.84 tc ls 12
set label 3 "ghosts of 8" at graph 0.97, graph 0.73 right tc ls 12
set label 4 "LayerNorm" at graph 0.06, graph 0.16 tc ls 13
eval series("size", "variance"); plot @CURVES

eval panel(0.68, 0.83, "BatchNorm with workers: right, %", "workers", "right answers (%)")
array names[3] = ["own, sorted by class", "own, random shards", "combined"]; array styles[3] = [2, 2, 3]
array dashes[3] = [1, 2, 1]; block(i) = i == 2 ? "random shards" : "sorted shards"
set logscale x 2; set xrange [0.95:16.5]; set xtics (1, 4, 16)
eval series("workers", "own"); eval name_ends(40, 102, 0)
set label 13 at graph 1.03, graph 0.98; set label 12 at graph 1.03, graph 0.9
plot for [i = 1:2] data index block(i) using "workers":"own_low":"own_high" with filledcurves ls 2 @BAND, \
     data index block(3) using "workers":"combined" with linespoints ls 3, \
     for [i = 1:2] data index block(i) using "workers":"own" with linespoints ls 2 dt i
