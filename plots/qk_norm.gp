# The largest logit of attention and the loss by learning rate, with and without norms of queries
# and keys. Data: build/examples/qk_norm.
load 'plots/style.gp'
array names[3] = ["no norm", "LayerNorm", "RMSNorm"]; array styles[3] = [1, 3, 4]; MARKED = ""
eval figure('qk_norm', 1200, 470, MEDIAN)
do for [k = 1:2] {
    eval panel(k == 1 ? 0.075 : 0.57, k == 1 ? 0.47 : 0.965, k == 1 ? "Largest logit of attention after training" : "Validation loss", \
        "learning rate", k == 1 ? "|q · k| / √d" : "nats a character")
    shown(i) = i == 1 ? "no QK-norm" : names[i]." of q and k"
    set logscale x; set xrange [0.00085:0.147]; set xtics (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
    if (k == 1) { set logscale y; set format y powers; set yrange [1:1e6] } else { set yrange [2.3:3.25] }
    eval key(0.04, 0.96); eval series("rate", word("logit loss", k)); plot @CURVES
}
