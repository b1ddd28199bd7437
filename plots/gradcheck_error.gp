# The error of a central difference by relative step, in double and float (truncation is
# proportional to h^2, rounding to 1/h), and Taylor's remainder by step for a right and a wrong
# gradient. Data: build/examples/gradcheck_error.

load 'plots/style.gp'
out = given('plots/gradcheck_error'); data = out.'.dat'

# The best steps (the cube roots of the precisions), and the guides that meet there.
array names[2] = ["double", "float"]
array colours[2] = [1, 5]
array best[2] = [(2.0 ** -52) ** (1.0 / 3), (2.0 ** -23) ** (1.0 / 3)]
truncation(h) = h > 3e-4 ? 0.5 * h**2 : NaN
rounding(h, k) = h < best[k] / 30 && h > 0.3 * best[k]**3 ? 0.3 * best[k]**3 / h : NaN

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.21, 0.88)
    set label 1 "Line: median over norms and seeds; band: their middle half.   ".what_of(data) \
        at screen 0.075,0.03 tc rgb faint font fine(kind)
    set logscale xy
    set format x powers; set format y powers
    set samples 400

    set lmargin at screen 0.1; set rmargin at screen 0.50
    eval headline("Differences are exact at a middle step only")
    set xrange [1e-14:1]; set yrange [1e-13:1e1]
    set xtics 1e-14, 100; set ytics 1e-12, 1000
    set xlabel "step h, relative to the size of the input" offset 0,0.4
    set ylabel "relative error of the difference"
    set label 2 "float" at 2e-6,2e-1 left tc ls 15
    set label 3 "double" at 3e-12,5e-7 right tc ls 11
    set label 4 "rounding, 1/h" at 6e-10,1e-10 right tc rgb faint
    set label 5 "truncation, h^2" at 0.8,5e-10 right tc rgb faint
    plot for [k = 1:2] data index names[k] using 1:3:4 with filledcurves ls colours[k] @BAND, \
         for [k = 1:2] data index names[k] using 1:2 with lines ls colours[k], \
         truncation(x) with lines ls 8, for [k = 1:2] rounding(x, k) with lines ls 8
    do for [i = 2:5] { unset label i }

    set lmargin at screen 0.585; set rmargin at screen 0.985
    eval headline("The remainder of a wrong gradient falls too slowly")
    set xrange [1e-8:1]; set yrange [1e-17:1e1]
    set xtics 1e-8, 10; set ytics 1e-16, 1000
    set xlabel "step h along a random direction" offset 0,0.4
    set ylabel "remainder, relative to the slope"
    set label 2 "1 % too large: falls as h" at 2e-8,1e-5 left tc ls 15
    set label 3 "right: falls as h^2" at 3e-4,1e-10 left tc ls 11
    plot data index "Taylor, wrong" using 1:3:4 with filledcurves ls 5 @BAND, \
         data index "Taylor, right" using 1:3:4 with filledcurves ls 1 @BAND, \
         data index "Taylor, wrong" using 1:2 with lines ls 5, \
         data index "Taylor, right" using 1:2 with lines ls 1
}
