# A network's and the exact solution of the equation of a damped oscillator, and the loss. Data:
# build/examples/pinn.

load 'plots/style.gp'
out = given('plots/pinn'); data = out.'.dat'

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.21, 0.88)
    set label 1 what_of(data) at screen 0.07,0.035 tc rgb faint font fine(kind)

    eval panel(0.07, 0.48, "The network that solves the equation, and the solution")
    set xlabel "t" offset 0,0.4
    set ylabel "u"
    set key at graph 0.98,0.95
    plot data index "solution" using "t":"exact" with lines ls 1 lw 7 lc rgb "#d5d5d5" \
             title "e^{-t/2} (cos 4t + sin(4t) / 8)", \
         data index "solution" using "t":"network" with lines ls 3 title "network"
    unset label 1; unset key

    eval panel(0.57, 0.98, "How far it is from solving it")
    set xlabel "step"
    set ylabel "loss"
    set logscale y
    set format y powers
    plot data index 0 using "step":"loss" with lines ls 3 lw 1
    unset multiplot
    unset logscale; unset output
    set format y "%g"
}
