# Gradients by layer, and their spread in training, from the data of build/examples/gradient_flow:
#
#     gnuplot plots/gradient_flow.gp               plots/gradient_flow.dat -> .svg
#     gnuplot -c plots/gradient_flow.gp PREFIX     the same for another PREFIX.dat

load 'plots/style.gp'
out = given('plots/gradient_flow'); data = out.'.dat'

array norms[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
gains = "0.5 1 2"
array titles[3] = ["Small weights: at the start", "He's weights: at the start", "Large weights: at the start"]
array later[3] = ["Small weights: in training", "He's weights: in training", "Large weights: in training"]
start(i, g)    = norms[i] . ", gain " . word(gains, g) . ", start"
training(i, g) = norms[i] . ", gain " . word(gains, g) . ", training"
first(g) = 0.062 + 0.328 * (g - 1)
last(g)  = first(g) + 0.195

# The last values of the curves, for the labels, and the last epoch with finite values.
array at_start[12]
array at_last[12]
array until[12]
layers = 1
epochs = 1
do for [g = 1:3] { do for [i = 1:4] {
    n = 4 * g + i - 4
    stats data index start(i, g) using (layers = column("layer"), at_start[n] = column("gradient"), 0) \
        nooutput
    stats data index training(i, g) using (epochs = column("epoch"), column("spread") > 0 ? \
        (until[n] = column("epoch"), at_last[n] = column("spread")) : 0, 0) nooutput
} }
array ends[4]
gap = 0.07

do for [kind in "svg png"] {
    eval canvas(kind, out, 1300, 760, 0.575, 0.93)
    eval "set tics font '" . fine(kind) . "'"
    set label 1 "Weights 0.5, 1 and 2 times as wide as He et al. would have them. Line: median; band: middle half of the seeds.   " . what_of(data) \
        at screen 0.02,0.022 tc rgb faint font fine(kind)
    set logscale y
    set format y powers

    set xrange [1:layers]
    set xtics (1, 6, 12, 18, 24)
    set yrange [1e-12:1e6]
    set ytics 1e3
    set xlabel "layer, from the input" offset 0,0.5 font fine(kind)
    do for [g = 1:3] {
        eval panel(first(g), last(g), titles[g])
        set ylabel g == 1 ? "gradient at the start (r.m.s.)" : "" offset 1,0 font fine(kind)
        do for [i = 1:4] { ends[i] = (log10(at_start[4 * g + i - 4]) + 12) / 18 }
        eval SPREAD
        do for [i = 1:4] {
            set label 10 + i norms[i] at graph 1.02, graph ends[i] tc ls 10 + i font fine(kind)
        }
        plot for [i = 1:4] data index start(i, g) \
                 using "layer":"gradient_low":"gradient_high" with filledcurves ls i @BAND, \
             for [i = 1:4] data index start(i, g) using "layer":"gradient" with linespoints ls i @MARKED
    }

    set tmargin at screen 0.455; set bmargin at screen 0.115
    set xrange [0:epochs]
    set xtics autofreq
    set yrange [1:1e9]
    set ytics 10 ** 3
    set xlabel "epoch" offset 0,0.5 font fine(kind)
    do for [g = 1:3] {
        eval panel(first(g), last(g), later[g])
        set ylabel g == 1 ? "largest / smallest gradient of the layers" : "" offset 1,0 font fine(kind)
        do for [i = 1:4] {
            n = 4 * g + i - 4
            ends[i] = log10(at_last[n]) / 9
            if (until[n] < epochs) {
                set label 20 + i norms[i]." diverges" at graph 0.05, graph ends[i] tc ls 10 + i font fine(kind)
                ends[i] = -1
            }
        }
        eval SPREAD
        do for [i = 1:4] {
            set label 10 + i ends[i] < -0.5 ? "" : norms[i] at graph 1.02, graph ends[i] \
                tc ls 10 + i font fine(kind)
        }
        if (g == 3) { set label 30 "claimed: below 10" at graph 0.05, first 17 left tc rgb faint font fine(kind) }
        plot 10 with lines ls 8, \
             for [i = 1:4] data index training(i, g) \
                 using "epoch":"spread_low":"spread_high" with filledcurves ls i @BAND, \
             for [i = 1:4] data index training(i, g) using "epoch":"spread" with linespoints ls i @MARKED, \
             data index training(1, g) every ::0::0 using "epoch":"spread" with points ls 1
    }
    unset multiplot
}
