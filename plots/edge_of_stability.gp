# The sharpness of the loss during gradient descent, by norm, at two rates, and the edge of
# stability. Data: build/examples/edge_of_stability.

load 'plots/style.gp'
out = given('plots/edge_of_stability'); data = out.'.dat'

array norms[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
rates = system(sprintf("sed -n 's/^# no norm, rate //p' '%s'", data))
block(i, r) = norms[i] . ", rate " . word(rates, r)
seeds = 0
steps = 1
do for [r = 1:2] { do for [i = 1:4] {
    stats data index block(i, r) using (seeds = column("seeds"), steps = column("step"), 1) nooutput
} }

bottom = 4.0
top = 150.0

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.21, 0.88)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half.   ", seeds).what_of(data) \
        at screen 0.065,0.035 tc rgb faint font fine(kind)
    set xrange [0:steps]
    set xlabel "step" offset 0,0.4
    set logscale y
    set yrange [bottom:top]
    set ytics (5, 10, 20, 50, 100)
    do for [r = 1:2] {
        eval panel((r == 1 ? 0.065 : 0.53), (r == 1 ? 0.45 : 0.915), sprintf("Gradient descent at rate %s", word(rates, r)))
        set ylabel (r == 1 ? "largest eigenvalue of the Hessian" : "")
        edge = 2.0 / word(rates, r)
        set label 2 "2 / rate" at steps * 0.98,edge * 1.12 right tc rgb faint
        do for [i = 1:4] {
            set label 10 + i norms[i] at graph 0.55, graph 0.99 - 0.065 * i tc ls 10 + i point ls i offset 1,0
        }
        plot edge with lines ls 8, \
             for [i = 1:4] data index block(i, r) using "step":"sharpness_low":"sharpness_high" \
                 with filledcurves ls i @BAND, \
             for [i = 1:4] data index block(i, r) using "step":"sharpness" with linespoints ls i @MARKED
    }
}
