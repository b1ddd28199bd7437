# Accuracy by number of workers with random and with sorted shards, and the differences of the
# workers' running means. Data: build/examples/workers.

load 'plots/style.gp'
out = given('plots/workers'); data = out.'.dat'
# Crosses: the same on ranks of a group, if make plots-mpi has been run.
ranks = out . '_mpi.dat'
has_ranks = system("test -e '" . ranks . "' && echo 1") eq "1"
crosses = "with points pt 2 ps 1.1 lw 1.4"

array shards[2] = ["random shards", "sorted shards"]
array methods[3] = ["own statistics", "combined statistics", "LayerNorm"]
array styles[3] = [2, 5, 3]
array names[4] = ["each worker's own", "combined", "LayerNorm", "own, averaged at the end"]
block(k, i) = shards[k].", ".methods[i]
array last[4]
array bottoms[2] = [100, 100]
do for [k = 1:2] {
    do for [i = 1:3] {
        stats data index block(k, i) using (last[i] = column("accuracy"), seeds = column("seeds"), \
            column("accuracy_low")) nooutput
        bottoms[k] = STATS_min < bottoms[k] ? STATS_min : bottoms[k]
    }
    stats data index block(k, 1) using (last[4] = column("together"), column("together")) nooutput
}
bottoms[1] = floor(bottoms[1])
bottoms[2] = 10 * floor(bottoms[2] / 10)
top(k) = k == 1 ? 100 : 102
array ends[4]
gap = 0.065

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.21, 0.88)
    set label 1 sprintf("Line: median of %d seeds; band: middle half of the seeds. ", seeds). \
        (has_ranks ? "Crosses: medians of workers on ranks of a group, from the same seeds." : "") \
        at screen 0.075,0.055 tc rgb faint font fine(kind)
    set label 4 what_of(data) at screen 0.075,0.018 tc rgb faint font fine(kind)
    set logscale x
    set xrange [0.95:17]
    set xtics (1, 4, 16)
    set format "%g"
    set xlabel "workers sharing a batch" offset 0,0.4

    eval panel(0.075, 0.265, "Running means differ")
    set ylabel "difference (standard deviations)"
    set yrange [0:*]
    set ytics 0.1
    set label 2 "sorted shards" at graph 0.05, 0.9 tc ls 12
    set label 3 "random shards" at graph 0.98, 0.24 right tc ls 12
    plot for [k = 1:2] data index block(k, 1) using "workers":"difference_low":"difference_high" \
             with filledcurves ls 2 @BAND, \
         for [k = 1:2] data index block(k, 1) using "workers":"difference" with linespoints ls 2, \
         for [k = 1:has_ranks * 2] ranks index block(k, 1) using "workers":"difference" \
             @crosses lc rgb ink

    do for [i = 1:4] { ends[i] = (last[i] - bottoms[2]) / (102 - bottoms[2]) }
    eval SPREAD
    do for [k = 1:2] {
        eval panel((k == 1 ? 0.345 : 0.595), (k == 1 ? 0.54 : 0.79), k == 1 ? "Random shards, enlarged" : "Shards sorted by class")
        set yrange [bottoms[k]:top(k)]
        set ytics k == 1 ? 1 : 10
        set ylabel (k == 1 ? "right answers on new images (%)" : "")
        do for [i = 1:4] {
            if (k == 2) { set label 10 + i names[i] at graph 1.03, graph ends[i] tc ls 10 + styles[i == 4 ? 1 : i] }
        }
        plot for [i = 1:3] data index block(k, i) using "workers":"accuracy_low":"accuracy_high" \
                 with filledcurves ls styles[i] @BAND, \
             data index block(k, 1) using "workers":"together" with lines ls 2 dt 2, \
             for [i = 1:3] data index block(k, i) using "workers":"accuracy" \
                 with linespoints ls styles[i], \
             for [i = 1:has_ranks * 3] ranks index block(k, i) using "workers":"accuracy" \
                 @crosses lc rgb ink
    }
}
