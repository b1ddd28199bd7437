# A layer's activations before and after each norm, from what build/examples/distribution wrote:
#
#     gnuplot plots/distribution.gp               plots/distribution.dat -> .svg and .png
#     gnuplot -c plots/distribution.gp PREFIX     the same for another PREFIX.dat

load 'plots/style.gp'
out  = (exists("ARG1") && strlen(ARG1)) ? ARG1 : 'plots/distribution'
data = out . '.dat'

array names[4]  = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array titles[4] = ["A bell, LayerNorm", "A layer, BatchNorm", "A layer, LayerNorm", "A layer, RMSNorm"]
array seen[4]   = ["Two examples by hand", "Each feature at 0, 1", "Each image at 0, 1", \
                   "Each image on a circle"]
first(k) = 0.055 + 0.2415 * (k - 1)
last(k)  = first(k) + 0.205

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 640)
    eval "set tics nomirror font '" . fine(kind) . "'"
    set border 3
    set multiplot
    set label 1 "Grey: before; colour: after, gamma 1, beta 0; mean ± deviation; dots: first seed.   " . what_of(data) \
        at screen 0.02,0.024 tc rgb faint font fine(kind)

    # ---- Histograms: document 003's picture, then the layer ----
    set tmargin at screen 0.925; set bmargin at screen 0.595
    set xrange [-4:6]
    set yrange [0:0.72]
    set ytics 0.2
    set xtics 2
    set xlabel "activation" offset 0,0.5 font fine(kind)
    do for [k = 1:4] {
        set lmargin at screen first(k); set rmargin at screen last(k)
        before = k == 1 ? "bell before" : names[1]
        after  = k == 1 ? "bell after" : names[k]
        colour = k == 1 ? 3 : k
        eval headline(titles[k])
        set ylabel k == 1 ? "density" : "" offset 1.5,0
        stats data index before using (m0 = column("mean"), d0 = column("deviation"), 0) nooutput
        stats data index after using (m1 = column("mean"), d1 = column("deviation"), 0) nooutput
        set label 2 sprintf("before %.2f ± %.2f", m0, d0) at graph 0.97,0.93 right \
            tc rgb faint font fine(kind)
        set label 3 sprintf("after %.2f ± %.2f", abs(m1) < 0.005 ? 0 : m1, d1) \
            at graph 0.97,0.83 right tc ls 10 + colour font fine(kind)
        plot data index before using "x":"density" with boxes fs solid 0.25 noborder lc rgb faint, \
             data index after using "x":"density" with histeps ls colour
        unset label 1
    }

    # ---- The documents' worked examples: values move from the upper line to the lower ----
    set tmargin at screen 0.44; set bmargin at screen 0.12
    set lmargin at screen first(1); set rmargin at screen last(1)
    eval headline(seen[1])
    set xrange [-2:5.2]
    set yrange [-0.2:3.4]
    set xtics 1
    unset ytics
    set border 1
    unset ylabel
    set xlabel "value" offset 0,0.5 font fine(kind)
    set label 2 "LayerNorm of 1, 2, 3, 4" at -2,3.25 left tc ls 13 font fine(kind)
    set label 3 "RMSNorm of 3, 4" at -2,1.45 left tc ls 14 font fine(kind)
    plot data index "worked LayerNorm" using "x":(2.85):(column("y") - column("x")):(-0.8) \
             with vectors head filled size graph 0.03,20 ls 3 lw 1.3, \
         data index "worked LayerNorm" using "x":(2.85) with points pt 7 ps 0.8 lc rgb faint, \
         data index "worked LayerNorm" using "y":(2.05) with points ls 3 ps 0.8, \
         data index "worked RMSNorm" using "x":(1.05):(column("y") - column("x")):(-0.8) \
             with vectors head filled size graph 0.03,20 ls 4 lw 1.3, \
         data index "worked RMSNorm" using "x":(1.05) with points pt 7 ps 0.8 lc rgb faint, \
         data index "worked RMSNorm" using "y":(0.25) with points ls 4 ps 0.8

    # ---- Mean and deviation of every image and of every feature ----
    unset label
    set border 3
    set xrange [-2:2]
    set yrange [0:2]
    eval "set ytics 0.5 nomirror font '" . fine(kind) . "'"
    set xlabel "mean" offset 0,0.5 font fine(kind)
    set parametric
    set trange [0:pi]
    do for [k = 2:4] {
        set lmargin at screen first(k); set rmargin at screen last(k)
        eval headline(seen[k])
        set ylabel k == 2 ? "deviation" : "" offset 2,0
        target = k == 2 ? "features" : "images"
        set label 2 "● an image" at graph 0.03,0.93 left tc rgb ink font fine(kind)
        set label 3 "○ a feature" at graph 0.03,0.83 left tc ls 10 + k font fine(kind)
        set label 4 "image before" at graph 0.97,0.93 right tc rgb faint font fine(kind)
        plot data index "no norm images" using 1:2 with points pt 7 ps 0.22 lc rgb "#bbbbbb", \
             k == 4 ? cos(t) : NaN, sin(t) with lines ls 8, \
             data index names[k]." features" using 1:2 with points ls k pt 6 ps 0.6 lw 1, \
             data index names[k]." images" using 1:2 with points pt 7 ps 0.35 lc rgb ink, \
             data index names[k]." ".target every ::0::0 using (k == 4 ? NaN : 0):(1) \
                 with points pt 6 ps 2.4 lw 2.2 lc rgb k == 2 ? word(palette, k) : ink
    }
    unset parametric
    unset label
    unset multiplot
    unset output
}
