# Training and validation loss by step, from the data of build/examples/char_transformer:
#
#     gnuplot plots/char_transformer.gp              build/char_transformer.dat -> .svg and .png
#     gnuplot -c plots/char_transformer.gp PREFIX    the same for another PREFIX.dat

load 'plots/style.gp'
out  = (exists("ARG1") && strlen(ARG1)) ? ARG1 : 'build/char_transformer'
data = out . '.dat'

# ---- Content of the file ----

# The other comments name the blocks; five are drawn.
rest = system(sprintf("sed -n '2,$s/^# //p' '%s'", data)) . "\n"
count = 0
array names[5]
while (strlen(rest) > 1 && count < 5) {
    count = count + 1
    names[count] = rest[1 : strstrt(rest, "\n") - 1]
    rest = rest[strstrt(rest, "\n") + 1 : *]
}

# Names are "placement, norm". The part that all have in common is printed once, in small print.
placement_of(i) = names[i][1 : strstrt(names[i], ",") - 1]
norm_of(i) = names[i][strstrt(names[i], ",") + 2 : *]
placements = 1
norms = 1
do for [i = 2:count] {
    if (placement_of(i) ne placement_of(1)) { placements = placements + 1 }
    if (norm_of(i) ne norm_of(1)) { norms = norms + 1 }
}
label(i) = norms == 1 && count > 1 ? placement_of(i) : placements == 1 ? norm_of(i) : names[i]
common = count == 1 ? names[1] : norms == 1 ? "all with " . norm_of(1) : \
         placements == 1 ? "all placed " . placement_of(1) : ""

# The last values, for the labels, and the ranges, for the axes.
array training[5]
array validation[5]
steps = 1
top = 0
bottom = 1e300
smaller(a, b) = a < b ? a : b
larger(a, b) = a > b ? a : b
keep(i, t, v, step) = (training[i] = t, validation[i] = v, steps = larger(steps, step), \
    bottom = smaller(bottom, smaller(t, v)), 0)
do for [i = 1:count] {
    stats data index names[i] using (keep(i, column("loss"), column("val_loss"), \
        column("step")), column("loss")) nooutput
    top = larger(top, STATS_max)
}
bottom = floor(5 * (bottom - 0.1)) / 5.0
top = ceil(5 * smaller(top, 4)) / 5.0

# ---- The two panels ----

set xrange [0:steps]
set xlabel "step" offset 0,0.4
set yrange [bottom : top]
set format y "%.1f"
array ends[count]
gap = 0.058
end(value) = (value - bottom) / (top - bottom)

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500)
    set multiplot
    set label 1 what_of(data) at screen 0.07,0.075 tc rgb faint font fine(kind)
    set label 2 "Each point of the training loss is the mean of the steps since the one before" \
        . (common eq '' ? '' : "; " . common) . "." at screen 0.07,0.03 tc rgb faint font fine(kind)

    set lmargin at screen 0.07; set rmargin at screen 0.42
    set bmargin at screen 0.24; set tmargin at screen 0.88
    eval headline("Training loss")
    set ylabel "nats a character"
    do for [i = 1:count] { ends[i] = end(training[i]) }
    eval SPREAD
    do for [i = 1:count] { set label 10 + i label(i) at graph 1.02, graph ends[i] tc ls 10 + i }
    plot for [i = 1:count] data index names[i] using "step":"loss" with linespoints ls i @MARKED
    unset label 1
    unset label 2

    set lmargin at screen 0.59; set rmargin at screen 0.93
    eval headline("Validation loss")
    unset ylabel
    do for [i = 1:count] { ends[i] = end(validation[i]) }
    eval SPREAD
    do for [i = 1:count] {
        set label 10 + i sprintf("%.2f", validation[i]) at graph 1.02, graph ends[i] tc ls 10 + i
    }
    plot for [i = 1:count] data index names[i] using "step":"val_loss" with linespoints ls i @MARKED
    unset multiplot
    unset output
}
