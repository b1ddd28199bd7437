# The dependence of a causal transformer block's output on each position of the sequence, by norm.
# Data: build/examples/leak.
load 'plots/style.gp'
array names[4] = ["BatchNorm", "BatchNorm in eval mode", "LayerNorm", "RMSNorm"]
set palette defined (-2 "#e4eff7", -0.5 "#5aa2d0", 1 "#08306b")
set cbrange [-2:1]
eval figure('leak', 1200, 400, "Size of d (v · output at t) / d input at s, log10 by colour; white: exactly 0. First seed.")
do for [k = 1:4] {
    eval panel(0.225 * k - 0.17, 0.225 * k + 0.035, names[k], "input s", k == 1 ? "output t" : "")
    eval square
    if (k > 1) { set format y "" }
    if (k == 4) { eval scale_at(0.945, 0.29, 0.55) }
    plot data index names[k] @MAP, x with lines lc rgb ink lw 1 dt 3
}
