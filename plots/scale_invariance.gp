# The deviations of a weight matrix before a norm from <g, w> = 0 and H w = -g, by norm, and by eps.
# Data: build/examples/scale_invariance.

load 'plots/style.gp'
out = given('plots/scale_invariance'); data = out.'.dat'

array names[5] = ["BatchNorm", "LayerNorm", "RMSNorm", "DynamicTanh", "no norm"]
array styles[5] = [2, 3, 4, 5, 1]
array last[3]
do for [k = 1:3] { stats data index names[k]." by eps" using (last[k] = column("falling"), 1) nooutput }
array ends[3]
gap = 0.065
bottom = -17.0
top = 1.0
never_zero(x) = x > 10 ** bottom ? x : 10 ** bottom

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.22, 0.88)
    unset logscale
    unset xlabel
    set label 1 "Left: eps = 0, a mark a seed; values below 1e-17 are drawn on the axis. Right: median of the seeds; band: their middle half." \
        at screen 0.075,0.055 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.075,0.018 tc rgb faint font fine(kind)
    set logscale y
    set format y powers
    set yrange [10 ** bottom : 10 ** top]
    set ytics 1e4

    eval panel(0.075, 0.53, "Along the weights the loss is flat where a norm follows")
    set ylabel "share of the size of g"
    set xrange [0.4:5.6]
    set format x "%g"
    set xtics ()
    do for [k = 1:5] { set xtics add (names[k] k) }
    set label 3 "open: |<g, w>| / (|g| |w|)    filled: |H w + g| / |g|" at graph 0.02,0.94 tc rgb faint font fine(kind)
    plot 1e-10 with lines ls 8, \
         for [k = 1:5] data index names[k] using (k - 0.2 + 0.008 * $0):(never_zero(column("slope"))) \
             with points ls styles[k] pt 6 ps 0.8 lw 1.2, \
         for [k = 1:5] data index names[k] using (k + 0.05 + 0.008 * $0):(never_zero(column("falling"))) \
             with points ls styles[k] pt 7 ps 0.7

    eval panel(0.63, 0.89, "With eps: |H w + g| / |g|")
    set ylabel ""
    set xlabel "eps" offset 0,0.4
    set xtics autofreq
    set logscale x
    set format x powers
    set xrange [1e-16:1]
    set xtics 1e4
    do for [k = 1:3] { ends[k] = (log10(last[k]) - bottom) / (top - bottom) }
    eval SPREAD
    do for [k = 1:3] { set label 10 + k names[k] at graph 1.02, graph ends[k] tc ls 10 + styles[k] }
    plot for [k = 1:3] data index names[k]." by eps" using "eps":"falling_low":"falling_high" \
             with filledcurves ls styles[k] @BAND, \
         for [k = 1:3] data index names[k]." by eps" using "eps":"falling" with linespoints ls styles[k] @MARKED
}
