# Runs with equal effective rate, and the equilibrium of runs with equal product of rate and decay,
# by norm. Data: build/examples/effective_rate.
load 'plots/style.gp'
eval figure('effective_rate', 1200, 470, \
    "Line: median; band: middle half of the seeds. Middle and right: rate 0.5, and dotted 0.02.")
eval panel(0.085, 0.31, "Weights scaled, rate / |w|² the same", "step", "difference of the loss")
eval logs('y'); set yrange [1e-17:1e3]; set ytics 1e4; set xtics 50
eval key(0.5, 0.68); eval series("step", "apart"); plot @CURVES

array names[4] = ["BatchNorm, rate 0.5", "LayerNorm, rate 0.5", "BatchNorm, rate 0.02", "LayerNorm, rate 0.02"]
array styles[4] = [2, 3, 2, 3]; array dashes[4] = [1, 1, 3, 3]
eval panel(0.40, 0.645, "Rate × decay the same: rate / |w|²", "step", "rate / |w|²")
eval logs('y'); set yrange [1e-3:1]; set xtics 1000
eval key(0.42, 0.34); eval series("step", "effective"); plot @CURVES

eval panel(0.72, 0.965, "... and how far a step turns w", "step", "radians")
eval logs('y'); set yrange [2e-3:0.5]; set xtics 1000
set label 2 "dashed, grey: √(2 rate decay)" at graph 0.97,graph 0.9 right tc rgb faint
eval series("step", "angle"); plot @CURVES, data index names[1] using "step":"theory" with lines ls 8 lw 2
