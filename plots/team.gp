# The error by pass of a team of three layers that learns the right moment, and its swinging at each
# learning rate, from the data of build/examples/team:
#
#     gnuplot plots/team.gp                    plots/team.dat -> .svg
#     gnuplot -c plots/team.gp PREFIX          the same for another PREFIX.dat

load 'plots/style.gp'
out = given('plots/team'); data = out.'.dat'

array team[2] = ["no norm", "LayerNorm"]
style(t) = t == 1 ? 1 : 3
# Less swinging is drawn on the lowest line; more, also infinite swinging, on the highest.
FLOOR = 0.01
TOP = 1000.0
shown(s) = s < FLOOR ? FLOOR : s > TOP ? TOP : s

stats data index "passes raw no norm" using (rate = column("rate"), seeds = column("seeds"), \
    passes = column("pass")) nooutput

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 500, 0.22, 0.88)
    unset logscale
    set format "%g"
    set label 1 sprintf("Left: the seed of median swinging; band: middle half of %d seeds. ", seeds). \
        "Right: medians; swinging is the way of the mean error beyond that from first to last." \
        at screen 0.065,0.055 tc rgb faint font fine(kind)
    set label 2 what_of(data) at screen 0.065,0.018 tc rgb faint font fine(kind)

    set lmargin at screen 0.065; set rmargin at screen 0.44
    eval headline(sprintf("Raw inputs, learning rate %.2g: error by pass", rate))
    set xlabel "pass" offset 0,0.4
    set ylabel "mean error of the goal (s)"
    set xrange [1:passes]
    set yrange [-4:4]
    set label 3 "too late" at graph 0.02,0.95 tc rgb faint
    set label 4 "too early" at graph 0.02,0.05 tc rgb faint
    set label 5 "without LayerNorm" at graph 0.98,0.95 right tc ls 11
    set label 6 "with LayerNorm" at graph 0.98,0.88 right tc ls 13
    plot for [t = 1:2] data index "passes raw ".team[t] using "pass":"late_low":"late_high" \
             with filledcurves ls style(t) @BAND, \
         0 with lines ls 8, \
         for [t = 1:2] data index "passes raw ".team[t] using "pass":"shown" with linespoints ls style(t) @MARKED
    do for [i = 1:6] { unset label i }

    eval panel(0.56, 0.9, "Swinging, with raw and with standardized inputs")
    set label 3 "without LayerNorm, raw" right at 0.019,200 tc ls 11
    set label 5 "LayerNorm," right at 0.034,2.2 tc ls 13
    set label 6 "either way" right at 0.034,1 tc ls 13
    set label 7 "without," at 0.6,30 tc ls 11
    set label 8 "standardized" at 0.6,14 tc ls 11
    set xlabel "learning rate"
    set ylabel "swinging (s)"
    set logscale xy
    set format xy powers
    set xrange [1e-4:0.52]
    set yrange [FLOOR:TOP * 1.3]
    set ytics ("< 0.01" FLOOR, "0.1" 0.1, "1" 1, "10" 10, "100" 100, "> 1000" TOP)
    set label 9 "flown away" at 1.2e-4,TOP * 0.6 tc rgb faint
    plot for [t = 1:2] data index "rates raw ".team[t] using "rate":(shown(column("swinging"))) \
             with linespoints ls style(t), \
         for [t = 1:2] data index "rates standardized ".team[t] \
             using "rate":(shown(column("swinging"))) with linespoints ls style(t) dt 2
    set ytics autofreq
}
