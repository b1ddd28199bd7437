# Training loss and validation accuracy by epoch, and the search of learning rates, from the data of
# build/examples/digits:
#
#     gnuplot plots/convergence.gp                          plots/convergence.dat -> .svg
#     gnuplot -c plots/convergence.gp PREFIX                the same for another PREFIX.dat

load 'plots/style.gp'
out = given('plots/convergence'); data = out.'.dat'

# ---- Content of the file ----

# Comments are read as data: the first describes the run, the others name the blocks.
comments = "\n"
set datafile commentschars ''
set datafile separator "\n"
stats data using (line = stringcolumn(1), \
                  comments = line[1:2] eq '# ' ? comments . line[3:*] . "\n" : comments, 0) nooutput
set datafile separator whitespace
set datafile commentschars '#'
what = comments[strlen("\nwhat: ") + 1 : strstrt(comments[2:*], "\n")]

array names[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "AdaptiveLayerNorm"]
there(name) = strstrt(comments, "\n" . name . "\n") > 0
tried(i) = names[i] . " by rate"
count = 0
do for [i = 1:5] { if (there(names[i])) { count = count + 1 } }
array shown[count]
count = 0
trials = 0
do for [i = 1:5] { if (there(names[i])) { count = count + 1; shown[count] = i } }
do for [i = 1:5] { if (there(tried(i))) { trials = trials + 1 } }

# The last medians, for the labels, and the ranges, for the axes.
array loss[5]
array accuracy[5]
seeds = 0
epochs = 1
lowest_loss = 1e300
highest_loss = 1e-300
lowest_accuracy = 1
keep(i, l, a, step, n) = (loss[i] = l, accuracy[i] = 100 * a, \
    epochs = step > epochs ? step : epochs, seeds = n > seeds ? n : seeds, 0)
smaller(a, b) = a < b ? a : b
larger(a, b) = a > b ? a : b
do for [k = 1:count] {
    i = shown[k]
    stats data index names[i] using (keep(i, column("train_loss"), column("val_accuracy"), \
        column("step"), column("seeds")), column("train_loss_low")) nooutput
    lowest_loss = smaller(lowest_loss, STATS_min)
    stats data index names[i] using "train_loss_high" nooutput
    highest_loss = larger(highest_loss, STATS_max)
    stats data index names[i] using "val_accuracy_low" nooutput
    lowest_accuracy = smaller(lowest_accuracy, STATS_up_quartile)
}
do for [i = 1:5] {
    if (there(tried(i))) {
        stats data index tried(i) using "train_loss_high" nooutput
        lowest_loss = smaller(lowest_loss, STATS_min)
        highest_loss = larger(highest_loss, STATS_max)
        stats data index tried(i) using "rate" nooutput
        lowest_rate = STATS_min
        highest_rate = STATS_max
    }
}
loss_bottom = log10(lowest_loss) - 0.2
loss_top = log10(highest_loss) + 0.2
accuracy_bottom = lowest_accuracy > 0.95 ? 90 : lowest_accuracy > 0.9 ? 80 : \
                  lowest_accuracy > 0.7 ? 50 : 0

# ---- The panels: two, and a third one before them if rates were searched ----

rated = trials > 0
set xlabel offset 0,0.4
array ends[count]
width = rated ? 1560.0 : 1200.0
begins(panel) = (panel == 0 ? 90 : panel == 1 ? (rated ? 500 : 94) : width - 425) / width
ends_at(panel) = (panel == 0 ? 410 : panel == 1 ? (rated ? 890 : 516) : width - 85) / width

do for [kind in "svg png"] {
    eval canvas(kind, out, width, 520, 0.235, 0.88)
    gap = 0.058
    set label 1 "Line: median of ".sprintf("%d", seeds)." seeds; band: their middle half." \
        .(rated ? " Left: the last five epochs of three other seeds, the worst of them; ring: the best rate, used in the other panels." : '') \
        at screen begins(rated ? 0 : 1),0.075 tc rgb faint font fine(kind)
    set label 2 what at screen begins(rated ? 0 : 1),0.03 tc rgb faint font fine(kind)

    set logscale y
    set format y powers
    set yrange [10 ** loss_bottom : 10 ** loss_top]
    if (rated) {
        eval panel(begins(0), ends_at(0), "At the end, by learning rate")
        set xlabel "learning rate"
        set ylabel "mean cross-entropy, worst of 3 seeds"
        set logscale x
        set xrange [lowest_rate / 1.2 : highest_rate * 1.2]
        plot for [k = 1:count] data index tried(shown[k]) \
                 using "rate":"train_loss_high" with linespoints ls shown[k], \
             for [k = 1:count] data index tried(shown[k]) using "rate":(column("best") == 1 ? column("train_loss_high") : NaN) \
                 with points ls shown[k] pt 6 ps 2.4
        unset logscale x
    }

    eval panel(begins(1), ends_at(1), rated ? "Training loss, each at its best rate" : "Training loss")
    set xrange [1:larger(epochs, 2)]
    set xlabel "epoch"
    set ylabel "mean cross-entropy"
    do for [k = 1:count] { ends[k] = (log10(loss[shown[k]]) - loss_bottom) / (loss_top - loss_bottom) }
    eval SPREAD
    do for [k = 1:count] {
        i = shown[k]
        set label 10 + k names[i] at graph 1.02, graph ends[k] tc ls 10 + i
    }
    plot for [k = 1:count] data index names[shown[k]] \
             using "step":"train_loss_low":"train_loss_high" with filledcurves ls shown[k] @BAND, \
         for [k = 1:count] data index names[shown[k]] \
             using "step":"train_loss" with linespoints ls shown[k] @MARKED

    eval panel(begins(2), ends_at(2), "Validation accuracy")
    set ylabel "correct (%)"
    unset logscale y
    set format y "%g"
    set yrange [accuracy_bottom : 100]
    do for [k = 1:count] { ends[k] = (accuracy[shown[k]] - accuracy_bottom) / (100 - accuracy_bottom) }
    eval SPREAD
    do for [k = 1:count] {
        i = shown[k]
        set label 10 + k sprintf("%.1f %%", accuracy[i]) at graph 1.02, graph ends[k] tc ls 10 + i
    }
    plot for [k = 1:count] data index names[shown[k]] \
             using "step":(100 * column("val_accuracy_low")):(100 * column("val_accuracy_high")) \
             with filledcurves ls shown[k] @BAND, \
         for [k = 1:count] data index names[shown[k]] \
             using "step":(100 * column("val_accuracy")) with linespoints ls shown[k] @MARKED
}
