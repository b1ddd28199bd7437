# Gradients by block at the start, and the loss by step, of deep transformers by placement of the
# norms. Data: build/examples/deep_transformer.

load 'plots/style.gp'
out = given('plots/deep_transformer'); data = out.'.dat'

array names[4] = ["pre-norm", "post-norm", "sandwich", "DeepNorm"]
array rates[4]
array scores[4]
seeds = 0
blocks = 1
steps = 1
low = 1e9
high = 0.0
do for [i = 1:4] {
    stats data index names[i].", training" using (seeds = column("seeds"), steps = column("step"), rates[i] = column("rate"), \
        scores[i] = column("validation"), 1) nooutput
    stats data index names[i].", gradients" using (blocks = column("block"), column("gradient_low")) nooutput
    low = STATS_min < low ? STATS_min : low
    stats data index names[i].", gradients" using "gradient_high" nooutput
    high = STATS_max > high ? STATS_max : high
}

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half.\n", seeds).what_of(data) \
        at screen 0.065,0.055 tc rgb faint font fine(kind)
    eval panel(0.065, 0.44, "Gradient at the start")
    set logscale y
    set format y powers
    set xrange [1:blocks]
    set yrange [0.5 * low:8 * high]
    set xtics (1, 6, 12, 18, 24)
    set xlabel "block, from the input" offset 0,0.4
    set ylabel "|gradient| of a feed-forward weight"
    do for [i = 1:4] {
        set label 10 + i names[i] at graph 0.05 + 0.5 * (i > 2), graph 1.03 - 0.068 * (i > 2 ? i - 2 : i) tc ls 10 + i \
            point ls i offset 1,0
    }
    plot for [i = 1:4] data index names[i].", gradients" using "block":"gradient_low":"gradient_high" with filledcurves ls i @BAND, \
         for [i = 1:4] data index names[i].", gradients" using "block":"gradient" with linespoints ls i @MARKED
    unset logscale y
    set format y "%g"
    eval panel(0.52, 0.965, "Training loss, each at its own best rate")
    set xrange [0:steps]
    set xtics auto
    set yrange [2.3:4.6]
    set xlabel "step"
    set ylabel "nats a character"
    do for [i = 1:4] {
        set label 10 + i sprintf("%s, rate %g: %.2f in the end, new text", names[i], rates[i], scores[i]) \
            at graph 0.22, graph 1.03 - 0.068 * i tc ls 10 + i point ls i offset 1,0
    }
    plot for [i = 1:4] data index names[i].", training" using "step":"loss_low":"loss_high" with filledcurves ls i @BAND, \
         for [i = 1:4] data index names[i].", training" using "step":"loss" with linespoints ls i @MARKED
}
