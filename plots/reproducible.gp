# The loss of one training on several processors, and how far PyTorch's losses are apart. Data:
# build/examples/reproducible.

load 'plots/style.gp'
out = given('plots/reproducible'); data = out.'.dat'

array own[4] = ["AVX-512", "AVX2", "NEON", "two threads"]
array theirs[2] = ["PyTorch, AVX2", "PyTorch, two threads"]
stats data index theirs[1] using (seeds = column("seeds"), steps = column("step"), 1) nooutput
bottom = 1e-9
shown(off) = off > 0 ? off : bottom # PyTorch's losses that agree

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Median of %d seeds; band: smallest to largest. NEON under qemu, the first steps only, since it is slow.", seeds) \
        at screen 0.06,0.055 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.06,0.018 tc rgb faint font fine(kind)
    set xrange [0:steps]
    set xlabel "step" offset 0,0.4
    set lmargin at screen 0.07; set rmargin at screen 0.36
    set ylabel "training loss (nats)"
    eval headline("Training loss, nats a character")
    set yrange [1.8:4.8]
    set label 11 "normgrad" at graph 0.6, graph 0.88 tc ls 13
    set label 12 "PyTorch" at graph 0.6, graph 0.80 tc ls 15
    plot data index own[1] using "step":"loss" with lines ls 3 lw 1.4, \
         data index theirs[1] using "step":"loss" with lines ls 5 lw 1.4
    unset label 1; unset label 2; unset label 11; unset label 12

    set lmargin at screen 0.47; set rmargin at screen 0.8
    set ylabel "difference of the loss"
    eval headline("Difference from the loss with AVX-512, one thread")
    set logscale y
    set yrange [bottom:1]
    set ytics 100
    set format y powers
    set ytics add ("0" bottom)
    set label 11 "PyTorch 2.6, two threads" at graph 1.03, graph 0.93 tc ls 12
    set label 12 "PyTorch 2.6, AVX2" at graph 1.03, graph 0.83 tc ls 15
    set label 13 "normgrad: AVX2, NEON," at graph 1.03, graph 0.09 tc ls 13
    set label 14 "two threads: 0" at graph 1.03, graph 0.02 tc ls 13
    plot for [i = 1:2] data index theirs[i] using (column("step")):(shown(column("off_min"))):(shown(column("off_max"))) with filledcurves ls (i == 1 ? 5 : 2) @BAND, \
         for [i = 1:2] data index theirs[i] using (column("step")):(shown(column("off"))) with lines ls (i == 1 ? 5 : 2), \
         for [i = 2:4] data index own[i] using (column("step")):(shown(column("off"))) with lines ls 3 lw 5
    unset logscale y
    set format y "%g"
    set ytics autofreq
    unset label 11; unset label 12; unset label 13; unset label 14
}
