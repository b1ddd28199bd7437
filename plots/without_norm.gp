# Validation loss of transformers with DynamicTanh, with norms and without, by the size of the text,
# from what build/examples/without_norm wrote:
#
#     gnuplot plots/without_norm.gp            plots/without_norm.dat -> .svg and .png
#     gnuplot -c plots/without_norm.gp PREFIX  the same for another PREFIX.dat

load 'plots/style.gp'
out  = (exists("ARG1") && strlen(ARG1)) ? ARG1 : 'plots/without_norm'
data = out . '.dat'

array name[4] = ["no norm", "LayerNorm", "RMSNorm", "DynamicTanh"]
array look[4] = [1, 3, 4, 5]
array most[4]
array last[4]
thousands(count) = sprintf("%.0f,000", count / 1000)
edge(loss, side) = column(loss."_high") < 1e3 ? column(loss."_".side) : NaN # of a band
least = 100
do for [k = 1:4] {
    stats data index name[k] using (most[k] = column("lowest"), last[k] = column("last"), \
        first = ($0 == 0 ? column("characters") : first), whole = column("characters"), \
        seeds = column("seeds"), column("lowest_low")) nooutput
    least = STATS_min < least ? STATS_min : least
}
stats data index "DynamicTanh as a drop-in" using (drop_in = column("lowest")) nooutput
bottom = floor(5 * least) / 5.0
array ends[4]
gap = 0.062

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500)
    set multiplot
    set label 1 sprintf("Line: median of %d seeds; band: lowest to highest; each at its best of three learning rates. ", seeds). \
        "No curve: most seeds flew away." at screen 0.065,0.055 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.065,0.018 tc rgb faint font fine(kind)
    unset logscale
    set logscale x
    set ytics autofreq
    set xlabel "characters trained on" offset 0,0.4
    set xrange [first:whole]
    set xtics () nomirror
    unset mxtics

    set lmargin at screen 0.065; set rmargin at screen 0.36
    set bmargin at screen 0.22; set tmargin at screen 0.88
    eval headline("Lowest validation loss in training")
    set ylabel "nats a character"
    top = 3.6
    set yrange [bottom:top]
    do for [k = 1:4] { ends[k] = (most[k] - bottom) / (top - bottom) }
    eval SPREAD
    do for [k = 1:4] { set label 10 + k name[k] at graph 1.03, graph ends[k] tc ls 10 + look[k] }
    set label 15 "DynamicTanh" at graph 1.03, first drop_in offset 0,0.5 tc ls 15
    set label 16 "as a drop-in" at graph 1.03, first drop_in offset 0,-0.5 tc ls 15
    plot for [k = 1:4] data index name[k] using "characters":(edge("lowest", "low")):(edge("lowest", "high")) \
             with filledcurves ls look[k] @BAND, \
         for [k = 1:4] data index name[k] using "characters":"lowest":xtic(thousands(column("characters"))) with linespoints ls look[k], \
         data index "DynamicTanh as a drop-in" using "characters":"lowest" with points ls 5 pt 6 ps 1.3
    do for [k = 11:16] { unset label k }
    unset label 1; unset label 2

    set lmargin at screen 0.57; set rmargin at screen 0.87
    eval headline("The same networks at the end")
    top = 8
    set logscale y
    set ytics (2, 3, 4, 5, 6, 7, 8)
    set yrange [bottom:top]
    do for [k = 1:4] { ends[k] = log((last[k] < top ? last[k] : top) / bottom) / log(top / bottom) }
    eval SPREAD
    do for [k = 1:4] { set label 10 + k name[k] at graph 1.03, graph ends[k] tc ls 10 + look[k] }
    plot for [k = 1:4] data index name[k] using "characters":(edge("last", "low")):(edge("last", "high")) \
             with filledcurves ls look[k] @BAND, \
         for [k = 1:4] data index name[k] using "characters":"last":xtic(thousands(column("characters"))) with linespoints ls look[k]
    do for [k = 11:14] { unset label k }
    unset multiplot
    unset output
}
