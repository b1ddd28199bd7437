# Training loss and validation accuracy by epoch, from what build/examples/digits wrote:
#
#     gnuplot plots/convergence.gp                          plots/convergence.dat -> .svg and .png
#     gnuplot -c plots/convergence.gp PREFIX                the same for another PREFIX.dat
#     gnuplot -c plots/convergence.gp PREFIX window TITLE   on the screen (or: terminal)

load 'plots/style.gp'
out    = (exists("ARG1") && strlen(ARG1)) ? ARG1 : 'plots/convergence'
screen = exists("ARG2") ? ARG2 : ''
status = exists("ARG3") ? ARG3 : ''
data   = out . '.dat'

# ---- What the file holds ----

# Comments are read as data: the first says what was run, the others name the blocks.
comments = "\n"
set datafile commentschars ''
set datafile separator "\n"
stats data using (line = stringcolumn(1), \
                  comments = line[1:2] eq '# ' ? comments . line[3:*] . "\n" : comments, 0) nooutput
set datafile separator whitespace
set datafile commentschars '#'
what = comments[strlen("\nwhat: ") + 1 : strstrt(comments[2:*], "\n")]

array names[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "AdaptiveLayerNorm"]
there(i) = strstrt(comments, "\n" . names[i] . "\n") > 0
dash(i) = names[i] eq "no norm" ? 2 : 1

# Seeds, epochs, and the last medians, which the labels tell.
array loss[5]
array accuracy[5]
seeds = 0
epochs = 1
do for [i = 1:5] {
    if (there(i)) {
        stats data index names[i] using (loss[i] = column("train_loss"), \
            accuracy[i] = 100 * column("val_accuracy"), \
            epochs = column("step") > epochs ? column("step") : epochs, column("seeds")) nooutput
        seeds = STATS_max > seeds ? STATS_max : seeds
    }
}

# ---- The two panels ----

set xrange [1:epochs > 1 ? epochs : 2]
set xlabel "epoch"

LOSS = "set title 'Training loss' left; set ylabel 'mean cross-entropy'; \
    set logscale y; set format y powers; set autoscale y; unset key"
ACCURACY = "set title 'Validation accuracy' left; set ylabel 'correct (%)'; \
    unset logscale y; set format y '%g'; set yrange [90:100]; \
    set key bottom right Left reverse samplen 2 spacing 1.15"

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 520)
    set multiplot layout 1,2 margins 0.07,0.98,0.19,0.90 spacing 0.08
    set label 1 what at screen 0.07,0.035 tc rgb faint font ",10"
    eval LOSS
    plot for [i = 1:5] there(i) ? data : NaN index names[i] \
             using "step":"train_loss_low":"train_loss_high" with filledcurves ls i @BAND, \
         for [i = 1:5] there(i) ? data : NaN index names[i] \
             using "step":"train_loss" with lines ls i dt dash(i)
    unset label 1
    eval ACCURACY
    plot for [i = 1:5] there(i) ? data : NaN index names[i] \
             using "step":(100 * column("val_accuracy_low")):(100 * column("val_accuracy_high")) \
             with filledcurves ls i @BAND, \
         for [i = 1:5] there(i) ? data : NaN index names[i] \
             using "step":(100 * column("val_accuracy")) with lines ls i dt dash(i) \
             title sprintf("%s  %.1f %%", names[i], accuracy[i])
    unset multiplot
    unset output
}
