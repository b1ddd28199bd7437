# The search of learning rates, training loss and validation accuracy by epoch. Data:
# build/examples/digits. A file without a search has two panels.
load 'plots/style.gp'
data = given('plots/convergence').'.dat'
blocks = "\n".system(sprintf("sed -n 's/^# //p' '%s'", swap(data, "'\\''")))."\n"
there(name) = strstrt(blocks, "\n".name."\n") > 0
array all[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "AdaptiveLayerNorm"]
present = ""
do for [i = 1:5] { if (there(all[i])) { present = present." ".i } }
array names[words(present)]; array styles[words(present)]
do for [k = 1:words(present)] { styles[k] = int(word(present, k)); names[k] = all[styles[k]] }
rated = there(names[1]." by rate")
width = rated ? 1840.0 : 1200.0
gap = 0.058
eval figure('convergence', width, 520, \
    "Line: median of 9 seeds; band: their middle half; in brackets: lowest and highest of 9, " \
    ."99.6 % for the median.".(rated ? " Left: last five epochs, nine other seeds; ring: the rate whose median, with those of its neighbours, is lowest." : ""))
if (rated) {
    eval panel(90 / width, 420 / width, "Training loss at the end, by learning rate", "learning rate", \
        "training loss (mean cross-entropy)")
    array best[5]
    stats data index "best rates" using (best[int(column("norm")) + 1] = column("rate"), 0) nooutput
    block(i) = names[i]." by rate"
    set logscale x; set format y powers; set xrange [0.00045:0.071]
    MARKED = ""; eval series("rate", "train_loss"); eval name_ends(5e-5, 4, 1)
    plot @CURVES, for [i = 1:|names|] data index block(i) using \
        (abs(column("rate") / best[styles[i]] - 1) < 0.01 ? column("rate") : NaN):"train_loss" \
            with points ls styles[i] pt 6 ps 2.4
    MARKED = "pn 6"
}
eval panel((rated ? 660 : 90) / width, \
    (rated ? 1030 : 400) / width, rated ? "Training loss, each at its best rate" : "Training loss", \
    "epoch", "training loss (mean cross-entropy)")
set format y powers; set xrange [1:*]
eval series("epoch", "train_loss"); eval name_ends(5e-5, 4, 1); plot @CURVES

eval panel((width - 600) / width, (width - 280) / width, "Validation accuracy", "epoch", "right answers (%)")
array last[|names|]; array least[|names|]; array most[|names|]
do for [i = 1:|names|] {
    stats data index block(i) using (last[i] = column("val_accuracy"), least[i] = column("val_accuracy_min"), \
        most[i] = column("val_accuracy_max"), 0) nooutput
}
shown(i) = sprintf("%s %.1f (%.1f to %.1f)", names[i], last[i], least[i], most[i])
end_font = FINE
set xrange [1:*]
eval series("epoch", "val_accuracy"); eval name_ends(90, 100, 0); plot @CURVES
