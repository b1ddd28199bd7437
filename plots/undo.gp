# A feature before a norm and its best approximation with gamma and beta, by norm, and the residual
# of all features. Data: build/examples/undo.

load 'plots/style.gp'
out = given('plots/undo'); data = out.'.dat'

array names[3] = ["BatchNorm", "LayerNorm", "RMSNorm"]
lowest = 1e300
highest = -1e300
do for [k = 1:3] {
    stats data index names[k] using "x" nooutput
    lowest = STATS_min < lowest ? STATS_min : lowest
    highest = STATS_max > highest ? STATS_max : highest
}
edge = 0.05 * (highest - lowest)

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 420, 0.27, 0.86)
    unset logscale
    set label 1 "Dots: the images, one feature, first seed; on the line the norm is undone. Right: all features, a mark a seed." \
        at screen 0.055,0.075 tc rgb faint font fine(kind)
    set label 3 what_of(data) at screen 0.055,0.03 tc rgb faint font fine(kind)
    set xrange [lowest - edge : highest + edge]
    set yrange [lowest - edge : highest + edge]
    set xtics auto
    set ytics auto
    set format "%g"
    set xlabel "x before the norm" offset 0,0.5
    do for [k = 1:3] {
        eval panel(0.055 + 0.235 * (k - 1), 0.055 + 0.235 * (k - 1) + 0.195, names[k])
        set ylabel (k == 1 ? "gamma xhat + beta, the best" : "") offset 1,0
        plot x with lines ls 8, data index names[k] using "x":"undone" with points ls 1 + k ps 0.4
    }
    eval panel(0.81, 0.985, "Variance left")
    unset xlabel
    set ylabel ""
    set xrange [0.5:3.5]
    set xtics ("BatchNorm" 1, "Layer" 2, "RMS" 3)
    set yrange [1e-32:1]
    set logscale y
    set format y powers
    set ytics 1e8
    set label 2 "asked: 1 %" at 0.55,1e-3 tc rgb faint font fine(kind)
    plot 0.01 with lines ls 8, \
         for [k = 1:3] data index names[k].", left" using (k - 0.15 + 0.025 * column("seed")):"left" with points ls 1 + k ps 0.7
}
