# Validation loss of norms without parameters, relative to that of the norm with parameters. Data:
#
#     build/examples/parameter_free

load 'plots/style.gp'
out = given('plots/parameter_free'); data = out.'.dat'

# Numbers of the norms in the blocks: 1 RMSNorm and 3 LayerNorm without parameters, 4 AdaNorm, 5
# DetachNorm.
array rows[4] = [1, 3, 4, 5]
array names[4] = ["RMSNorm without gamma", "LayerNorm without\ngamma and beta", "AdaNorm", "DetachNorm"]
array colours[4] = [4, 3, 5, 5]
height(norm) = norm == 1 ? 4 : norm == 3 ? 3 : norm == 4 ? 2 : norm == 5 ? 1 : NaN
smaller(a, b) = a < b ? a : b
larger(a, b) = a > b ? a : b
array tasks[2] = ["digits", "transformer"]
array titles[2] = ["Telling digits", "A transformer that draws digits"]

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.22, 0.87)
    set label 1 "Dot: a seed; bar: median; shaded: up to 2 % worse, no harm." \
        at screen 0.02,0.055 tc rgb faint font fine(kind)
    set label 4 what_of(data) at screen 0.02,0.018 tc rgb faint font fine(kind)
    set grid noytics
    set border 1
    set xlabel "validation loss, over that of the norm with its parameters" offset 0,0.3
    do for [t = 1:2] {
        set lmargin at screen (t == 1 ? 0.185 : 0.61); set rmargin at screen (t == 1 ? 0.565 : 0.98)
        eval headline(titles[t])
        unset ytics
        do for [i = 1:4] {
            if (t == 1) { set label 10 + i names[i] at graph -0.03, first height(rows[i]) right tc ls 10 + colours[i] }
        }
        set xrange [*:*]; set yrange [*:*]
        stats data index ("seeds, ".tasks[t]) using 2 nooutput
        if (t == 1) { set logscale x; set xtics (0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 8) }
        if (t == 2) { unset logscale x; set xtics autofreq }
        set xrange [0.9 * smaller(0.8, STATS_min):1.1 * larger(1.25, STATS_max)]
        if (t == 2) { set xrange [smaller(0.98, STATS_min - 0.01):larger(1.02, STATS_max + 0.01)] }
        set yrange [0.4:4.6]
        set label 2 "as good as with" at first 1, graph 1.01 center tc rgb faint font fine(kind)
        set label 3 "worse →" at graph 1, graph 1.01 right tc rgb faint font fine(kind)
        set arrow 1 from first 1, graph 0 to first 1, graph 1 nohead ls 8
        set object 1 rectangle from first 1, graph 0 to first 1.02, graph 1 fs solid 0.08 noborder fc rgb "black" behind
        task = tasks[t]
        plot for [i = 1:4] data index ("seeds, ".task) \
                 using (column(1) == rows[i] ? column(2) : NaN): \
                       (height(column(1)) + 0.24 * (rand(0) - 0.5)) \
                 with points ls colours[i] ps 0.9 , \
             for [i = 1:4] data index task \
                 using (column(1) == rows[i] ? column("ratio") : NaN):(height(column(1)) - 0.3):(0):(0.6) \
                 with vectors nohead ls colours[i] lw 4
        do for [i = 11:14] { unset label i }
    }
}
