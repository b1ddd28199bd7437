# The speed of normgrad relative to other libraries, from `make bench`.
#
#     gnuplot plots/bench.gp              plots/bench_ratio.dat -> .svg
#     gnuplot -c plots/bench.gp FOLDER    the same in another folder

load 'plots/style.gp'
folder = given('plots')
data = folder . '/bench_ratio.dat'
stats data every ::1 using 0 nooutput
rows = STATS_records
least = 1
most = 2
array name[3] = ["PyTorch", "torch.compile", "oneDNN"]
array at[3] = [0, 0.33, 0.6]
do for [e = 1:3] {
    stats data every ::1 using (column(1 + e)) nooutput
    if (STATS_records > 0) {
        least = STATS_min < least ? STATS_min : least
        most = STATS_max > most ? STATS_max : most
    }
}
bar = 0.27
height = 140 + 50 * rows
figure(r) = r > 0 ? sprintf(r < 2 ? "%.2f" : r < 10 ? "%.1f" : "%.0f", r) : ""
do for [kind in "svg png"] {
    eval sheet(kind, folder . '/bench_ratio', 1000, height)
    set lmargin at screen 0.36; set rmargin at screen 0.95
    set bmargin at screen 95.0 / height
    set tmargin at screen 1 - 62.0 / height
    set label 99 "How many times as fast normgrad is" at graph 0, screen 1 - 24.0 / height \
        left tc rgb ink font sprintf(",%g", kind eq "svg" ? 17.5 : 13.5)
    do for [e = 1:3] {
        set label 95 + e "{/:Bold as ".name[e]."}".(e == 1 ? " (upper bar)" : e == 3 ? " (lower bar)" : "") \
            at graph at[e], screen 1 - 48.0 / height left tc ls 11 + e
    }
    set label 1 system("sed -n '1{s/^# what: //;s/; /\\n/p}' '".data."'") at screen 0.02, screen 34.0 / height tc rgb faint font fine(kind)
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
    plot for [e = 1:3] data every ::1 \
             using (1):(-column(0)):(1):(column(1 + e)):(-column(0) + (0.5 - e) * bar):\
                   (-column(0) + (1.5 - e) * bar):yticlabels(1) \
             with boxxyerror lc rgb word(palette, 1 + e), \
         for [e = 1:3] data every ::1 \
             using (column(1 + e) > 1 ? column(1 + e) : 1):(-column(0) + (1 - e) * bar):(figure(column(1 + e))) \
             with labels left offset 0.5,0 tc rgb ink font fine(kind)
}
