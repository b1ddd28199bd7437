# The largest eigenvalues of the Hessian at equal loss, by norm. Data: build/examples/sharpness.

load 'plots/style.gp'
out = given('plots/sharpness'); data = out.'.dat'

array norms[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
shown = "0.1"
array ends[4]
array values[4]
most = 0.0
least = 1e9
seeds = 0
do for [i = 1:4] {
    stats data index norms[i] using (seeds = column("seeds") > seeds ? column("seeds") : seeds, \
        values[i] = column("value_high"), values[i]) nooutput
    most = STATS_max > most ? STATS_max : most
    stats data index norms[i]." at ".shown using (column("value_low")) nooutput
    least = STATS_min < least ? STATS_min : least
}
top = most * 1.4
bottom = least / 1.4

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.21, 0.88)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half.   ", seeds).what_of(data) \
        at screen 0.065,0.035 tc rgb faint font fine(kind)
    set logscale y
    set yrange [bottom:top]
    set ytics (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
    set lmargin at screen 0.065; set rmargin at screen 0.47
    eval headline("Sharpness, as training comes to lower losses")
    set logscale x
    set xrange [1.25:0.025]
    set xtics (1, 0.3, 0.1, 0.03)
    set xlabel "training loss" offset 0,0.4
    set ylabel "largest eigenvalue of the Hessian"
    do for [i = 1:4] { set label 10 + i norms[i] at graph 0.03, graph 0.30 - 0.065 * i tc ls 10 + i point ls i offset 1,0 }
    plot for [i = 1:4] data index norms[i] using "loss":"value_low":"value_high" with filledcurves ls i @BAND, \
         for [i = 1:4] data index norms[i] using "loss":"value" with linespoints ls i
    unset label 1
    unset logscale x
    set lmargin at screen 0.55; set rmargin at screen 0.965
    eval headline("The ten largest eigenvalues at a loss of ".shown)
    set xrange [0.5:10.5]
    set xtics 1
    set xlabel "number"
    set ylabel ""
    plot for [i = 1:4] data index norms[i]." at ".shown using "index":"value_low":"value_high" with filledcurves ls i @BAND, \
         for [i = 1:4] data index norms[i]." at ".shown using "index":"value" with linespoints ls i
}
