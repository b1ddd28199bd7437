# All parts of all claims, by norm, from plots/claims.tsv, which make plots writes:
#
#     gnuplot plots/claims.gp                    plots/claims.tsv -> .svg
#     gnuplot -c plots/claims.gp PREFIX          the same for another PREFIX.tsv

load 'plots/style.gp'
out  = given('plots/claims')
laid = sprintf("< awk -f plots/claims.awk '%s.tsv'", out)
rows = sprintf("< awk -v what=rows -f plots/claims.awk '%s.tsv'", out)

stats rows using 3 nooutput
height = STATS_max
array columns[4] = ["BatchNorm", "LayerNorm", "RMSNorm", "others"]
array verdicts[3] = ["holds", "inconclusive", "fails"]
array colours[3] = ["#00755a", "#6b6b6b", "#b3400f"]
array shapes[3] = [7, 6, 2]
scale(share) = asinh(10.0 * share) / asinh(50)
top = 96.0
bottom = 80.0
pixels = top + 11 * height + bottom

do for [kind in "svg png"] {
    eval sheet(kind, out, 1200, pixels)
    title_font = kind eq "svg" ? ",17.5" : ",13.5"
    set lmargin at screen 0.13; set rmargin at screen 0.985
    set tmargin at screen 1 - top / pixels; set bmargin at screen bottom / pixels
    unset grid
    unset key
    set border 0
    set xrange [-0.15:8.85]
    set yrange [height + 0.5:0.5]
    set ytics scale 0
    eval "set xtics scale 0 font '" . fine(kind) . "'"
    unset xlabel
    set xtics ()
    do for [c = 0:3] {
        set xtics add ("-100 %%" 2.25 * c + 1 + scale(-1), "0" 2.25 * c + 1, "+100 %%" 2.25 * c + 1 + scale(1))
        set label 10 + c columns[c + 1] at first 2.25 * c + 1, screen 1 - 84 / pixels center
        if (c > 0) { set arrow 20 + c from first 2.25 * c - 0.125, graph 0 to first 2.25 * c - 0.125, graph 1 nohead ls 9 }
        set arrow 10 + c from first 2.25 * c + 1, graph 0 to first 2.25 * c + 1, graph 1 nohead ls 8 lw 1
    }
    set label 1 "What was asked of each norm, and how far beyond it each effect is" at screen 0.02, screen 1 - 28 / pixels \
        tc rgb ink font title_font
    do for [v = 1:3] {
        set label 1 + v verdicts[v] at screen 0.02 + (v == 1 ? 0.01 : v == 2 ? 0.08 : 0.19), screen 1 - 54 / pixels tc rgb colours[v] \
            point pt shapes[v] ps 0.9 lc rgb colours[v] offset 1,0
    }
    set label 5 "A line: one part of a claim, the effect and its 95 % interval (of all parts of the claim together)," \
        . " as a share of what is asked; right of 0 the claim is true of it." at screen 0.02, screen 26 / pixels \
        tc rgb faint font fine(kind)
    plot rows using (-0.15):3:(9):(0) with vectors nohead ls 9, \
         rows using (NaN):2:ytic(1) with points, \
         for [v = 1:3] laid using (2.25 * $1 + 1 + $4):($6 == v ? $2 : NaN):(2.25 * $1 + 1 + $3):(2.25 * $1 + 1 + $5) \
             with xerrorbars pt shapes[v] ps 0.7 lw 1.3 lc rgb colours[v]
}
