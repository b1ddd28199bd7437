# The size of a deep network's activations by layer, at the start and after training, by norm and
# scale of the initial weights. Data: build/examples/activation_scale.

load 'plots/style.gp'
out = given('plots/activation_scale'); data = out.'.dat'

array norms[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array gains[3] = ["0.5", "1", "2"]
array dashes[3] = [3, 2, 1]
array times[2] = ["start", "trained"]
array titles[2] = ["At the start", "After training"]
seeds = 0
layers = 1
do for [g = 1:3] {
    stats data index "no norm, ".gains[g].", start" using (seeds = column("seeds"), layers = column("layer"), 1) nooutput
}

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half.   ", seeds).what_of(data) \
        at screen 0.07,0.035 tc rgb faint font fine(kind)
    set logscale y
    set format y powers
    set yrange [1e-8:1e8]
    set ytics 1e2
    set xrange [1:layers]
    set xtics (1, 6, 12, 18, 24)
    set xlabel "layer, from the input" offset 0,0.4
    do for [t = 1:2] {
        eval panel((t == 1 ? 0.07 : 0.56), (t == 1 ? 0.45 : 0.94), titles[t])
        set ylabel (t == 1 ? "root mean square of the activations" : "")
        do for [i = 1:4] {
            set label 10 + i norms[i] \
                at graph 0.05, graph 1.03 - 0.068 * i tc ls 10 + i point ls i offset 1,0
        }
        drawn = t == 1 ? 3 : 2 # without a norm the last ends in no number
        set label 20 (t == 1 ? "weights twice as wide" : "weights twice as wide: no number") \
            at graph 0.98, graph (t == 1 ? 0.68 : 0.9) right tc ls 11
        set label 21 "half as wide" at graph 0.36, graph 0.12 right tc ls 11
        plot for [i = 2:4] for [g = 1:3] data index norms[i].", ".gains[g].", ".times[t] \
                 using "layer":"size_low":"size_high" with filledcurves ls i @BAND, \
             for [g = 1:drawn] data index norms[1].", ".gains[g].", ".times[t] \
                 using "layer":"size_low":"size_high" with filledcurves ls 1 @BAND, \
             for [g = 1:drawn] data index norms[1].", ".gains[g].", ".times[t] \
                 using "layer":"size" with linespoints ls 1 dt dashes[g] @MARKED, \
             for [i = 2:4] for [g = 1:3] data index norms[i].", ".gains[g].", ".times[t] \
                 using "layer":"size" with linespoints ls i dt dashes[g] @MARKED
    }
}
