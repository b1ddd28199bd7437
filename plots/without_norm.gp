# Validation loss by step of transformers with DynamicTanh, with norms and without, and the lowest
# loss of each seed, from the data of build/examples/without_norm:
#
#     gnuplot plots/without_norm.gp            plots/without_norm.dat -> .svg
#     gnuplot -c plots/without_norm.gp PREFIX  the same for another PREFIX.dat

load 'plots/style.gp'
out = given('plots/without_norm'); data = out.'.dat'

# In the order of the data.
array name[6] = ["LayerNorm", "RMSNorm", "no norm", "DynamicTanh, deviation 1", \
    "DynamicTanh, deviation 4", "DynamicTanh as a drop-in"]
array style[6] = [3, 4, 1, 5, 5, 5]
array dashes[6] = [1, 1, 1, 1, 2, 3]
array short[6] = ["LayerNorm", "RMSNorm", "no norm", "DynamicTanh, 1", "DynamicTanh, 4", "as a drop-in, 0.02"]
array rate[6]
array left[6]
array median[6]
array last[6]
do for [k = 1:6] {
    stats data index "kinds" using (column("kind") == k - 1 ? (rate[k] = column("rate"), \
        left[k] = column("left"), median[k] = column("lowest"), plateau = column("plateau"), \
        seeds = column("seeds"), 1) : NaN) nooutput
    stats data index name[k] using (last[k] = column("loss"), steps = column("step"), column("loss")) nooutput
}
stats data index "seeds" using (column("lowest") < 100 ? column("lowest") : NaN) nooutput
bottom = floor(10 * STATS_min) / 10.0
top = ceil(10 * plateau) / 10.0 + 0.1
array ends[6]
gap = 0.062

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.22, 0.88)
    set label 1 sprintf("Line: median of %d seeds; band: middle half of the seeds. Dot: a seed; bar: median. ", seeds). \
        "Each at its own best learning rate; deviations are those of the embedding." \
        at screen 0.065,0.055 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.065,0.018 tc rgb faint font fine(kind)

    eval panel(0.065, 0.36, "Validation loss by step")
    set xlabel "step" offset 0,0.4
    set ylabel "nats a character"
    set xrange [0:steps]
    set xtics autofreq
    set yrange [bottom:top]
    set ytics nomirror autofreq
    set arrow 1 from graph 0, first plateau to graph 1, first plateau nohead ls 8
    set label 3 "plateau: how frequent each character is" at graph 0.98, first plateau offset 0,-0.7 right tc rgb faint font fine(kind)
    do for [k = 1:6] { ends[k] = (last[k] < top ? last[k] - bottom : top - bottom) / (top - bottom) }
    eval SPREAD
    do for [k = 1:6] { set label 10 + k short[k] at graph 1.03, graph ends[k] tc ls 10 + style[k] }
    plot for [k = 1:6] data index name[k] using "step":"loss_low":"loss_high" with filledcurves ls style[k] @BAND, \
         for [k = 1:6] data index name[k] using "step":"loss" with linespoints ls style[k] dt dashes[k] @MARKED
    unset arrow 1

    eval panel(0.68, 0.86, "The lowest that each seed reaches")
    set label 99 at graph -0.9, graph 1.07
    set xlabel "nats a character"
    unset ylabel
    set xrange [bottom:top]
    set xtics 0.5
    set yrange [0.4:6.6]
    unset ytics
    set grid noytics
    set border 1
    set arrow 1 from first plateau, graph 0 to first plateau, graph 1 nohead ls 8
    set label 1 "leaves the plateau" at graph 1.08, graph 1.01 tc rgb faint font fine(kind)
    do for [k = 1:6] {
        set label 10 + k short[k] at graph -0.05, first 7 - k right tc ls 10 + style[k]
        set label 20 + k sprintf("%.0f of %d", left[k] * seeds, seeds) at graph 1.08, first 7 - k tc ls 10 + style[k]
    }
    set samples 2
    plot for [k = 1:6] data index "seeds" using (column("kind") == k - 1 ? column("lowest") : NaN): \
             (7 - k + 0.3 * (rand(0) - 0.5)) with points ls style[k], \
         for [k = 1:6] "+" using (median[k]):(6.7 - k):(0):(0.6) every ::0::0 with vectors nohead ls style[k] lw 4
    unset arrow 1
    set grid ytics
    set border 3
}
