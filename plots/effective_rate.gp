# Runs with equal effective rate, and the equilibrium of runs with equal product of rate and decay,
# by norm. Data: build/examples/effective_rate.

load 'plots/style.gp'
out = given('plots/effective_rate'); data = out.'.dat'

array norms[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array rates[2] = ["0.02", "0.5"]
array right[2] = [60, 60]
array high[2] = [0.0017, 0.15]
seeds = 0
steps = 1
long = 1
stats data index "BatchNorm" using (seeds = column("seeds"), steps = column("step"), 1) nooutput
stats data index "BatchNorm, rate 0.5" using (theory = column("theory"), long = column("step"), 1) nooutput

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half.   ", \
        seeds).what_of(data) at screen 0.06,0.035 tc rgb faint font fine(kind)
    set logscale y
    set format y powers
    set lmargin at screen 0.075; set rmargin at screen 0.31
    eval headline("Weights scaled, rate / |w|² the same")
    set xrange [0:steps]
    set yrange [1e-17:1e3]
    set ytics 1e4
    set xtics 50
    set xlabel "step" offset 0,0.4
    set ylabel "loss, off that at scale 1" offset 0.5,0
    set label 11 "no norm" at graph 0.5, graph 0.72 tc ls 11
    do for [i = 2:4] { set label 10 + i norms[i] at graph 0.55, graph 0.64 - 0.068 * i tc ls 10 + i point ls i offset 1,0 }
    plot for [i = 1:4] data index norms[i] using "step":"apart_low":"apart_high" with filledcurves ls i @BAND, \
         for [i = 1:4] data index norms[i] using "step":"apart" with linespoints ls i @MARKED
    unset label 1
    do for [i = 11:14] { unset label i }

    array dashes[2] = [3, 1]
    set lmargin at screen 0.40; set rmargin at screen 0.645
    eval headline("Rate × decay the same: rate / |w|²")
    set xrange [0:long]
    set yrange [1e-3:1]
    set ytics auto
    set xtics 1000
    set ylabel "rate / |w|²"
    do for [i = 2:3] { set label 10 + i norms[i] at graph 0.5, graph 0.32 - 0.068 * i tc ls 10 + i point ls i offset 1,0 }
    do for [k = 1:2] { set label 14 + k sprintf("%s%s", k == 2 ? "rate " : "", rates[k]) at right[k],high[k] left tc rgb ink font fine(kind) }
    plot for [i = 2:3] for [k = 1:2] data index norms[i].", rate ".rates[k] \
             using "step":"effective_low":"effective_high" with filledcurves ls i @BAND, \
         for [i = 2:3] for [k = 1:2] data index norms[i].", rate ".rates[k] \
             using "step":"effective" with linespoints ls i dt dashes[k] @MARKED
    do for [k = 15:16] { unset label k }

    set lmargin at screen 0.72; set rmargin at screen 0.965
    eval headline("... and how far a step turns w")
    set yrange [2e-3:0.5]
    set ylabel "radians" offset 1,0
    set label 2 "dashed, grey: √(2 rate decay)" at graph 0.97,graph 0.9 right tc rgb faint
    plot for [i = 2:3] for [k = 1:2] data index norms[i].", rate ".rates[k] \
             using "step":"angle_low":"angle_high" with filledcurves ls i @BAND, \
         for [i = 2:3] for [k = 1:2] data index norms[i].", rate ".rates[k] \
             using "step":"angle" with linespoints ls i dt dashes[k] @MARKED, \
         theory with lines ls 8 lw 2
    set xtics auto
}
