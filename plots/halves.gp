# The loss by epoch with halves of BatchNorm and of LayerNorm. Data: build/examples/halves.
load 'plots/style.gp'
eval figure('halves', 1200, 470, "Line: median; band: middle half of the seeds. Each at its own rate.")
do for [over in "batch features"] {
    batch = over eq "batch"
    eval panel(batch ? 0.09 : 0.58, batch ? 0.48 : 0.97, batch ? "Over the batch: parts of BatchNorm" : \
        "Over the features: parts of LayerNorm", "epoch", "training loss")
    array names[batch ? 4 : 5]
    names[1] = "no norm"; names[2] = "centring"; names[3] = "scaling"; names[4] = "both"
    if (!batch) { names[5] = "LayerNorm" }
    array styles[5] = [1, batch ? 2 : 3, batch ? 2 : 3, batch ? 2 : 3, 4]; array dashes[5] = [1, 3, 2, 1, 1]
    block(i) = i == 1 || i == 5 ? names[i] : over.", ".names[i]
    shown(i) = i == 2 || i == 3 ? names[i]." alone" : i == 5 ? "both, with gamma, beta" : names[i]
    set logscale y; set yrange [0.03:2.6]; set ytics (0.05, 0.1, 0.2, 0.5, 1, 2)
    eval key(0.05, 0.36); eval series("epoch", "loss"); plot @CURVES
}
