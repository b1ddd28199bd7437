# The dependence of a causal transformer block's output on each position of the sequence, by norm.
# Data: build/examples/leak.

load 'plots/style.gp'
array names[4] = ["BatchNorm", "BatchNorm in eval mode", "LayerNorm", "RMSNorm"]
set palette defined (-2 "#e4eff7", -0.5 "#5aa2d0", 1 "#08306b")
set cbrange [-2:1]
eval figure('leak', 1200, 400, "Size of d (v · output at t) / d input at s, log10 by colour; white: exactly 0. First seed.")
do for [k = 1:4] {
    eval panel(0.225 * k - 0.17, 0.225 * k + 0.035, names[k], "input s", k == 1 ? "output t" : "")
    unset grid
    set border 15
    set xrange [-0.5:15.5]
    set yrange [15.5:-0.5]
    set tics 5
    if (k > 1) { set format y "" }
    if (k == 4) { set colorbox user origin screen 0.945,0.29 size screen 0.012,0.55; set cbtics 1 font FINE }
    plot data index names[k] using 2:1:(column(3) > 0 ? log10(column(3)) : NaN) with image pixels, x \
        with lines lc rgb ink lw 1 dt 3
}
