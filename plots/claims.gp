# All parts of all claims, from plots/claims.tsv, which make plots writes:
#
#     gnuplot plots/claims.gp                    plots/claims.tsv -> .svg
#     gnuplot -c plots/claims.gp PREFIX          the same for another PREFIX.tsv
load 'plots/style.gp'
parts  = sprintf("< awk -f plots/claims.awk '%s.tsv'", given('plots/claims'))
claims = sprintf("< awk -v what=claims -f plots/claims.awk '%s.tsv'", given('plots/claims'))
stats parts using 1 nooutput
rows = STATS_max
array verdicts[3] = ["holds", "inconclusive", "fails"]
array colours[3] = ["#00755a", "#6b6b6b", "#b3400f"]
array shapes[3] = [7, 6, 2]
at_share(share) = asinh(10.0 * share) / asinh(50)
pixels = 200.0 + 14 * rows
eval sheet('claims', 1200, pixels)
eval panel(0.56, 0.985, "", "beyond the claim's threshold, as a share of it (asinh scale)", "")
set tmargin at screen 1 - 90 / pixels; set bmargin at screen 110 / pixels
unset grid
set border 1
set xrange [-1.06:1.06]; set yrange [rows + 0.8:0.2]; unset ytics
set xtics ("-500 %%" -1, "-100 %%" at_share(-1), "-10 %%" at_share(-0.1), "0" 0, "+10 %%" at_share(0.1), \
           "+100 %%" at_share(1), "+500 %%" 1) font FINE
set arrow 1 from 0, graph 0 to 0, graph 1 nohead ls 8
set label 99 "Every part of every claim: its effect and interval" at screen 0.02, screen 1 - 28 / pixels
do for [v = 1:3] {
    set label 1 + v verdicts[v] at screen 0.03 + (v == 1 ? 0 : v == 2 ? 0.07 : 0.19), screen 1 - 58 / pixels \
        tc rgb colours[v] point pt shapes[v] ps 0.9 lc rgb colours[v] offset 1,0
}
set label 5 "Right of 0 the claim is true of the effect. The interval has 95 % for all parts of a claim together. " \
    ."An arrow: the effect lies beyond the axis." at screen 0.02, screen 22 / pixels tc rgb faint font FINE
plot claims using (-1.06):1:(sprintf("{/:Bold %s}", strcol(2))) with labels right offset -1,0 tc rgb ink font FINE, \
     claims using (-1.06):($1 - 0.8):(2.12):(0) with vectors nohead ls 9, \
     parts using (-1.06):1:7 with labels right offset -1,0 tc rgb ink font FINE noenhanced, \
     for [v = 1:3] parts using 3:($5 == v && $6 == 0 ? $1 : NaN):2:4 \
         with xerrorbars pt shapes[v] ps 0.7 lw 1.3 lc rgb colours[v], \
     for [v = 1:3] parts using ($6 * 0.96):($5 == v && $6 != 0 ? $1 : NaN):($6 * 0.09):(0) \
         with vectors head filled size screen 0.008,20 lw 1.8 lc rgb colours[v]
