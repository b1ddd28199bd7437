# The ten largest eigenvalues of the Hessian at equal loss, and the largest during gradient descent,
# by norm. Data: build/examples/sharpness.

load 'plots/style.gp'
out = given('plots/sharpness'); data = out.'.dat'

array norms[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array ends[4]
gap = 0.065
stats data index "edge, ".norms[1] using (seeds = column("seeds"), edge = column("edge"), 1) nooutput

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 480, 0.21, 0.88)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half.   ", seeds).what_of(data) \
        at screen 0.065,0.03 tc rgb faint font fine(kind)
    set logscale y
    set lmargin at screen 0.065; set rmargin at screen 0.4
    eval headline("The ten largest eigenvalues at a loss of 0.1")
    set xrange [0.5:10.5]
    set xtics 1
    set xlabel "number" offset 0,0.4
    set ylabel "eigenvalue of the Hessian"
    set yrange [0.5:50]
    set ytics (0.5, 1, 2, 5, 10, 20, 50)
    do for [i = 1:4] {
        stats data index norms[i]." at 0.1" using (ends[i] = log(column("value") / 0.5) / log(100), 1) nooutput
    }
    eval SPREAD
    do for [i = 1:4] { set label 10 + i norms[i] at graph 1.02, graph ends[i] tc ls 10 + i }
    plot for [i = 1:4] data index norms[i]." at 0.1" using "index":"value_low":"value_high" with filledcurves ls i @BAND, \
         for [i = 1:4] data index norms[i]." at 0.1" using "index":"value" with linespoints ls i
    unset label 1
    set lmargin at screen 0.56; set rmargin at screen 0.965
    eval headline("The largest, during gradient descent")
    set xrange [0:1000]
    set xtics autofreq
    set xlabel "step"
    set ylabel "largest eigenvalue"
    set yrange [4:150]
    set ytics (5, 10, 20, 50, 100)
    set label 2 "2 / rate" at 990, edge * 1.35 right tc rgb faint
    do for [i = 1:4] { set label 10 + i norms[i] at graph 0.6, graph 1.04 - 0.065 * i tc ls 10 + i point ls i offset 1,0 }
    plot edge with lines ls 8, \
         for [i = 1:4] data index "edge, ".norms[i] using "step":"sharpness_low":"sharpness_high" with filledcurves ls i @BAND, \
         for [i = 1:4] data index "edge, ".norms[i] using "step":"sharpness" with linespoints ls i @MARKED
    unset label 2
}
