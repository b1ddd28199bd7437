# Final loss by learning rate at one depth, and the highest rate that trains by depth. Data:
# build/examples/learning_rate.

load 'plots/style.gp'
out = given('plots/learning_rate'); data = out.'.dat'

array names[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
shown = 8 # layers, on the left
block(i) = sprintf("%s, %d layers", names[i], shown)
bottom = 10
array last[4]
array seeds[4]
do for [i = 1:4] {
    stats data index block(i) using "loss_low" nooutput
    bottom = STATS_min < bottom ? STATS_min : bottom
    stats data index names[i].", highest" using (last[i] = column("rate"), \
        seeds[i] = column("seeds"), column("rate")) nooutput
}
bottom = 0.7 * bottom
array ends[4]
gap = 0.06

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.21, 0.88)
    set label 1 sprintf("Line: median of %d seeds; band: middle half of the seeds.   ", seeds[2]).what_of(data) \
        at screen 0.07,0.035 tc rgb faint font fine(kind)
    set logscale xy
    set format xy powers

    set lmargin at screen 0.07; set rmargin at screen 0.48
    eval headline(sprintf("BatchNorm trains at rates where all others fail (%d layers)", shown))
    set xlabel "learning rate" offset 0,0.4
    set ylabel "training loss of the last epoch"
    set xrange [0.004:16.5]
    set yrange [bottom:14]
    set arrow 1 from 0.004,log(10) to 16.5,log(10) nohead ls 8
    set label 2 "guessing" at 0.0045,log(10)*1.25 tc rgb faint
    set label 3 "diverged" at 15.5,7.5 right tc rgb faint
    set label 11 names[1] at 0.7,5 right tc ls 11
    set label 12 names[2] at 1.3,0.085 tc ls 12
    set label 13 names[3] at 1.05,1.6 tc ls 13
    set label 14 names[4] at 1.05,1.1 tc ls 14
    plot for [i = 1:4] data index block(i) using "rate":"loss_low":"loss_high" \
             with filledcurves ls i @BAND, \
         for [i = 1:4] data index block(i) using "rate":"loss" with linespoints ls i @MARKED
    do for [i = 1:3] { unset label i; unset label 10 + i }
    unset label 14; unset arrow 1

    eval panel(0.57, 0.875, "The highest rate that trains, by depth")
    set xlabel "hidden layers"
    set ylabel "learning rate"
    set xrange [1.8:17]
    set yrange [0.02:10]
    set format x "%g"
    set xtics (2, 4, 8, 16)
    do for [i = 1:4] { ends[i] = last[i] > 0 ? log(last[i] / 0.02) / log(10 / 0.02) : 0 }
    eval SPREAD
    do for [i = 1:4] { set label 10 + i names[i] at graph 1.02, graph ends[i] tc ls 10 + i }
    plot for [i = 1:4] data index names[i].", highest" using "layers":"rate_low":"rate_high" \
             with filledcurves ls i @BAND, \
         for [i = 1:4] data index names[i].", highest" using "layers":"rate" with linespoints ls i
    set xtics auto
}
