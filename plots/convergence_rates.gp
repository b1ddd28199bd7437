# Training loss by epoch at each norm's best learning rate, and steps to 95 % by rate with two
# optimizers. Data: build/examples/convergence.

load 'plots/style.gp'
out = given('plots/convergence_rates'); data = out.'.dat'

array names[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array kinds[2] = ["gradient descent", "Adam"]
losses(k, i) = kinds[k].", ".names[i].", loss"
steps(k, i) = kinds[k].", ".names[i].", steps"
array last[4]
array rate[4]
top = 1
do for [i = 1:4] {
    stats data index losses(1, i) using (rate[i] = column("rate"), last[i] = column("loss"), \
        epochs = column("epoch"), seeds = column("seeds"), column("loss")) nooutput
    top = STATS_max > top ? STATS_max : top
    bottom = i == 1 || STATS_min < bottom ? STATS_min : bottom
}
stats data index steps(1, 1) using (limit = column("limit"), limit) nooutput
bottom = 0.5 * bottom
top = 1.5 * top
array ends[4]
gap = 0.07

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.21, 0.88)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half (right: lowest to highest of three); circle: best rate.\n", \
        seeds).what_of(data) \
        at screen 0.075,0.055 tc rgb faint font fine(kind)
    set logscale y

    eval panel(0.075, 0.275, "Each at its own best rate")
    set xlabel "epoch, gradient descent" offset 0,0.4
    set ylabel "training loss"
    set format x "%g"
    set format y powers
    set xtics epochs > 10 ? 5 : 1
    set xrange [1:epochs > 1 ? epochs : 2]
    set yrange [bottom:top]
    do for [i = 1:4] { ends[i] = log(last[i] / bottom) / log(top / bottom) }
    eval SPREAD
    do for [i = 1:4] {
        set label 10 + i sprintf("%s, rate %.2g", names[i], rate[i]) at graph 1.03, graph ends[i] tc ls 10 + i
    }
    plot for [i = 1:4] data index losses(1, i) using "epoch":"loss_low":"loss_high" \
             with filledcurves ls i @BAND, \
         for [i = 1:4] data index losses(1, i) using "epoch":"loss" with linespoints ls i @MARKED

    do for [k = 1:2] {
        eval panel((k == 1 ? 0.505 : 0.785), (k == 1 ? 0.725 : 0.985), k == 1 ? "Gradient descent: steps to 95 %" : "Adam: steps to 95 %")
        set xlabel "learning rate"
        set ylabel (k == 1 ? "steps until 95 % are right" : "")
        set logscale x
        set format x powers
        set xtics auto
        set format y "%g"
        set ytics (10, 20, 50, 100, 200, 400)
        set xrange [k == 1 ? 0.06 : 0.00094 : k == 1 ? 4.4 : 0.068]
        set yrange [17:limit * 1.25]
        set label 2 "not reached" at graph 0.02, first limit * 1.12 tc rgb faint font fine(kind)
        plot for [i = 1:4] data index steps(k, i) using "rate":"steps_min":"steps_max" \
                 with filledcurves ls i @BAND, \
             for [i = 1:4] data index steps(k, i) using "rate":"steps" with linespoints ls i @MARKED, \
             for [i = 1:4] data index steps(k, i) using "rate":(column("best") == 1 ? \
                 column("steps") : NaN) with points ls i pt 7 ps 1.4
        unset logscale x
        set ytics auto
    }
}
