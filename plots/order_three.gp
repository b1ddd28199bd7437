# Relative error of derivatives of orders 1 to 4 of three norms. Data: build/examples/order_three.
load 'plots/style.gp'
array names[3] = ["LayerNorm", "BatchNorm", "RMSNorm"]
eval figure('order_three', 1200, 460, \
    "Line: median; band: smallest to largest. In double; the right derivative is that of a power series in long double.")
do for [n = 1:3] {
    eval panel(0.31 * n - 0.215, 0.31 * n + 0.045, names[n], "order of the derivative", n == 1 ? "relative error" : "")
    set logscale y; set format y (n == 1 ? powers : "")
    set yrange [1e-17:1e3]; set ytics 1e4; set xrange [0.8:4.2]; set xtics 1
    set label 11 "normgrad" at 4, 3e-12 right tc ls 13
    set label 12 "PyTorch 2.6" at (n == 3 ? 4 : 2.3), (n == 3 ? 3e-10 : 1e-6) right tc ls 15
    if (n < 3) { set label 13 "no digit right" at 3.5, 60 center tc rgb faint font FINE }
    plot for [k = 1:2] data index names[n] using "order":word("normgrad pytorch", k)."_min":word("normgrad pytorch", k)."_max" \
             with filledcurves ls 2 * k + 1 @BAND, \
         for [k = 1:2] data index names[n] using "order":word("normgrad pytorch", k) with linespoints ls 2 * k + 1
}
