# The largest logit of attention and the loss by learning rate, with and without norms of queries
# and keys. Data: build/examples/qk_norm.

load 'plots/style.gp'
out = given('plots/qk_norm'); data = out.'.dat'

array blocks[3] = ["no norm", "LayerNorm", "RMSNorm"]
array names[3] = ["no QK-norm", "LayerNorm of q and k", "RMSNorm of q and k"]
array styles[3] = [1, 3, 4]
seeds = 0
low = 1.0
high = 0.0
do for [i = 1:3] {
    stats data index blocks[i] using (seeds = column("seeds"), low = column("rate") < low ? column("rate") : low, \
        high = column("rate") > high ? column("rate") : high, 1) nooutput
}

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 470, 0.22, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half.\n", seeds).what_of(data) \
        at screen 0.065,0.055 tc rgb faint font fine(kind)
    set logscale x 10
    set xrange [0.85 * low:1.15 * high]
    set xtics (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
    set xlabel "learning rate" offset 0,0.4
    do for [i = 1:3] {
        set label 10 + i names[i] at graph 0.04, graph 1.03 - 0.068 * i tc ls 10 + styles[i] point ls styles[i] offset 1,0
    }
    set lmargin at screen 0.065; set rmargin at screen 0.47
    eval headline("Largest logit of attention after training")
    set logscale y 10
    set format y powers
    set yrange [1:1e6]
    set ylabel "|q · k| / √d"
    plot for [i = 1:3] data index blocks[i] using "rate":"logit_low":"logit_high" with filledcurves ls styles[i] @BAND, \
         for [i = 1:3] data index blocks[i] using "rate":"logit" with linespoints ls styles[i]
    unset label 1
    unset logscale y
    set format y "%g"
    set lmargin at screen 0.56; set rmargin at screen 0.965
    eval headline("Validation loss")
    set yrange [2.3:3.25]
    set ylabel "nats a character"
    plot for [i = 1:3] data index blocks[i] using "rate":"loss_low":"loss_high" with filledcurves ls styles[i] @BAND, \
         for [i = 1:3] data index blocks[i] using "rate":"loss" with linespoints ls styles[i]
    unset logscale x
    set xtics auto
}
