# The gradient of each output with respect to each point of a batch, and the distance measured by
# the critic, by norm. Data: build/examples/penalty.

load 'plots/style.gp'
out = given('plots/penalty'); data = out.'.dat'

array names[2] = ["BatchNorm", "LayerNorm"]
array kinds[5] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm", "BatchNorm, batches apart"]
array styles[5] = [1, 2, 3, 4, 2]
array dashes[5] = [1, 1, 1, 1, 3]
array last[5]
stats data index "LayerNorm" using 1 nooutput
points = STATS_max
seeds = 0
steps = 1
highest = 1
lowest = 0
do for [i = 1:5] {
    stats data index "distance, ".kinds[i] using (seeds = column("seeds"), steps = column("step"), \
        last[i] = column("distance"), column("distance_high")) nooutput
    highest = STATS_max > highest ? STATS_max : highest
    stats data index "distance, ".kinds[i] using (column("distance_low")) nooutput
    lowest = STATS_min < lowest ? STATS_min : lowest
}
top = highest > 3 ? 3 : highest * 1.1
bottom = lowest < -3 ? -3 : lowest - 0.3

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Left: |d critic i / d point j|, first seed, log10; white: 0. Right: median and middle half of %d seeds.\n", \
        seeds).what_of(data) at screen 0.055,0.055 tc rgb faint font fine(kind)
    set palette defined (-3 "#e4eff7", -1.5 "#5aa2d0", 0 "#08306b")
    set cbrange [-3:0]
    set cbtics 1
    set format cb "%g"
    unset colorbox
    unset grid
    set border 15
    set tics 5
    set xrange [-0.5:points + 0.5]
    set yrange [points + 0.5:-0.5]
    set xlabel "point j" offset 0,0.4
    do for [k = 1:2] {
        eval panel(0.055 + 0.245 * (k - 1), 0.28 + 0.245 * (k - 1), "Gradients, ".names[k])
        set ylabel (k == 1 ? "output i" : "") offset 1,0
        set format y (k == 1 ? "%g" : "")
        if (k == 2) {
            set colorbox user origin screen 0.535,0.22 size screen 0.011,0.65
            eval "set cbtics 1 font '" . fine(kind) . "'"
        }
        plot data index names[k] using 2:1:(column(3) > 0 ? log10(column(3)) : NaN) with image pixels
    }
    unset colorbox
    set grid back ls 9
    set border 3
    set tics auto
    set format y "%g"
    eval panel(0.64, 0.965, "Distance by the critic, over the true one")
    set xrange [0:steps]
    set yrange [bottom:top]
    set xlabel "step of the critic"
    set ylabel "share of the true distance"
    array rows[4] = [3, 0, 1, 2]
    do for [i in "1 3 4"] {
        set label 10 + int(i) kinds[int(i)] at graph 0.05, graph 1.0 - 0.068 * rows[int(i)] tc ls 10 + styles[int(i)] \
            point ls styles[int(i)] offset 1,0
    }
    set label 12 "BatchNorm" at graph 0.8, graph 0.62 tc ls 12
    set label 15 "BatchNorm, each kind a batch" at graph 0.98, graph 0.05 right tc ls 12
    plot 1 with lines ls 8, \
         for [i = 1:5] data index "distance, ".kinds[i] using "step":"distance_low":"distance_high" \
             with filledcurves ls styles[i] @BAND, \
         for [i = 1:5] data index "distance, ".kinds[i] using "step":"distance" \
             with linespoints ls styles[i] dt dashes[i] @MARKED
}
