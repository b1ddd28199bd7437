# The search of learning rates, training loss and validation accuracy by epoch, from the data of
# build/examples/digits:
#
#     gnuplot plots/convergence.gp                          plots/convergence.dat -> .svg
#     gnuplot -c plots/convergence.gp PREFIX                the same for another PREFIX.dat

load 'plots/style.gp'
out = given('plots/convergence'); data = out.'.dat'

# The norms whose blocks the file has.
blocks = "\n".system(sprintf("sed -n 's/^# //p' '%s'", swap(data, "'\\''")))."\n"
there(name) = strstrt(blocks, "\n".name."\n") > 0
array names[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "AdaptiveLayerNorm"]
tried(i) = names[i]." by rate"
shown = ""
do for [i = 1:5] { if (there(names[i])) { shown = shown." ".i } }
nth(k) = int(word(shown, k))
rated = there(tried(nth(1)))
count = words(shown)

# Where the curves end, for their names.
array ends[count]
array last[3 * count]
array lowest[count]
array highest[count]
do for [k = 1:count] {
    i = nth(k)
    stats data index names[i] using (last[k] = column("train_loss"), last[count + k] = column("val_accuracy"), \
        lowest[k] = column("val_accuracy_min"), highest[k] = column("val_accuracy_max"), 0) nooutput
    if (rated) { stats data index tried(i) using (last[2 * count + k] = column("train_loss"), 0) nooutput }
}
array best_rates[5]
if (rated) { stats data index "best rates" using (best_rates[int(column("norm")) + 1] = column("rate"), 0) nooutput }
best(i) = best_rates[i]
bottom = log10(5e-5); top = log10(4)
height(loss) = (log10(loss) - bottom) / (top - bottom)
name_ends(from) = sprintf("do for [k = 1:count] { ends[k] = height(last[%d + k]) }; ", from).SPREAD. \
    "; do for [k = 1:count] { set label 10 + k names[nth(k)] at graph 1.02, graph ends[k] tc ls 10 + nth(k) }"

set xlabel offset 0,0.4
width = rated ? 1840.0 : 1200.0
begins(panel) = (panel == 0 ? 90 : panel == 1 ? (rated ? 660 : 90) : width - 600) / width
stops(panel) = (panel == 0 ? 420 : panel == 1 ? (rated ? 1030 : 450) : width - 280) / width

do for [kind in "svg png"] {
    eval canvas(kind, out, width, 520, 0.235, 0.88)
    gap = 0.058
    set label 1 "Line: median of 9 seeds; band: their middle half; in brackets: lowest and highest of 9, 99.6 % for the median." \
        .(rated ? " Left: last five epochs, nine other seeds; ring: the rate whose median, with those of its neighbours, is lowest." : '') \
        at screen 0.05,0.075 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.05,0.03 tc rgb faint font fine(kind)
    set logscale y
    set format y powers
    set yrange [10 ** bottom : 10 ** top]
    set ylabel "training loss (mean cross-entropy)"
    if (rated) {
        eval panel(begins(0), stops(0), "Training loss at the end, by learning rate")
        set xlabel "learning rate"
        set logscale x
        set xrange [0.00045:0.071]
        eval name_ends(2 * count)
        plot for [k = 1:count] data index tried(nth(k)) \
                 using "rate":"train_loss_low":"train_loss_high" with filledcurves ls nth(k) @BAND, \
             for [k = 1:count] data index tried(nth(k)) using "rate":"train_loss" with linespoints ls nth(k), \
             for [k = 1:count] data index tried(nth(k)) using \
                 (abs(column("rate") / best(nth(k)) - 1) < 0.01 ? column("rate") : NaN):"train_loss" \
                 with points ls nth(k) pt 6 ps 2.4
        unset logscale x
    }
    eval panel(begins(1), stops(1), rated ? "Training loss, each at its best rate" : "Training loss")
    set xrange [1:*]
    set xlabel "epoch"
    eval name_ends(0)
    plot for [k = 1:count] data index names[nth(k)] \
             using "epoch":"train_loss_low":"train_loss_high" with filledcurves ls nth(k) @BAND, \
         for [k = 1:count] data index names[nth(k)] using "epoch":"train_loss" with linespoints ls nth(k) @MARKED

    eval panel(begins(2), stops(2), "Validation accuracy")
    set ylabel "right answers (%)"
    unset logscale y
    set format y "%g"
    set yrange [90:100]
    do for [k = 1:count] { ends[k] = (last[count + k] - 90) / 10 }
    eval SPREAD
    do for [k = 1:count] {
        set label 10 + k sprintf("%s %.1f (%.1f to %.1f)", names[nth(k)], last[count + k], lowest[k], highest[k]) \
            at graph 1.02, graph ends[k] tc ls 10 + nth(k) font fine(kind)
    }
    plot for [k = 1:count] data index names[nth(k)] \
             using "epoch":"val_accuracy_low":"val_accuracy_high" with filledcurves ls nth(k) @BAND, \
         for [k = 1:count] data index names[nth(k)] using "epoch":"val_accuracy" with linespoints ls nth(k) @MARKED
}
