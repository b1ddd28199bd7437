# How far the validation loss of transformers with DynamicTanh and Derf is above that with LayerNorm,
# by the amount of text and the width. Data: build/examples/phase_diagram.

load 'plots/style.gp'
out = given('plots/phase_diagram'); data = out.'.dat'
CONTEXT = 16

array names[2] = ["DynamicTanh", "Derf"]
array widths[2] = [16, 48]
array style[2] = [3, 5]
array ends[2]
gap = 0.07
least = 0.0
most = 0.0
seeds = 0
first = 1e9
last = 0.0
do for [n = 1:2] { do for [w = 1:2] {
    block = sprintf("%s, width %d", names[n], widths[w])
    stats data index block using (seeds = column("seeds"), last = column("windows"), \
        first = column("windows") < first ? column("windows") : first, column("above_low")) nooutput
    least = STATS_min < least ? STATS_min : least
    stats data index block using "above_high" nooutput
    most = STATS_max > most ? STATS_max : most
} }
pad = 0.08 * (most - least)

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.22, 0.88)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half. Dashed: the lowest loss on the way. ", seeds). \
        "Each width and kind at its own rate." at screen 0.075,0.055 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.075,0.018 tc rgb faint font fine(kind)
    set logscale x 2
    set xrange [CONTEXT * first:CONTEXT * last]
    set xtics ("2,048" 2048, "4,096" 4096, "8,192" 8192, "80,000" 80000)
    set yrange [least - pad:most + pad]
    set xlabel "characters of text" offset 0,0.4
    do for [n = 1:2] {
        set lmargin at screen n == 1 ? 0.075 : 0.56
        set rmargin at screen n == 1 ? 0.43 : 0.915
        if (n == 1) { set ylabel "loss less LayerNorm's, nats a character" } else { unset ylabel }
        eval headline(names[n] . " in place of LayerNorm")
        set arrow 1 from graph 0, first 0 to graph 1, first 0 nohead ls 8
        set label 3 "above: LayerNorm is better" at graph 0.98, graph 0.96 right tc rgb faint font fine(kind)
        set label 4 sprintf("below: %s is better", names[n]) at graph 0.98, graph 0.04 right tc rgb faint font fine(kind)
        do for [w = 1:2] {
            stats data index sprintf("%s, width %d", names[n], widths[w]) using (end = column("above"), end) nooutput
            ends[w] = (end - least + pad) / (most - least + 2 * pad)
        }
        eval SPREAD
        do for [w = 1:2] { set label 10 + w sprintf("width %d", widths[w]) at graph 1.03, graph ends[w] tc ls 10 + style[w] }
        plot for [w = 1:2] data index sprintf("%s, width %d", names[n], widths[w]) \
                 using (CONTEXT * column("windows")):"above_low":"above_high" with filledcurves ls style[w] fs transparent solid 0.13 noborder, \
             for [w = 1:2] data index sprintf("%s, width %d", names[n], widths[w]) \
                 using (CONTEXT * column("windows")):"lowest_above" with lines ls style[w] lw 1.4 dt 2, \
             for [w = 1:2] data index sprintf("%s, width %d", names[n], widths[w]) \
                 using (CONTEXT * column("windows")):"above" with linespoints ls style[w] pn 6
        unset label 1
        unset label 2
    }
    unset arrow 1
}
