# The last block's gradient by depth, and training with and without a warm-up, for pre-norm and
# post-norm, from the data of build/examples/placement:
#
#     gnuplot plots/placement.gp               plots/placement.dat -> .svg
#     gnuplot -c plots/placement.gp PREFIX     the same for another PREFIX.dat

load 'plots/style.gp'
out = given('plots/placement'); data = out.'.dat'

array name[2] = ["pre-norm", "post-norm"]
style(p) = p == 1 ? 3 : 5
slope(p) = p == 1 ? slope_pre : slope_post
stats data index "slopes" using (slope_pre = column("pre_norm"), slope_post = column("post_norm")) nooutput

# Last points of the curves: gradient [placement], loss [2 placement - warm].
array gradient[2]
array loss[4]
array rate[4]
array ends[4]
do for [p = 1:2] {
    stats data index "gradient ".name[p] using (deepest = column("depth"), draws = column("seeds"), \
        gradient[p] = column("gradient")) nooutput
    do for [w = 0:1] {
        stats data index "training ".name[p].(w ? " warm" : " cold") using (steps = column("step"), \
            seeds = column("seeds"), rate[2 * p - w] = column("rate"), loss[2 * p - w] = column("loss")) nooutput
    }
}
stats data index "training pre-norm warm" using "loss_low" nooutput
bottom = floor(10 * STATS_min) / 10.0
top = 4.2
position(l) = (l - bottom) / (top - bottom)

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.22, 0.88)
    set label 1 sprintf("Line: median; band: middle half. Left: %d draws. Right: %d seeds, each at its own best learning rate, which is named.", draws, seeds) \
        at screen 0.072,0.055 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.072,0.018 tc rgb faint font fine(kind)

    set lmargin at screen 0.072; set rmargin at screen 0.36
    eval headline("Gradient of the last block, untrained")
    set xlabel "depth (blocks)" offset 0,0.4
    set ylabel "norm of the gradient"
    set logscale xy
    set format x "%g"
    set format y powers
    set xtics (2, 4, 8, 16, 32, 64)
    set xrange [2:deepest]
    set yrange [0.005:0.3]
    do for [p = 1:2] {
        set label 10 + p sprintf("%s:", name[p]) at deepest * 1.1,gradient[p] * 1.15 tc ls 10 + style(p)
        set label 12 + p sprintf("slope %.2f", slope(p)) at deepest * 1.1,gradient[p] / 1.15 tc ls 10 + style(p)
    }
    plot for [p = 1:2] data index "gradient ".name[p] using "depth":"gradient_low":"gradient_high" \
             with filledcurves ls style(p) @BAND, \
         for [p = 1:2] data index "gradient ".name[p] using "depth":"gradient" \
             with linespoints ls style(p)
    unset label 1; unset label 2

    eval panel(0.55, 0.8, "Training loss with and without warm-up")
    set xlabel "step"
    set ylabel "nats a character"
    unset logscale
    set format "%g"
    set xtics autofreq 0,steps > 200 ? 100 : 5
    set xrange [0:steps]
    set yrange [bottom:top]
    gap = 0.062
    do for [k = 1:4] { ends[k] = position(loss[k]) }
    eval SPREAD
    do for [p = 1:2] {
        set label 10 + p sprintf("%s with, %g", name[p], rate[2 * p - 1]) at graph 1.02, graph ends[2 * p - 1] tc ls 10 + style(p)
        set label 12 + p sprintf("%s without, %g", name[p], rate[2 * p]) at graph 1.02, graph ends[2 * p] tc ls 10 + style(p)
    }
    plot for [p = 1:2] data index "training ".name[p]." warm" using "step":"loss_low":"loss_high" \
             with filledcurves ls style(p) @BAND, \
         for [p = 1:2] data index "training ".name[p]." cold" using "step":"loss_low":"loss_high" \
             with filledcurves ls style(p) @BAND, \
         for [p = 1:2] data index "training ".name[p]." warm" using "step":"loss" with linespoints ls style(p) @MARKED, \
         for [p = 1:2] data index "training ".name[p]." cold" using "step":"loss" with linespoints ls style(p) @MARKED dt 2
}
