# How far the validation loss of transformers without a norm, with DynamicTanh and with Derf is above
# that with LayerNorm, by the amount of text. Data: build/examples/without_norm.

load 'plots/style.gp'
out = given('plots/without_norm'); data = out.'.dat'
CONTEXT = 16

array names[3] = ["no norm", "DynamicTanh", "Derf"]
array style[3] = [1, 5, 2]
array column_of[2] = ["above", "lowest_above"]
array dashes[3] = [1, 1, 2]
array ends[3]
gap = 0.07
least = 0.0
most = 0.0
do for [n = 1:3] { do for [p = 1:2] {
    stats data index names[n] using (seeds = column("seeds"), column(column_of[p]."_low")) nooutput
    least = STATS_min < least ? STATS_min : least
    stats data index names[n] using (column(column_of[p]."_high")) nooutput
    most = STATS_max > most ? STATS_max : most
} }
pad = 0.08 * (most - least)

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 480, 0.22, 0.88)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half. Each kind at its own rate.", seeds) \
        at screen 0.075,0.055 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.075,0.018 tc rgb faint font fine(kind)
    set logscale x 2
    set xrange [2048:80000]
    set xtics ("2,048" 2048, "4,096" 4096, "8,192" 8192, "80,000" 80000)
    set xlabel "characters of text" offset 0,0.4
    do for [p = 1:2] {
        set lmargin at screen p == 1 ? 0.075 : 0.605
        set rmargin at screen p == 1 ? 0.43 : 0.885
        set ylabel "loss above LayerNorm (nats)"
        low = p == 1 ? least - pad : -0.25
        high = p == 1 ? most + pad : 0.55
        set yrange [low:high]
        eval headline(p == 1 ? "After the last step" : "At its lowest on the way")
        set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead ls 8
        if (p == 1) {
            set label 3 "above: LayerNorm is better" at graph 0.97, graph 0.96 right tc rgb faint font fine(kind)
            set label 4 "below: LayerNorm is worse, it overfits" at graph 0.97, graph 0.04 right tc rgb faint font fine(kind)
        }
        do for [n = 1:3] {
            stats data index names[n] using (end = column(column_of[p]), end) nooutput
            ends[n] = (end - low) / (high - low)
        }
        eval SPREAD
        do for [n = 1:3] { set label 10 + n names[n] at graph 1.03, graph ends[n] tc ls 10 + style[n] }
        plot for [n = 1:3] data index names[n] using (CONTEXT * column("windows")): \
                 column_of[p]."_low":column_of[p]."_high" with filledcurves ls style[n] @BAND, \
             for [n = 1:3] data index names[n] using (CONTEXT * column("windows")):column_of[p] \
                 with linespoints ls style[n] dt dashes[n]
        unset label 1; unset label 2; unset label 3; unset label 4
    }
    unset arrow 1
}
