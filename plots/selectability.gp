# The share of keys that no query selects, by norm and by its place. Data:
# build/examples/selectability.

load 'plots/style.gp'
out = given('plots/selectability'); data = out.'.dat'

array norms[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]
array places[3] = ["keys normalized", "before a narrow head", "QK-norm of a narrow head"]
array titles[3] = ["k = norm(h)", "k = W norm(h), a narrow head", "k = norm(W h), QK-norm"]
array dashes[4] = [1, 1, 1, 2]
seeds = 0
most = 4
stats data index "no norm, ".places[1] using (seeds = column("seeds"), most = column("keys") > most ? column("keys") : most, 1) nooutput

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 450, 0.22, 0.86)
    set label 1 sprintf("Line: median of %d seeds; band: their middle half. No norm is drawn once.   ", seeds).what_of(data) \
        at screen 0.065,0.035 tc rgb faint font fine(kind)
    set logscale x 2
    set xrange [3.7:1.08 * most]
    set xtics (4, 8, 16, 32, 64, 128, 256)
    set xlabel "keys" offset 0,0.4
    set yrange [-1:38]
    set format y "%g %%"
    do for [k = 1:3] {
        eval panel(0.075 + 0.315 * (k - 1), 0.315 + 0.315 * (k - 1), titles[k])
        set ylabel (k == 1 ? "keys that no query selects" : "") offset 0,0
        first_norm = k == 1 ? 1 : 2
        do for [i = first_norm:4] {
            set label 10 + i norms[i] at graph 0.05, graph 1.03 - 0.075 * (i - first_norm + 1) tc ls 10 + i point ls i offset 1,0
        }
        plot for [i = first_norm:4] data index norms[i].", ".places[k] \
                 using "keys":(100 * column("share_low")):(100 * column("share_high")) with filledcurves ls i @BAND, \
             for [i = first_norm:4] data index norms[i].", ".places[k] using "keys":(100 * column("share")) \
                 with linespoints ls i dt dashes[i]
    }
    unset logscale x
    set xtics auto
    set format y "%g"
}
