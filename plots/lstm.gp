# The adding problem: the error of an LSTM by step, with and without LayerNorm in its cell, a curve
# for each seed. Data: build/examples/lstm.

load 'plots/style.gp'
out = given('plots/lstm'); data = out.'.dat'

array names[2] = ["no norm", "LayerNorm"]
array styles[2] = [1, 3]
array last[2] = [0, 0] # log10 of the errors at the end, their mean
RUNS = 5
guess = 1.0 / 6
do for [i = 1:2] {
    do for [s = 0:RUNS - 1] {
        stats data index names[i] using (steps = column("step"), latest = column("run".s)) nooutput
        last[i] = last[i] + log10(latest) / RUNS
    }
}

do for [kind in "svg png"] {
    eval canvas(kind, out, 1000, 520, 0.22, 0.88)
    set lmargin at screen 0.09; set rmargin at screen 0.87
    set label 1 sprintf("Each curve: one of %d starts; means over a fortieth of all steps.", RUNS) \
        at screen 0.09,0.075 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.09,0.03 tc rgb faint font fine(kind)
    set logscale y
    set format y powers
    set xrange [0:steps]
    set yrange [1e-4:1]
    set xlabel "step" offset 0,0.4
    set ylabel "mean squared error"
    eval headline("Adding two of fifty numbers: an LSTM learns it sooner with LayerNorm in its cell")
    set arrow 1 from graph 0, first guess to graph 1, first guess nohead ls 8
    set label 3 "always 1" at graph 1.02, first guess tc rgb faint
    do for [i = 1:2] {
        set label 10 + i names[i] at graph 1.02, first 10 ** last[i] tc ls 10 + styles[i]
    }
    plot for [i = 1:2] for [s = 0:RUNS - 1] data index names[i] using "step":(column("run".s)) \
             with lines ls styles[i] lw 1.4
}
