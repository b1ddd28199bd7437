# The last block's gradient by depth, training with 24 blocks, and what each block contributes, by
# the place of the norms. Data: build/examples/placement.

load 'plots/style.gp'
out = given('plots/placement'); data = out.'.dat'

array names[4] = ["pre-norm", "post-norm", "DeepNorm", "LayerNorm scaling"]
array style[4] = [3, 5, 4, 2]
array scores[4]
do for [i = 1:4] {
    stats data index names[i].", training" using (seeds = column("seeds"), steps = column("step"), \
        scores[i] = column("validation"), 1) nooutput
}
stats data index "pre-norm, contributions" using (blocks = column("block"), 1) nooutput
stats data index "pre-norm, gradient" using (deepest = column("depth"), 1) nooutput
least = 1e-4 # what is below is drawn here
up(x) = x > least ? x : least

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.23, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half. Contributions below %g are drawn there.\n", seeds, least) \
        . what_of(data) at screen 0.065,0.06 tc rgb faint font fine(kind)
    set ylabel "norm of the gradient"
    eval panel(0.075, 0.285, "Untrained: gradient, last block")
    set logscale xy
    set format y powers
    set xtics (2, 4, 8, 16, 32)
    set xrange [2:deepest]
    set xlabel "blocks" offset 0,0.4
    stats data index "post-norm, gradient" using "gradient_high" nooutput
    set yrange [*:STATS_max * 4]
    do for [i = 1:2] { set label 10 + i names[i] at graph 0.08, graph 1.02 - 0.07 * i tc ls 10 + style[i] point ls style[i] offset 1,0 }
    plot for [i = 1:2] data index names[i].", gradient" using "depth":"gradient_low":"gradient_high" with filledcurves ls style[i] @BAND, \
         for [i = 1:2] data index names[i].", gradient" using "depth":"gradient" with linespoints ls style[i]
    unset label 1
    unset logscale

    set ylabel "training loss (nats)"
    eval panel(0.365, 0.62, sprintf("Training %d blocks: nats a character", blocks))
    set format y "%g"
    set xrange [0:steps]
    set xtics 100
    set yrange [2.2:5]
    set xlabel "step"
    do for [i = 1:4] {
        set label 10 + i sprintf("%s: %.2f on new text", names[i], scores[i]) \
            at graph 0.08, graph 1.03 - 0.07 * i tc ls 10 + style[i] point ls style[i] offset 1,0
    }
    plot for [i = 1:4] data index names[i].", training" using "step":"loss_low":"loss_high" with filledcurves ls style[i] @BAND, \
         for [i = 1:4] data index names[i].", training" using "step":"loss" with linespoints ls style[i] @MARKED

    set ylabel "rise of the loss (nats)"
    eval panel(0.715, 0.985, "Rise of the loss without a block")
    set logscale y
    set format y powers
    set xrange [1:blocks]
    set yrange [least:10]
    set xtics (1, 6, 12, 18, 24)
    set xlabel "block, from the input"
    plot for [i in "1 3 4"] data index names[i + 0].", contributions" using "block":(up(column("rise_low"))):(up(column("rise_high"))) \
             with filledcurves ls style[i + 0] @BAND, \
         for [i in "1 3 4"] data index names[i + 0].", contributions" using "block":(up(column("rise"))) \
             with linespoints ls style[i + 0] @MARKED
    unset logscale y
}
