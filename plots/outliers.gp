# The effect of an outlier on the other features of its row, by its size and by the row's mean.
# Data: build/examples/outliers.
load 'plots/style.gp'
scale = 100
eval figure('outliers', 1000, 460, \
    "Line: median; band: middle half of the seeds. Outliers and means are counted in deviations of the features in a row.")
eval panel(0.1, 0.47, "Rows of mean 0: no difference", "size of the outlier", "change of the other features (%)")
eval logs('x'); set xrange [1:1000]; set yrange [0:125]
set label 2 "8 features" at 1.15,74 left tc rgb faint
set label 3 "128" at 34,74 right tc rgb faint
set label 4 "2048" at 130,74 right tc rgb faint
set label 5 "LayerNorm" at 1000,20 right tc ls 13
set label 6 "RMSNorm" at 1000,11 right tc ls 14
plot for [n in "8 128 2048"] for [k = 1:2] data index ("width ".n) \
    using 1:(scale * column(word("layer rms", k))) with linespoints ls k + 2 @MARKED dt k

eval panel(0.575, 0.97, "Rows with a mean: RMSNorm changes less", "mean of the row", "change of the other features (%)")
set xrange [0:10]; set yrange [0:30]
set label 2 "LayerNorm" at 10,27.3 right tc ls 13
set label 3 "RMSNorm" at 10,10.8 right tc ls 14
plot for [k = 1:2] data index "mean" \
    using 1:(scale * column(word("layer rms", k)."_low")):(scale * column(word("layer rms", k)."_high")) \
         with filledcurves ls k + 2 @BAND, \
     for [k = 1:2] data index "mean" using 1:(scale * column(word("layer rms", k))) with linespoints ls k + 2 @MARKED
