# The rise of the loss when a block is left out, by block, for four places of the norms. Data:
# build/examples/depth_curse.

load 'plots/style.gp'
out = given('plots/depth_curse'); data = out.'.dat'

array names[4] = ["pre-norm", "LayerNorm scaling", "Peri-LN", "Mix-LN"]
array style[4] = [1, 3, 4, 2]
array losses[4]
array shares[4]
seeds = 0
blocks = 1
least = 1e-4 # what is below is drawn here
do for [i = 1:4] {
    stats data index names[i] using (seeds = column("seeds"), blocks = column("block"), 1) nooutput
    stats data index "kinds" using (column("kind") == i - 1 ? (losses[i] = column("loss"), \
        shares[i] = column("share"), 1) : NaN) nooutput
}
up(x) = x > least ? x : least

do for [kind in "svg png"] {
    eval canvas(kind, out, 1000, 520, 0.22, 0.88)
    set lmargin at screen 0.09; set rmargin at screen 0.965
    set label 1 sprintf("Line: median of %d seeds; band: their middle half. Rises below %g are drawn there.", seeds, least) \
        at screen 0.09,0.075 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.09,0.03 tc rgb faint font fine(kind)
    eval headline("How much the loss rises when one block is left out")
    set logscale y
    set format y powers
    set xrange [1:blocks]
    set yrange [least:10]
    set xtics (1, 6, 12, 18, 24)
    set xlabel "block, from the input" offset 0,0.4
    set ylabel "nats a character"
    do for [i = 1:4] {
        set label 10 + i sprintf("%s: loss %.2f, share of the last third %.1f %%", names[i], losses[i], 100 * shares[i]) \
            at graph 0.42, graph 1.03 - 0.07 * i tc ls 10 + style[i] point ls style[i] offset 1,0
    }
    plot for [i = 1:4] data index names[i] using "block":(up(column("rise_low"))):(up(column("rise_high"))) \
             with filledcurves ls style[i] @BAND, \
         for [i = 1:4] data index names[i] using "block":(up(column("rise"))) with linespoints ls style[i] @MARKED
}
