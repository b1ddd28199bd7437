# The dependence of a causal transformer block's output on each position of the sequence, by norm.
# Data: build/examples/leak.

load 'plots/style.gp'
out = given('plots/leak'); data = out.'.dat'

array names[4] = ["BatchNorm", "BatchNorm in eval mode", "LayerNorm", "RMSNorm"]
stats data index "LayerNorm" using 1 nooutput
last = STATS_max
panel = 0.205

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 400, 0.24, 0.84)
    set label 1 "Size of d (v · output at t) / d input at s, log10 by colour; white: exactly 0. First seed.   ".what_of(data) \
        at screen 0.055,0.04 tc rgb faint font fine(kind)
    set palette defined (-2 "#e4eff7", -0.5 "#5aa2d0", 1 "#08306b")
    set cbrange [-2:1]
    unset colorbox
    unset grid
    set border 15
    set xrange [-0.5:last + 0.5]
    set yrange [last + 0.5:-0.5]
    set tics 5
    set cbtics 1
    set xlabel "input s" offset 0,0.5
    do for [k = 1:4] {
        eval panel(0.055 + 0.225 * (k - 1), 0.055 + 0.225 * (k - 1) + panel, names[k])
        set ylabel (k == 1 ? "output t" : "") offset 1,0
        set format y (k == 1 ? "%g" : "")
        if (k == 4) {
            set colorbox user origin screen 0.945,0.24 size screen 0.012,0.6
            eval "set cbtics font '" . fine(kind) . "'"
        }
        plot data index names[k] using 2:1:(column(3) > 0 ? log10(column(3)) : NaN) with image pixels, \
             x with lines lc rgb ink lw 1 dt 3
    }
}
