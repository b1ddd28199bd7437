# Activations and gradients by layer, the growth of squared gradients in wide layers, and saturated
# tanh by the width of the weights. Data: build/examples/signals.

load 'plots/style.gp'
out = given('plots/signals'); data = out.'.dat'

array names[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
at_start(i, gain) = sprintf("%s, %s, start", names[i], gain)
stats data index at_start(1, "2") using (seeds = column("seeds"), layers = column("layer"), 1) nooutput
stats data index "BatchNorm, wide" using (deep = column("layer"), 1) nooutput
array series[2] = ["activation", "gradient"]
array titles[2] = ["Activations at the start (r.m.s.)", "Gradients at the start (r.m.s.)"]
first(c) = 0.08 + 0.49 * c
last(c) = first(c) + 0.31

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 860, 0.59, 0.93)
    set label 1 sprintf("Above: weights half (dashed) and twice as wide as He et al. have them. Line: median of %d seeds; band: their middle half.\n", seeds) \
        . what_of(data) at screen 0.07,0.045 tc rgb faint font fine(kind)
    set logscale y
    set format y powers
    set xrange [1:layers]
    set xtics (1, 6, 12, 18, 24)
    set xlabel "layer, from the input" offset 0,0.4
    do for [c = 1:2] {
        set ylabel (c == 1 ? "root mean square" : "root mean square of the gradient")
        eval panel(first(c - 1), last(c - 1), titles[c])
        set yrange [c == 1 ? 1e-9 : 1e-12 : c == 1 ? 1e9 : 1e9]
        set ytics 1e3
        do for [i = 1:4] {
            if (i > 1) { set label 10 + i names[i] at graph 1.03, graph (c == 1 ? 0.64 : 0.72) - 0.075 * i tc ls 10 + i point ls i offset 1,0 }
        }
        set label 20 "no norm, large weights" at graph 0.05 + 0.2 * (c - 1), graph 0.9 tc ls 11
        set label 21 "no norm, small weights" at graph 0.05 + 0.2 * (c - 1), graph 0.08 tc ls 11
        plot for [i = 1:4] data index at_start(i, "2") using "layer":(column(series[c]."_low")):(column(series[c]."_high")) \
                 with filledcurves ls i @BAND, \
             for [i = 1:4] data index at_start(i, "2") using "layer":(column(series[c])) with linespoints ls i @MARKED, \
             for [i = 1:4] data index at_start(i, "0.5") using "layer":(column(series[c]."_low")):(column(series[c]."_high")) \
                 with filledcurves ls i @BAND, \
             for [i = 1:4] data index at_start(i, "0.5") using "layer":(column(series[c])) with linespoints ls i @MARKED dt 2
        unset label 1
    }

    set tmargin at screen 0.45; set bmargin at screen 0.15
    set ylabel "squared gradient"
    eval panel(first(0), last(0), "Wide layers: squared gradient, last layer 1")
    set xrange [1:deep]
    set xtics (1, 10, 20, 30, 40)
    set yrange [0.1:1e8]
    set ytics 1e2
    set label 20 "BatchNorm, and in\ntheory: 1.467 a layer" at graph 0.42, graph 0.9 tc ls 12
    set label 21 "LayerNorm and RMSNorm" at graph 0.05, graph 0.2 tc ls 13
    plot for [i = 2:4] data index names[i].", wide" using "layer":"square_low":"square_high" with filledcurves ls i @BAND, \
         data index "BatchNorm, wide" using "layer":"theory" with lines ls 8, \
         for [i = 2:4] data index names[i].", wide" using "layer":"square" with linespoints ls i @MARKED

    unset logscale y
    set ylabel "share of saturated values"
    eval panel(first(1), last(1), "Layers of tanh: saturated after training")
    set logscale x 2
    set xrange [0.92:8.7]
    set xtics (1, 2, 4, 8)
    set xlabel "width of the first weights (Xavier = 1)"
    set yrange [-3:103]
    set ytics 25
    set format y "%g %%"
    set label 20 "no norm" at graph 0.6, graph 0.72 tc ls 11
    do for [i = 2:4] { set label 10 + i names[i] at graph 1.03, graph 0.4 - 0.075 * i tc ls 10 + i point ls i offset 1,0 }
    plot for [i = 1:4] data index names[i].", tanh" using "scale":(100 * column("last_low")):(100 * column("last_high")) \
             with filledcurves ls i @BAND, \
         for [i = 1:4] data index names[i].", tanh" using "scale":(100 * column("last")) with linespoints ls i
    unset logscale x
}
