# The loss on a new sine after 0 to 10 steps of gradient descent on ten of its points. Data:
# build/examples/maml.

load 'plots/style.gp'
out = given('plots/maml'); data = out.'.dat'

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.21, 0.88)
    set label 1 "Left: mean over 100 new sines, amplitude 0.1 to 5.   ".what_of(data) \
        at screen 0.07,0.035 tc rgb faint font fine(kind)

    eval panel(0.07, 0.48, "One step learns a new sine, from the start that was learned")
    set xlabel "steps of gradient descent on ten points" offset 0,0.4
    set ylabel "squared error on ten others"
    set yrange [0:*]
    set key at graph 0.98,0.7
    plot data index "untrained" using "step":"loss" with linespoints ls 1 title "from random weights", \
         data index "trained" using "step":"loss" with linespoints ls 3 title "from the learned start"
    unset label 1; unset key

    eval panel(0.57, 0.98, "While it was learned: after one step")
    set xlabel "step of Adam on the start"
    set ylabel "squared error"
    set logscale y
    set yrange [*:*]
    plot data index 0 using "step":"loss" with lines ls 3 lw 1
    unset multiplot
    unset logscale; unset output
}
