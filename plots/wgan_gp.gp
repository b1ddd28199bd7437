# Points drawn by a generator, the points that it learned from, and the critic's estimate of the
# distance between them. Data: build/examples/wgan_gp.
load 'plots/style.gp'
eval figure('wgan_gp', 1200, 560, "")
eval panel(0.07, 0.45, "Points it was shown, and points the generator draws", "x", "y")
set xrange [-1.5:1.5]; set yrange [-1.5:1.5]
set key on at graph 0.99,0.99
plot data index "real" using "x":"y" with points pt 7 ps 0.5 lc rgb "#b5b5b5" title "shown", \
     data index "drawn" using "x":"y" with points ls 3 pt 6 ps 0.5 lw 1 title "drawn"

eval panel(0.55, 0.98, "The critic's estimate of their distance", "step of the generator", "Wasserstein distance")
set yrange [0:*]
plot data index 0 using "step":"distance" with lines ls 3 lw 1
