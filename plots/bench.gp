# The speed of normgrad relative to other libraries, from `make bench`.
#
#     gnuplot plots/bench.gp              plots/bench_ratio.dat -> .svg
#     gnuplot -c plots/bench.gp FOLDER    the same in another folder
load 'plots/style.gp'
ARG1 = given('plots').'/bench_ratio'
array names[3] = ["PyTorch", "torch.compile", "oneDNN"]
stats ARG1.'.dat' every ::1 using 0 nooutput
rows = STATS_records
eval sheet('bench_ratio', 1000, 190 + 27 * rows)
eval panel(0.33, 0.96, "", "time of the other / time of normgrad; no point: not measured", "")
set bmargin at screen 115.0 / (190 + 27 * rows); set tmargin at screen 1 - 70.0 / (190 + 27 * rows)
set label 99 "How many times as fast normgrad is" at graph 0, graph 1 offset 0,2.4 font ',17.5'
set label 1 system("sed -n '1{s/^# what: //;s/; /\\n/p}' '".data."'") at screen 0.02, screen 34.0 / (190 + 27 * rows) tc rgb faint font FINE
do for [e = 1:3] { set label 10 + e "as ".names[e] at graph 0.02 + 0.25 * (e - 1), screen 1 - 52.0 / (190 + 27 * rows) offset 1,0 tc ls 11 + e point ls 1 + e ps 1.3 }
set logscale x 10; set xtics (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
set yrange [-rows + 0.4 : 0.6]; set ytics scale 0
set border 1
set arrow 1 from 1, graph 0 to 1, graph 1 nohead lw 1.4 lc rgb ink
plot for [e = 1:3] data every ::1 using 1 + e:(-column(0)):yticlabels(1) with points ls 1 + e ps 1.3
