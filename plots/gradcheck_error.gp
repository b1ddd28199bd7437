# Error of a central difference against its relative step: truncation falls as h^2 from the right,
# rounding grows as 1/h to the left. The numbers come from
#
#     build/examples/gradcheck --sweep plots/gradcheck_error.dat

load 'plots/style.gp'

data = 'plots/gradcheck_error.dat'
names = "layer\\_norm rms\\_norm batch\\_norm exp"

truncation(h) = h < 1e-4 ? NaN : 4 * h**2
rounding(h) = h > 1e-6 ? NaN : 4e-18 / h

do for [kind in "svg png"] {
    eval canvas(kind, 'plots/gradcheck_error', 800, 560)
    set title "A central difference is right to ten digits, at the right step"
    set logscale xy
    set format x powers
    set format y powers
    set xrange [1e-14:1]
    set yrange [1e-12:1e1]
    set xtics 1e-14, 100
    set ytics 1e-12, 100
    set grid
    set samples 400
    set xlabel "step, relative to the input's size"
    set ylabel "relative error, median over elements"
    set key at graph 0.55, 0.97 center top samplen 2
    set label 1 "rounding, 1/h" at 3.5e-12, 8e-8 rotate by -35 center tc rgb faint
    set label 2 "truncation, h^2" at 1.2e-3, 1.2e-4 rotate by 54 center tc rgb faint
    plot for [i = 1:4] data index i - 1 using 1:2 with linespoints ls i pn 15 title word(names, i), \
         truncation(x) with lines ls 8, rounding(x) with lines ls 8
    unset output
}
