# Validation loss by training loss, and the gap between them as a share of that without a norm.
# Data: build/examples/regularization.

load 'plots/style.gp'
out = given('plots/regularization'); data = out.'.dat'

array names[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "dropout"]
array measures[2] = ["at equal training loss", "after equal training"]
stats data index "gap after equal training" using (seeds = column("seeds"), 1) nooutput

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 460, 0.23, 0.87)
    set label 1 sprintf("Line or mark: median of %d seeds; band or bar: their middle half.   ", seeds).what_of(data) \
        at screen 0.075,0.035 tc rgb faint font fine(kind)
    eval panel(0.095, 0.42, "Memorizing the training images")
    set logscale xy
    set xlabel "training loss (falls to the right)" offset 0,0.4
    set ylabel "validation loss"
    set xrange [1:0.003]
    set yrange [0.12:1.2]
    set xtics (1, 0.3, 0.1, 0.03, 0.01, 0.003)
    set ytics (0.15, 0.2, 0.3, 0.5, 1)
    do for [i = 1:5] { set label 10 + i names[i] at graph 0.6, graph 1.02 - 0.075 * i tc ls 10 + i point ls i offset 1,0 }
    plot for [i = 1:5] data index names[i] using "train":"validation_low":"validation_high" with filledcurves ls i @BAND, \
         for [i = 1:5] data index names[i] using "train":"validation" with linespoints ls i @MARKED
    unset logscale
    unset xlabel

    eval panel(0.52, 0.975, "Gap to the validation loss (no norm: 1)")
    set ylabel "gap, as a multiple of no norm's"
    set xrange [0.3:9.7]
    set xtics ("at a training loss of 0.03" 2.5, "after equal training" 7.5) scale 0
    set yrange [0.6:1.4]
    set ytics 0.1
    plot 1 with lines ls 8, \
         for [k = 1:2] for [i = 2:5] data index "gap ".measures[k] using (5 * k - 6 + i): \
             (column("kind") == i - 1 ? column("share") : NaN):"share_low":"share_high" with yerrorbars ls i lw 2.2 ps 1.3
    set xtics auto scale 0.6
}
