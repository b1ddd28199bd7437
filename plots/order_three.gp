# Relative error of derivatives of orders 1 to 4 of three norms. Data: build/examples/order_three.

load 'plots/style.gp'
out = given('plots/order_three'); data = out.'.dat'

array norms[3] = ["LayerNorm", "BatchNorm", "RMSNorm"]
array names[2] = ["normgrad", "pytorch"]
array shown[2] = ["normgrad", "PyTorch 2.6"]
array style[2] = [3, 5]
stats data index norms[1] using (seeds = column("seeds"), 1) nooutput

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 460, 0.24, 0.87)
    set label 1 sprintf("Line: median of %d inputs; band: smallest to largest. In double; the right derivative is that of a power series in long double.", seeds) \
        at screen 0.065,0.05 tc rgb faint font fine(kind)
    set logscale y
    set yrange [1e-17:1e3]
    set xrange [0.8:4.2]
    set xtics 1
    set xlabel "order of the derivative" offset 0,0.4
    do for [n = 1:3] {
        eval panel(0.095 + 0.31 * (n - 1), 0.355 + 0.31 * (n - 1), norms[n])
        if (n == 1) {
            set ylabel "relative error"; set ytics 1e4; set format y powers
        } else { unset ylabel; set format y "" }
        set label 11 shown[1] at first 4, first 3e-12 right tc ls 10 + style[1]
        if (n == 3) { set label 12 shown[2] at first 4, first 3e-10 right tc ls 10 + style[2] } else {
            set label 12 shown[2] at first 2.3, first 1e-6 right tc ls 10 + style[2]
            set label 13 "no digit right" at first 3.5, first 60 center tc rgb faint font fine(kind)
        }
        plot for [k = 1:2] data index norms[n] using "order":names[k]."_min":names[k]."_max" with filledcurves ls style[k] @BAND, \
             for [k = 1:2] data index norms[n] using "order":names[k] with linespoints ls style[k]
        unset label 13
    }
}
