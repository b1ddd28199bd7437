# The error of a central difference by relative step, in double and float (truncation is
# proportional to h^2, rounding to 1/h), and Taylor's remainder by step for a right and a wrong
# gradient. Data: build/examples/gradcheck_error.
load 'plots/style.gp'
array names[2] = ["double", "float"]; array styles[2] = [1, 5]
# The best steps (the cube roots of the precisions), and the guides that meet there.
array best[2] = [(2.0 ** -52) ** (1.0 / 3), (2.0 ** -23) ** (1.0 / 3)]
truncation(h) = h > 3e-4 ? 0.5 * h**2 : NaN
rounding(h, k) = h < best[k] / 30 && h > 0.3 * best[k]**3 ? 0.3 * best[k]**3 / h : NaN
set samples 400
eval figure('gradcheck_error', 1200, 500, "Line: median over norms and seeds; band: their middle half.")
eval panel(0.1, 0.50, "Differences are exact at a middle step only", "step h, relative to the size of the input", \
    "relative error of the difference")
eval logs('xy'); set xrange [1e-14:1]; set yrange [1e-13:1e1]; set xtics 1e-14, 100; set ytics 1e-12, 1000
set label 2 "float" at 2e-6,2e-1 left tc ls 15
set label 3 "double" at 3e-12,5e-7 right tc ls 11
set label 4 "rounding, 1/h" at 6e-10,1e-10 right tc rgb faint
set label 5 "truncation, h^2" at 0.8,5e-10 right tc rgb faint
MARKED = "pt 0"
eval series("step", "error"); plot @CURVES, truncation(x) with lines ls 8, for [k = 1:2] rounding(x, k) with lines ls 8

eval panel(0.585, 0.985, "The remainder of a wrong gradient falls too slowly", "step h along a random direction", \
    "remainder, relative to the slope")
array names[2] = ["Taylor, right", "Taylor, wrong"]
eval logs('xy'); set xrange [1e-8:1]; set yrange [1e-17:1e1]; set xtics 1e-8, 10; set ytics 1e-16, 1000
set label 2 "1 % too large: falls as h" at 2e-8,1e-5 left tc ls 15
set label 3 "right: falls as h^2" at 3e-4,1e-10 left tc ls 11
eval series("step", "remainder"); plot @CURVES
