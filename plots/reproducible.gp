# The loss of one training on several processors, and how far PyTorch's losses are apart. Data:
# build/examples/reproducible.
load 'plots/style.gp'
array names[5] = ["PyTorch, AVX2", "PyTorch, two threads", "AVX2", "NEON", "two threads"]
array styles[5] = [5, 2, 3, 3, 3]
shown_off(off) = off > 1e-9 ? off : 1e-9 # losses that agree
eval figure('reproducible', 1200, 470, \
    "Median; band: smallest to largest. NEON under qemu, the first steps only, since it is slow.")
eval panel(0.07, 0.36, "Training loss, nats a character", "step", "training loss (nats)")
set yrange [1.8:4.8]
set label 11 "normgrad" at graph 0.6, graph 0.88 tc ls 13
set label 12 "PyTorch" at graph 0.6, graph 0.80 tc ls 15
plot data index "AVX-512" using "step":"loss" with lines ls 3 lw 1.4, data index names[1] using "step":"loss" \
    with lines ls 5 lw 1.4

eval panel(0.47, 0.8, "Difference from the loss with AVX-512, one thread", "step", "difference of the loss")
set logscale y; set yrange [1e-9:1]; set format y powers; set ytics 100; set ytics add ("0" 1e-9)
set label 11 "PyTorch 2.6, two threads" at graph 1.03, graph 0.93 tc ls 12
set label 12 "PyTorch 2.6, AVX2" at graph 1.03, graph 0.83 tc ls 15
set label 13 "normgrad: AVX2, NEON,\ntwo threads: 0" at graph 1.03, graph 0.09 tc ls 13
plot for [i = 1:2] data index names[i] using "step":(shown_off(column("off_min"))):(shown_off(column("off_max"))) \
    with filledcurves ls styles[i] @BAND, \
     for [i = 1:5] data index names[i] using "step":(shown_off(column("off"))) with lines ls styles[i] lw (i > 2 ? 5 : 2.2)
