# The memory that LayerNorm and RMSNorm keep for the backward pass, fused and composed, and the tape
# of a transformer with each. Data: build/examples/memory.

load 'plots/style.gp'
out = given('plots/memory'); data = out.'.dat'

array norms[2] = ["LayerNorm", "RMSNorm"]
array last[2]
narrow = 1e9
wide = 0.0
broad = 0.0
stats data index "LayerNorm, fused" using (narrow = column("width") < narrow ? column("width") : narrow, \
    wide = column("width"), 1) nooutput
do for [i = 1:2] {
    stats data index norms[i].", transformer" using (broad = column("width"), last[i] = column("kept"), 1) nooutput
}

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 450, 0.22, 0.86)
    set label 1 "Bytes on the tape after the forward pass; nothing is random.   ".what_of(data) \
        at screen 0.07,0.035 tc rgb faint font fine(kind)
    eval panel(0.07, 0.44, "Memory of one norm, without its result")
    set logscale x 2
    set logscale y 10
    set format y powers
    set format x "2^{%L}"
    set xrange [0.85 * narrow:1.2 * wide]
    set yrange [2e-5:30]
    set xlabel "features" offset 0,0.4
    set ylabel "share of the tensor"
    set label 2 "composed of small operations: 4 tensors and 2" at wide,12 right tc rgb ink font fine(kind)
    set label 3 "fused: two numbers a row and one" at narrow * 1.5,0.04 left tc rgb ink font fine(kind)
    do for [i = 1:2] {
        set label 12 + i norms[i] at graph 0.05, graph 0.25 - 0.075 * i tc ls 12 + i point ls 2 + i offset 1,0
    }
    plot for [i = 1:2] data index norms[i].", composed" using "width":"kept" with linespoints ls 2 + i dt 2, \
         for [i = 1:2] data index norms[i].", fused" using "width":"kept" with linespoints ls 2 + i
    unset logscale xy
    set format "%g"
    eval panel(0.54, 0.965, "Tape of a transformer with fused norms")
    set xrange [0:1.05 * broad]
    set yrange [0:1.1 * last[1]]
    set xlabel "features"
    set ylabel "megabytes"
    do for [i = 1:2] {
        set label 12 + i norms[i] at graph 0.05, graph 1.0 - 0.075 * i tc ls 12 + i point ls 2 + i offset 1,0
    }
    set label 2 sprintf("RMSNorm saves %.2f %%", 100 * (1 - last[2] / last[1])) at broad,last[1] * 0.4 right tc rgb ink
    plot for [i = 1:2] data index norms[i].", transformer" using "width":"kept" with linespoints ls 2 + i dt i
}
