# The steps that an LSTM needs to learn to add, by the length of the sequence and the norm in its
# cell. Data: build/examples/recurrent.

load 'plots/style.gp'
out = given('plots/recurrent'); data = out.'.dat'

array names[3] = ["no norm", "LayerNorm", "RMSNorm"]
array styles[3] = [1, 3, 4]
lengths = system(sprintf("sed -n 's/^# no norm, \\([0-9]*\\)$/\\1/p' '%s'", data))
longest = word(lengths, words(lengths))
seeds = 0
most = 1
last = 1
do for [i = 1:3] { do for [k = 1:words(lengths)] {
    stats data index names[i].", ".word(lengths, k).", steps" using (seeds = column("seeds"), column("steps_high")) nooutput
    most = STATS_max > most ? STATS_max : most
} }
stats data index names[1].", ".longest using (column("error") > 0.01 ? column("step") : NaN) nooutput
last = STATS_max

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half. Each at its own rate.   ", seeds).what_of(data) \
        at screen 0.065,0.035 tc rgb faint font fine(kind)
    do for [i = 1:3] {
        set label 10 + i names[i] at graph 0.05, graph 1.03 - 0.068 * i tc ls 10 + styles[i] point ls styles[i] offset 1,0
    }
    eval panel(0.065, 0.45, "Steps until it has learned")
    set logscale x 2
    set xrange [0.9 * word(lengths, 1):1.1 * longest]
    set xtics (0)
    do for [k = 1:words(lengths)] { set xtics add (word(lengths, k) word(lengths, k) + 0) }
    set yrange [0:1.15 * most]
    set xlabel "numbers in a sequence" offset 0,0.4
    set ylabel "steps of Adam"
    plot for [i = 1:3] for [k = 2:words(lengths)] \
             sprintf("< grep -h -A2 -e '^# %s, %s, steps' -e '^# %s, %s, steps' '%s' | grep '^[0-9]'", \
                 names[i], word(lengths, k - 1), names[i], word(lengths, k), quoted(data)) \
             using 1:3:4 with filledcurves ls styles[i] @BAND, \
         for [i = 1:3] sprintf("< grep -A2 '^# %s, .*steps' '%s' | grep '^[0-9]'", names[i], quoted(data)) \
             using 1:2 with linespoints ls styles[i]
    unset logscale x
    eval panel(0.56, 0.965, sprintf("The error on the way, %s numbers", longest))
    set logscale y
    set xrange [0:last]
    set xtics auto
    set yrange [0.007:0.4]
    set ytics (0.01, 0.03, 0.1, 0.3)
    set xlabel "step"
    set ylabel "mean squared error of 25 steps"
    set label 2 "who always says 1: 1/6" at last,0.2 right tc rgb faint
    set label 3 "learned" at last,0.0088 right tc rgb faint
    do for [i = 1:3] {
        set label 10 + i names[i] at graph 0.04, graph 0.38 - 0.068 * i tc ls 10 + styles[i] point ls styles[i] offset 1,0
    }
    plot 1.0 / 6 with lines ls 8, 0.01 with lines ls 8, \
         for [i = 1:3] data index names[i].", ".longest using "step":"error_low":"error_high" with filledcurves ls styles[i] @BAND, \
         for [i = 1:3] data index names[i].", ".longest using "step":"error" with linespoints ls styles[i] @MARKED
    unset logscale y
    set ytics auto
}
