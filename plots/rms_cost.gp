# The time of RMSNorm and LayerNorm by width, forward and backward, and the time that RMSNorm saves,
# also in a training step. Data:
#
#     build/examples/rms_cost

load 'plots/style.gp'
out = given('plots/rms_cost'); data = out.'.dat'

norms = "LayerNorm RMSNorm"
style(k) = k + 2              # their colours in all figures
time_of(k) = word("layer rms", k) # their columns
blocks = "forward backward step"
array looks[3] = [1, 3, 2]    # dash types
array shapes[3] = [11, 9, 7]

# The value at the widest row, and the largest value of a block.
last(block, name) = system(sprintf("awk '/^# / { on = $2 == \"%s\" } on && $1 == \"width\" { \
    for (i = 1; i <= NF; i++) if ($i == \"%s\") c = i } on && $1 + 0 { y = $c } END { print y }' '%s'", \
    block, name, data)) + 0
stats data index "backward" using "width":"layer_high" nooutput
widest = STATS_max_x
top = 1.05 * STATS_max_y
array saved[3]
low = 0
high = 70
do for [b = 1:3] {
    saved[b] = last(word(blocks, b), "saving")
    stats data index word(blocks, b) using "saving_low":"saving_high" nooutput
    low = STATS_min_x < low ? 10 * floor(STATS_min_x / 10) : low
}

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.22, 0.88)
    set label 1 "Line: median of the rounds; band: their middle half." \
        at screen 0.065,0.055 tc rgb faint font fine(kind)
    set label 3 what_of(data) at screen 0.065,0.018 tc rgb faint font fine(kind)
    set logscale x 2
    set format x "%.0f"
    set xlabel "features in a row" offset 0,0.4
    set xrange [32:widest]
    set xtics 32, 4

    set lmargin at screen 0.065; set rmargin at screen 0.36
    eval headline("Time to normalize one tensor")
    set yrange [0:top]
    set ylabel "microseconds of processor time"
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
             using "width":(column(time_of(k)."_low")):(column(time_of(k)."_high")) \
             with filledcurves ls style(k) @BAND, \
         for [block in "backward forward"] for [k = 1:2] data index block \
             using "width":(column(time_of(k))) with linespoints ls style(k) @MARKED
    do for [i = 11:14] { unset label i }

    set lmargin at screen 0.59; set rmargin at screen 0.87
    eval headline("What RMSNorm saves")
    set yrange [low:high]
    set ylabel "share of the time with LayerNorm (%)"
    gap = 0.058
    array ends[2]
    do for [b = 1:2] { ends[b] = (saved[b] - low) / (high - low) }
    eval SPREAD
    do for [b = 1:2] {
        set label 10 + b word(blocks, b) at graph 1.02, graph ends[b] tc ls 14
    }
    set label 13 "training step" at first 1.15 * last("step", "width"), first saved[3] offset 0,0.6 tc ls 14
    set object 1 rectangle from graph 0, first 7 to graph 1, first 64 fs solid 0.06 noborder fc rgb "black" behind
    set label 2 "7 to 64 % of a whole run: what the paper reports" at graph 0.03, first 60 tc rgb faint font fine(kind)
    plot 0 with lines ls 8, \
         for [b = 1:3] data index word(blocks, b) using "width":"saving_low":"saving_high" with filledcurves ls 4 @BAND, \
         for [b = 1:3] data index word(blocks, b) using "width":"saving" with linespoints ls 4 dt looks[b] pt shapes[b]
    unset object 1
}
