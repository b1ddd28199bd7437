# The loss by number of gradients used, for gradient descent and for Newton steps, by norm. Data:
# build/examples/newton.

load 'plots/style.gp'
out = given('plots/newton'); data = out.'.dat'

array norms[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array ways[2] = ["descent", "newton"]
array titles[2] = ["Gradient descent, each at its own rate", "Newton steps by conjugate gradients"]
array middle[8]
seeds = 0
most = 1.0
do for [i = 1:4] { do for [k = 1:2] {
    stats data index norms[i].", ".ways[k] using (seeds = column("seeds"), middle[2 * i + k - 2] = column("used"), 1) nooutput
    most = middle[2 * i + k - 2] < 1e9 && middle[2 * i + k - 2] > most ? middle[2 * i + k - 2] : most
} }

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half; it ends at a loss of 0.001.   ", seeds).what_of(data) \
        at screen 0.07,0.035 tc rgb faint font fine(kind)
    set logscale y
    set format y powers
    set yrange [9e-4:4]
    set xrange [0:1.25 * most]
    set xlabel "gradients used (a Hessian-vector product counts as two)" offset 0,0.4
    do for [k = 1:2] {
        eval panel((k == 1 ? 0.07 : 0.56), (k == 1 ? 0.475 : 0.965), titles[k])
        set ylabel (k == 1 ? "training loss" : "")
        do for [i = 1:4] {
            set label 10 + i sprintf("%s: %.0f", norms[i], middle[2 * i + k - 2]) at graph 0.68, graph 1.0 - 0.068 * i \
                tc ls 10 + i point ls i offset 1,0
        }
        plot for [i = 1:4] data index norms[i].", ".ways[k] using "gradients":"loss_low":"loss_high" with filledcurves ls i @BAND, \
             for [i = 1:4] data index norms[i].", ".ways[k] using "gradients":"loss" with linespoints ls i @MARKED
    }
}
