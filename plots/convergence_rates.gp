# Steps to a loss, the highest rate that trains, and the football team's error, with and without a
# norm. Data: build/examples/convergence.

load 'plots/style.gp'
out = given('plots/convergence_rates'); data = out.'.dat'

array names[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array kinds[2] = ["gradient descent", "Adam"]
array depths[2] = ["2", "8"]
stats data index "steps, Adam" using (seeds = column("seeds"), column("steps_high")) nooutput
stats data index "steps, gradient descent" using "steps_high" nooutput
most = STATS_max
stats data index "team, raw, no norm" using (passes = column("pass"), 1) nooutput
place(i, k) = 4 * (k - 1) + i + (k - 1)

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.24, 0.87)
    set label 1 sprintf("Mark: median of %d seeds; bar or band: their middle half. Right: the seed with median swinging.\n", seeds) . what_of(data) \
        at screen 0.065,0.065 tc rgb faint font fine(kind)
    unset xlabel
    set xrange [0.3:9.7]
    set xtics ("gradient\ndescent" place(2.5, 1), "Adam" place(2.5, 2)) scale 0
    set ylabel "steps"
    eval panel(0.07, 0.30, "Steps to a training loss of 0.1")
    set yrange [0:1.08 * most]
    do for [i = 1:4] { set label 10 + i names[i] at graph 0.6, graph 1.02 - 0.07 * i tc ls 10 + i point ls i offset 1,0 }
    plot for [k = 1:2] for [i = 1:4] data index "steps, ".kinds[k] using (place(i, k)):(column("norm") == i - 1 ? \
             column("steps") : NaN):"steps_low":"steps_high" with yerrorbars ls i lw 2.2 ps 1.3

    set ylabel "learning rate" offset 1,0
    eval panel(0.415, 0.63, "Highest learning rate that trains")
    set xtics ("2 layers" place(2.5, 1), "8 layers" place(2.5, 2))
    set logscale y 2
    set yrange [0.04:12]
    set ytics (0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8)
    plot for [k = 1:2] for [i = 1:4] data index "highest rate, ".depths[k]." layers" using (place(i, k)): \
             (column("norm") == i - 1 ? column("rate") : NaN):"rate_low":"rate_high" with yerrorbars ls i lw 2.2 ps 1.3
    unset logscale y

    set ylabel "seconds" offset 0,0
    eval panel(0.70, 0.985, "The team, raw inputs: seconds too late")
    set xrange [1:passes]
    set xtics auto scale 0.6
    set ytics auto
    set yrange [-5:5]
    set xlabel "step of gradient descent" offset 0,0.4
    set label 20 "no norm" at graph 0.52, graph 0.9 tc ls 11 point ls 1 offset 1,0
    set label 21 "LayerNorm" at graph 0.52, graph 0.83 tc ls 13 point ls 3 offset 1,0
    plot 0 with lines ls 8, \
         data index "team, raw, no norm" using "pass":"late_low":"late_high" with filledcurves ls 1 @BAND, \
         data index "team, raw, LayerNorm" using "pass":"late_low":"late_high" with filledcurves ls 3 @BAND, \
         data index "team, raw, no norm" using "pass":"shown" with linespoints ls 1 @MARKED, \
         data index "team, raw, LayerNorm" using "pass":"shown" with linespoints ls 3 @MARKED
}
