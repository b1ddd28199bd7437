# The ten largest eigenvalues of the Hessian at equal loss, and the largest during gradient descent,
# by norm. Data: build/examples/sharpness.
load 'plots/style.gp'
eval figure('sharpness', 1200, 480, MEDIAN)
eval panel(0.065, 0.4, "The ten largest eigenvalues at a loss of 0.1", "number", "eigenvalue of the Hessian")
block(i) = names[i]." at 0.1"
set xrange [0.5:10.5]; set xtics 1; set ytics (0.5, 1, 2, 5, 10, 20, 50)
eval series("index", "value"); eval name_ends(0.5, 50, 1); plot @CURVES

eval panel(0.56, 0.965, "The largest, during gradient descent", "step", "largest eigenvalue")
block(i) = "edge, ".names[i]
stats data index block(1) using (edge = column("edge"), 1) nooutput
set logscale y; set xrange [0:1000]; set yrange [4:150]; set ytics (5, 10, 20, 50, 100)
set label 2 "2 / rate" at 990, edge * 1.35 right tc rgb faint
eval key(0.6, 0.975); eval series("step", "sharpness"); plot edge with lines ls 8, @CURVES
