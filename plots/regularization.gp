# Validation loss by training loss, and the gap between them, relative to that without a norm, by
# number of images, where most seeds reach that loss. Data: build/examples/regularization.

load 'plots/style.gp'
out = given('plots/regularization'); data = out.'.dat'

array names[6] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "dropout", "BatchNorm and dropout"]
array looks[6] = [1, 2, 3, 4, 5, 2]
array dashes[6] = [1, 1, 1, 1, 1, 2]
shown = 300 # images, on the left
path(i) = sprintf("%s, %d images", names[i], shown)
gaps(i, k) = names[i].", gap at equal ".(k == 1 ? "loss" : "training")
array last[6]
do for [i = 1:6] {
    stats data index gaps(i, 2) using (last[i] = column("share"), seeds = column("seeds"), \
        column("share")) nooutput
}
most(name) = 2 * column("seeds") > seeds ? column(name) : NaN
low = 0.55
high = 1.45
array ends[6]
gap = 0.065

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.21, 0.88)
    set label 1 sprintf("Line: median of %d seeds; band: middle half of the seeds.   ", seeds).what_of(data) \
        at screen 0.075,0.035 tc rgb faint font fine(kind)
    set logscale xy

    eval panel(0.075, 0.3, sprintf("Memorizing %d images", shown))
    set xlabel "training loss (falls to the right)" offset 0,0.4
    set ylabel "validation loss"
    set format "%g"
    set xrange [1:0.003]
    set yrange [0.09:1.1]
    set xtics (1, 0.3, 0.1, 0.03, 0.01, 0.003)
    set ytics (0.1, 0.2, 0.3, 0.5, 1)
    plot for [i = 1:5] data index path(i) using "train":"validation_low":"validation_high" \
             with filledcurves ls i @BAND, \
         for [i = 1:5] data index path(i) using "train":"validation" with linespoints ls i @MARKED

    unset logscale y
    set xrange [92:980]
    set yrange [low:high]
    set xtics (100, 300, 900)
    set ytics 0.2
    set xlabel "images to train with"
    do for [k = 1:2] {
        eval panel((k == 1 ? 0.37 : 0.615), (k == 1 ? 0.565 : 0.81), k == 1 ? "Gap at a training loss of 0.03" : "Gap after equal training")
        set ylabel (k == 1 ? "share of the gap without a norm" : "")
        do for [i = 1:6] { ends[i] = (last[i] - low) / (high - low) }
        eval SPREAD
        do for [i = 1:6] {
            if (k == 2) { set label 10 + i names[i] at graph 1.04, graph ends[i] tc ls 10 + looks[i] }
        }
        plot for [i = 2:5] data index gaps(i, k) using "images":(most("share_low")):(most("share_high")) \
                 with filledcurves ls i @BAND, \
             for [i = 1:6] data index gaps(i, k) using "images":(most("share")) \
                 with linespoints ls looks[i] dt dashes[i]
    }
}
