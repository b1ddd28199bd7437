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
do for [e = 1:3] {
    stats data every ::1 using (column(1 + e)) nooutput
    if (STATS_records > 0) {
        least = STATS_min < least ? STATS_min : least
        most = STATS_max > most ? STATS_max : most
    }
}
height = 190.0 + 27 * rows
do for [kind in "svg png"] {
    eval sheet(kind, folder . '/bench_ratio', 1000, height)
    set lmargin at screen 0.33; set rmargin at screen 0.96
    set bmargin at screen 115.0 / height
    set tmargin at screen 1 - 70.0 / height
    set label 99 "How many times as fast normgrad is" at graph 0, screen 1 - 24.0 / height \
        left tc rgb ink font sprintf(",%g", kind eq "svg" ? 17.5 : 13.5)
    set label 1 system("sed -n '1{s/^# what: //;s/; /\\n/p}' '".data."'") at screen 0.02, screen 34.0 / height tc rgb faint font fine(kind)
    set logscale x 10
    set xrange [least < 1 ? least * 0.8 : 0.9 : most * 1.3]
    set xtics (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
    set format x "%g"
    set xlabel "time of the other / time of normgrad; no point: not measured"
    set yrange [-rows + 0.4 : 0.6]
    set ytics scale 0
    set grid xtics ytics ls 9
    set border 1
    do for [e = 1:3] { set label 10 + e "as ".name[e] at graph 0.02 + 0.25 * (e - 1), screen 1 - 52.0 / height tc ls 11 + e point ls 1 + e ps 1.3 offset 1,0 }
    set arrow 1 from 1, graph 0 to 1, graph 1 nohead lw 1.4 lc rgb ink
    plot for [e = 1:3] data every ::1 using 1 + e:(-column(0)):yticlabels(1) \
             with points ls 1 + e ps 1.3
}
