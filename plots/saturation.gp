# The share of saturated activations by scale of the initial weights, at the start and after
# training, and the loss, by norm. Data: build/examples/saturation.

load 'plots/style.gp'
out = given('plots/saturation'); data = out.'.dat'

array norms[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array columns[3] = ["first", "last", "loss"]
array titles[3] = ["Saturated at the start", "Saturated after training", "Training loss of the last epoch"]
seeds = 0
stats data index "no norm" using (seeds = column("seeds"), 1) nooutput
part(c, what, factor) = factor * column(columns[c].what)

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 450, 0.22, 0.86)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half. Each at its own rate.   ", seeds).what_of(data) \
        at screen 0.07,0.035 tc rgb faint font fine(kind)
    set logscale x 2
    set xrange [0.46:8.7]
    set xtics ("½" 0.5, "1" 1, "2" 2, "4" 4, "8" 8)
    set xlabel "width of the first weights (Xavier = 1)" offset 0,0.4
    do for [c = 1:3] {
        eval panel(0.07 + 0.325 * (c - 1), 0.315 + 0.325 * (c - 1), titles[c])
        factor = c == 3 ? 1 : 100
        if (c == 3) {
            set logscale y
            set yrange [0.01:3]
            set format y "%g"
        } else {
            set yrange [-3:103]
            set format y "%g %%"
        }
        set ylabel (c == 1 ? "values with |tanh| > 0.99" : "") offset 1,0
        do for [i = 1:4] {
            unset label 10 + i
            if (c == 1) { set label 10 + i norms[i] at graph 0.05, graph 1.0 - 0.072 * i tc ls 10 + i point ls i offset 1,0 }
        }
        plot for [i = 1:4] data index norms[i] using "gain":(part(c, "_low", factor)):(part(c, "_high", factor)) \
                 with filledcurves ls i @BAND, \
             for [i = 1:4] data index norms[i] using "gain":(part(c, "", factor)) with linespoints ls i
    }
    unset logscale xy
    set xtics auto
    set format y "%g"
}
