# The steps that an LSTM needs to learn to add, by the length of the sequence and the norm in its
# cell. Data: build/examples/recurrent.
load 'plots/style.gp'
array names[3] = ["no norm", "LayerNorm", "RMSNorm"]; array styles[3] = [1, 3, 4]
eval figure('recurrent', 1200, 470, "Mark or line: median; bar or band: middle half of the seeds. Each at its own rate.")
lengths = system(sprintf("sed -n 's/^# no norm, \\([0-9]*\\)$/\\1/p' '%s'", swap(data, "'\\''")))
longest = word(lengths, words(lengths))
eval panel(0.065, 0.45, "Steps until it has learned", "numbers in a sequence", "steps of Adam")
set logscale x 2; set xrange [0.9 * word(lengths, 1):1.1 * longest]; set xtics (0)
do for [k = 1:words(lengths)] { set xtics add (word(lengths, k) word(lengths, k) + 0) }
set yrange [0:*]
eval key(0.05, 0.96)
plot for [i = 1:3] for [length in lengths] data index names[i].", ".length.", steps" \
    using (column("length") * 1.06 ** (i - 2)):"steps":"steps_low":"steps_high" \
    with yerrorbars ls styles[i] ps 1.3

eval panel(0.56, 0.965, sprintf("The error on the way, %s numbers", longest), "step", "mean squared error of 25 steps")
block(i) = names[i].", ".longest
stats data index block(1) using (column("error") > 0.01 ? column("step") : NaN) nooutput
set logscale y; set xrange [0:STATS_max]; set yrange [0.007:0.4]; set ytics (0.01, 0.03, 0.1, 0.3)
set label 2 "who always says 1: 1/6" at graph 1, first 0.2 right tc rgb faint
set label 3 "learned" at graph 1, first 0.0088 right tc rgb faint
eval key(0.04, 0.31); eval series("step", "error"); plot 1.0 / 6 with lines ls 8, 0.01 with lines ls 8, @CURVES
