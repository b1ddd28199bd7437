# The effective rank of a batch by layer, at the start, and at the last layer by width, by norm.
# Data: build/examples/rank.

load 'plots/style.gp'
out = given('plots/rank'); data = out.'.dat'

array norms[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array kinds[2] = ["linear", "ReLU"]
array titles[2] = ["Without activation", "With ReLU"]
array last[4]
seeds = 0
layers = 1
width = 1
do for [i = 1:4] {
    stats data index norms[i].", linear" using (seeds = column("seeds"), layers = column("layer"), \
        width = column("width"), 1) nooutput
}
stats data index "BatchNorm, linear, widths" using (widest = column("width"), 1) nooutput

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half. Dashed: √width.   ", seeds).what_of(data) \
        at screen 0.06,0.035 tc rgb faint font fine(kind)
    set logscale y
    set yrange [0.93:1.15 * width]
    set ytics (1, 2, 4, 8, 16, 32, 64, 128)
    do for [k = 1:2] {
        eval panel((k == 1 ? 0.06 : 0.385), (k == 1 ? 0.315 : 0.64), titles[k])
        set xrange [1:layers]
        set xtics 20
        set xlabel "layer" offset 0,0.4
        set ylabel (k == 1 ? "effective rank of the batch" : "") offset 1,0
        do for [i = 1:4] {
            set label 10 + i norms[i] at graph 0.55, graph 1.02 - 0.068 * i tc ls 10 + i point ls i offset 1,0
        }
        plot sqrt(width) with lines ls 8, \
             for [i = 1:4] data index norms[i].", ".kinds[k] using "layer":"rank_low":"rank_high" \
                 with filledcurves ls i @BAND, \
             for [i = 1:4] data index norms[i].", ".kinds[k] using "layer":"rank" with linespoints ls i @MARKED
    }
    eval panel(0.71, 0.965, sprintf("At layer %d, by width", layers))
    set logscale x
    set xrange [7:1.15 * widest]
    set yrange [0.93:1.15 * width]
    set xtics (8, 16, 32, 64, 128)
    set xlabel "features and samples"
    set ylabel ""
    set label 11 "BatchNorm, ReLU" at 34,10 right tc ls 12
    set label 12 "linear" at 45,4.6 left tc ls 12
    set label 13 "all others" at 9,1.2 left tc rgb ink
    plot [w = 7:1.15 * widest] sqrt(w) with lines ls 8, \
         for [i = 1:4] for [k = 1:2] data index norms[i].", ".kinds[k].", widths" \
             using "width":"rank_low":"rank_high" with filledcurves ls i @BAND, \
         for [i = 1:4] for [k = 1:2] data index norms[i].", ".kinds[k].", widths" using "width":"rank" \
             with linespoints ls i dt 3 - k
    unset logscale x
    set xtics auto
}
