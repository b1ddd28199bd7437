# How far the validation loss of transformers without a norm, with DynamicTanh and with Derf is above
# that with LayerNorm, by the amount of text. Data: build/examples/without_norm.
load 'plots/style.gp'
array names[3] = ["no norm", "DynamicTanh", "Derf"]; array styles[3] = [1, 5, 2]; array dashes[3] = [1, 1, 2]
MARKED = ""
eval figure('without_norm', 1200, 480, "Line: median; band: middle half of the seeds. Each kind at its own rate.")
do for [p = 1:2] {
    eval panel(p == 1 ? 0.075 : 0.605, p == 1 ? 0.43 : 0.885, p == 1 ? "After the last step" : "At its lowest on the way", \
        "characters of text", "loss above LayerNorm (nats)")
    set logscale x 2; set xrange [128:5000]
    set xtics ("2,048" 128, "4,096" 256, "8,192" 512, "80,000" 5000) # windows of 16
    if (p == 1) {
        set label 3 "above: LayerNorm is better" at graph 0.97, graph 0.96 right tc rgb faint font FINE
        set label 4 "below: LayerNorm is worse, it overfits" at graph 0.97, graph 0.04 right tc rgb faint font FINE
    }
    eval series("windows", p == 1 ? "above" : "lowest_above")
    eval name_ends(p == 1 ? -3 : -0.25, p == 1 ? 0.7 : 0.55, 0)
    plot 0 with lines ls 8, @CURVES
}
