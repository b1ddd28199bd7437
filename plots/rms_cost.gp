# What RMSNorm costs beside LayerNorm, by width: the time of both, forward and backward, and what is
# saved of these and of a training step. The numbers come from
#
#     build/examples/rms_cost

load 'plots/style.gp'
out  = (exists("ARG1") && strlen(ARG1)) ? ARG1 : 'plots/rms_cost'
data = out . '.dat'

norms = "LayerNorm RMSNorm"
style(k) = k + 2              # their colours in all figures
time_of(k) = 3 * k - 1        # their columns; the quartiles follow
blocks = "forward backward step"
colours = "#000000 #cc79a7 #e69f00"

# The value at the widest row, and the largest of a block.
last(block, col) = system(sprintf("awk '/^# / { on = $2 == \"%s\" } on && $1 + 0 { y = $%d } END { print y }' '%s'", \
                                  block, col, data)) + 0
cell(block, row, col) = system(sprintf("awk '/^# / { on = $2 == \"%s\"; n = 0 } on && n++ == %d + 2 { print $%d }' '%s'", \
                                       block, row, col, data)) + 0
stats data index "backward" using "width":"layer_us" nooutput
widest = STATS_max_x
top = 1.1 * STATS_max_y
array saved[3]
do for [b = 1:3] { saved[b] = last(word(blocks, b), 8) }

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500)
    set multiplot
    set label 1 "Lines: medians; bands: quartiles.   ".what_of(data) \
        at screen 0.03,0.03 tc rgb faint font fine(kind)
    set bmargin at screen 0.21; set tmargin at screen 0.88
    set logscale x 2
    set format x "%.0f"
    set xlabel "features in a row" offset 0,0.4
    set xrange [32:widest]
    set xtics 32, 4

    set lmargin at screen 0.065; set rmargin at screen 0.36
    eval headline("Time to normalize one tensor")
    set yrange [0:top]
    set ylabel "microseconds"
    gap = 0.06
    array ends[4]
    do for [k = 1:2] {
        ends[k] = last("backward", time_of(k)) / top
        ends[2 + k] = last("forward", time_of(k)) / top
    }
    eval SPREAD
    do for [k = 1:2] {
        set label 10 + k word(norms, k)." backward" at graph 1.02, graph ends[k] tc ls 10 + style(k)
        set label 12 + k word(norms, k)." forward" at graph 1.02, graph ends[2 + k] tc ls 10 + style(k)
    }
    plot for [block in "backward forward"] for [k = 1:2] data index block \
             using 1:(column(time_of(k) + 1)):(column(time_of(k) + 2)) \
             with filledcurves ls style(k) @BAND, \
         for [block in "backward forward"] for [k = 1:2] data index block \
             using 1:(column(time_of(k))) with linespoints ls style(k) @MARKED
    do for [i = 11:14] { unset label i }

    set lmargin at screen 0.59; set rmargin at screen 0.87
    eval headline("What RMSNorm saves")
    set yrange [-20:70]
    set ylabel "share of the time with LayerNorm (%)"
    gap = 0.058
    array ends[2]
    do for [b = 1:2] { ends[b] = (saved[b] + 20) / 90 }
    eval SPREAD
    do for [b = 1:2] {
        set label 10 + b word(blocks, b) at graph 1.02, graph ends[b] tc rgb word(colours, b)
    }
    set label 13 "training step" at first 1.15 * last("step", 1), first saved[3] tc rgb word(colours, 3)
    set object 1 rectangle from graph 0, first 7 to graph 1, first 64 fs solid 0.06 noborder fc rgb "black" behind
    set label 2 "7 to 64 % of a whole run: what the paper reports" at graph 0.03, first 60 tc rgb faint font fine(kind)
    set label 3 sprintf("accuracy: LayerNorm %.1f %%, RMSNorm %.1f %%", cell("accuracy", 0, 2), cell("accuracy", 1, 2)) \
        at graph 0.03, first 53 tc rgb ink font fine(kind)
    plot for [b = 1:3] data index word(blocks, b) using 1:9:10 with filledcurves \
             fc rgb word(colours, b) @BAND, \
         for [b = 1:3] data index word(blocks, b) using 1:8 with lines lw 2.2 lc rgb word(colours, b)
    do for [i = 2:3] { unset label i }
    do for [i = 11:13] { unset label i }
    unset object 1
    unset multiplot
    unset output
}
