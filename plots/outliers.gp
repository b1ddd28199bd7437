# The effect of an outlier on the other features of its row, by its size and by the row's mean.
# Data: build/examples/outliers.

load 'plots/style.gp'
out = given('plots/outliers'); data = out.'.dat'

norms = "LayerNorm RMSNorm"
style(k) = k + 2       # the colours of both in all figures
series(k) = word("layer rms", k)
seeds = system(sprintf("sed -n '1s/.*seeds* \\([0-9]*\\)\\( to \\([0-9]*\\)\\)*;.*/\\1 \\3/p' '%s'", data))
count = words(seeds) < 2 ? 1 : word(seeds, 2) - word(seeds, 1) + 1

do for [kind in "svg png"] {
    eval canvas(kind, out, 1000, 460, 0.24, 0.87)
    set label 1 sprintf("Line: median of %d seeds; band: middle half of the seeds.   Outliers and means are counted in deviations of the features in a row.", count) \
        at screen 0.065,0.055 tc rgb faint font fine(kind)
    set label 7 what_of(data) at screen 0.065,0.018 tc rgb faint font fine(kind)

    eval panel(0.1, 0.47, "Rows of mean 0: no difference")
    set logscale x; set format x powers
    set xrange [1:1000]; set yrange [0:125]
    set xlabel "size of the outlier" offset 0,0.4
    set ylabel "change of the other features (%)"
    set label 2 "8 features" at 1.15,74 left tc rgb faint
    set label 3 "128" at 34,74 right tc rgb faint
    set label 4 "2048" at 130,74 right tc rgb faint
    set label 5 "LayerNorm" at 1000,20 right tc ls 10 + style(1)
    set label 6 "RMSNorm" at 1000,11 right tc ls 10 + style(2)
    plot for [n in "8 128 2048"] for [k = 1:2] data index ("width ".n) \
             using 1:(100 * column(series(k))) with linespoints ls style(k) @MARKED dt k

    eval panel(0.575, 0.97, "Rows with a mean: RMSNorm changes less")
    unset logscale x; set format x "%g"
    set xrange [0:10]; set yrange [0:30]
    set xlabel "mean of the row"
    set ylabel "change of the other features (%)" offset 1,0
    set label 2 "LayerNorm" at 10,27.3 right tc ls 10 + style(1)
    set label 3 "RMSNorm" at 10,10.8 right tc ls 10 + style(2)
    plot for [k = 1:2] data index "mean" using 1:(100 * column(series(k)."_low")): \
             (100 * column(series(k)."_high")) with filledcurves ls style(k) @BAND, \
         for [k = 1:2] data index "mean" using 1:(100 * column(series(k))) with linespoints ls style(k) @MARKED

}
