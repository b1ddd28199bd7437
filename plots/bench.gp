# Two figures from `make bench`: LayerNorm and the machine's limits (bench_roofline), and the speed
# of normgrad relative to other libraries (bench_ratio).
#
#     gnuplot plots/bench.gp              plots/bench_*.dat -> .svg
#     gnuplot -c plots/bench.gp FOLDER    the same in another folder

load 'plots/style.gp'
folder = given('plots')

array name[4] = ["roof", "normgrad", "PyTorch", "oneDNN"]
array style[4] = [1, 3, 2, 4]

# ---- Roofline ------------------------------------------------------------------------------------

data = folder . '/bench_roofline.dat'
array ends[4]
last = 0
keep(e, value, row) = (ends[e] = value, last = row > last ? row : last, value)
array lowest[2]
array highest[2]
do for [panel = 1:2] {
    lowest[panel] = 1e300
    highest[panel] = 0
    do for [e = 1:4] {
        stats data index panel - 1 every ::1 using (column(2 + e)) nooutput
        if (STATS_records > 0) {
            lowest[panel] = STATS_min < lowest[panel] ? STATS_min : lowest[panel]
            highest[panel] = STATS_max > highest[panel] ? STATS_max : highest[panel]
        }
    }
}
bottom = floor(log10(lowest[1] < lowest[2] ? lowest[1] : lowest[2]) * 2) / 2.0
top = log10(highest[1] > highest[2] ? highest[1] : highest[2]) + 0.15
size(bytes) = bytes < 2**20 ? sprintf("%.0f KiB", bytes / 2**10) : sprintf("%.0f MiB", bytes / 2**20)
titles = "forward backward"
sums = "reads_x,_writes_y reads_x_and_dy,_writes_dx"
plain(text) = system("echo '" . text . "' | tr _ ' '")

do for [kind in "svg png"] {
    eval sheet(kind, folder . '/bench_roofline', 1200, 500)
    gap = 0.062
    set label 1 what_of(data) at screen 0.065,0.035 tc rgb faint font fine(kind)
    set logscale y
    set yrange [10 ** bottom : 10 ** top]
    set format y "%g"
    set bmargin at screen 0.235; set tmargin at screen 0.88
    do for [panel = 1:2] {
        eval panel(panel == 1 ? 0.065 : 0.56, panel == 1 ? 0.425 : 0.92, "LayerNorm ".word(titles, panel).": ".plain(word(sums, panel)))
        set ylabel panel == 1 ? "GB/s" : ""
        do for [e = 1:4] {
            ends[e] = -1
            stats data index panel - 1 every ::1 using (keep(e, column(2 + e), column(0))) nooutput
        }
        set xrange [-0.2 : last + 0.2]
        do for [e = 1:4] { ends[e] = ends[e] > 0 ? (log10(ends[e]) - bottom) / (top - bottom) : -e }
        eval SPREAD
        do for [e = 1:4] {
            if (ends[e] > 0) { set label 10 + e name[e] at graph 1.015, graph ends[e] tc ls 10 + style[e] }
        }
        plot data index panel - 1 every ::1 using 0:3:xtic(stringcolumn(1)."\n".size(column(2))) \
                 with linespoints ls 1 dt 2, \
             for [e = 2:4] data index panel - 1 every ::1 using 0:(column(2 + e)) \
                 with linespoints ls style[e]
    }
}

# ---- Other libraries -----------------------------------------------------------------------------

reset
load 'plots/style.gp'
data = folder . '/bench_ratio.dat'
stats data every ::1 using 0 nooutput
rows = STATS_records
least = 1
most = 2
do for [e = 2:3] {
    stats data every ::1 using (column(e)) nooutput
    if (STATS_records > 0) {
        least = STATS_min < least ? STATS_min : least
        most = STATS_max > most ? STATS_max : most
    }
}
bar = 0.36
figure(r) = r > 0 ? sprintf(r < 2 ? "%.2f" : r < 10 ? "%.1f" : "%.0f", r) : ""
unset label
do for [kind in "svg png"] {
    eval sheet(kind, folder . '/bench_ratio', 1000, 120 + 34 * rows)
    set lmargin at screen 0.425; set rmargin at screen 0.95
    set bmargin at screen 80.0 / (120 + 34 * rows)
    set tmargin at screen 1 - 62.0 / (120 + 34 * rows)
    set label 99 "How many times as fast normgrad is" at graph 0, screen 1 - 24.0 / (120 + 34 * rows) \
        left tc rgb ink font sprintf(",%g", kind eq "svg" ? 17.5 : 13.5)
    set label 98 "{/:Bold as PyTorch} (upper bar)" at graph 0, screen 1 - 48.0 / (120 + 34 * rows) left tc ls 12
    set label 97 "{/:Bold as oneDNN} (lower bar)" at graph 0.37, screen 1 - 48.0 / (120 + 34 * rows) left tc ls 14
    set label 1 what_of(data) at screen 0.02, screen 18.0 / (120 + 34 * rows) tc rgb faint font fine(kind)
    set logscale x 10
    set xrange [least < 1 ? least * 0.7 : 0.9 : most * 1.6]
    set xtics (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
    set format x "%g"
    set yrange [-rows + 0.4 : 0.6]
    set ytics scale 0
    set grid xtics noytics
    set border 1
    set arrow 1 from 1, graph 0 to 1, graph 1 nohead lw 1.4 lc rgb ink front
    set style fill solid 1 noborder
    plot for [e = 2:3] data every ::1 \
             using (1):(-column(0)):(1):(column(e)):(-column(0) + (e == 2 ? 0 : -bar)):\
                   (-column(0) + (e == 2 ? bar : 0)):yticlabels(1) \
             with boxxyerror lc rgb word(palette, 2 * (e - 1)), \
         for [e = 2:3] data every ::1 \
             using (column(e) > 1 ? column(e) : 1):(-column(0) + (e == 2 ? bar : -bar) / 2):(figure(column(e))) \
             with labels left offset 0.5,0 tc rgb ink font fine(kind)
}
