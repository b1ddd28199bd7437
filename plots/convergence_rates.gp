# Steps to a loss, the highest rate that trains, and the football team's error, with and without a
# norm. Data: build/examples/convergence.
load 'plots/style.gp'
array kinds[2] = ["steps, gradient descent", "steps, Adam"]
array depths[2] = ["highest rate, 2 layers", "highest rate, 8 layers"]
place(i, k) = 5 * (k - 1) + i
MARKS = 'using (place(i, k)):(column("norm") == i - 1 ? column(by_y) : NaN):(column(by_y."_low")):(column(by_y."_high")) ' \
    .'with yerrorbars ls i lw 2.2 ps 1.3'
eval figure('convergence_rates', 1200, 500, \
    "Mark: median; bar or band: middle half of the seeds. Right: the seed with median swinging.")
eval panel(0.07, 0.30, "Steps to a training loss of 0.1", "", "steps")
set xrange [0.3:9.7]
set xtics ("gradient\ndescent" place(2.5, 1), "Adam" place(2.5, 2)) scale 0
set yrange [0:250]
eval key(0.6, 0.95)
by_y = "steps"; plot for [k = 1:2] for [i = 1:4] data index kinds[k] @MARKS

eval panel(0.415, 0.63, "Highest learning rate that trains", "", "learning rate")
set xrange [0.3:9.7]; set xtics ("2 layers" place(2.5, 1), "8 layers" place(2.5, 2)) scale 0; set logscale y 2
set yrange [0.04:12]; set ytics (0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8)
by_y = "rate"; plot for [k = 1:2] for [i = 1:4] data index depths[k] @MARKS

eval panel(0.70, 0.985, "The team, raw inputs: seconds too late", "step of gradient descent", "seconds")
array names[2] = ["no norm", "LayerNorm"]; array styles[2] = [1, 3]; block(i) = "team, raw, ".names[i]
set yrange [-5:5]
eval key(0.52, 0.9); eval series("pass", "late")
plot 0 with lines ls 8, @BANDS, for [i = 1:2] data index block(i) using "pass":"shown" with linespoints ls styles[i] @MARKED
