# The invariances of the norms, from the data of build/examples/invariance:
#
#     gnuplot plots/invariance.gp               plots/invariance.dat -> .svg
#     gnuplot -c plots/invariance.gp PREFIX     the same for another PREFIX.dat

load 'plots/style.gp'
out = given('plots/invariance'); data = out.'.dat'

array norms[9] = ["BatchNorm", "WeightNorm", "LayerNorm", "RMSNorm", "pRMSNorm", \
                  "GroupNorm", "ScaleNorm", "DynamicTanh", "no norm"]
array changes[6] = ["matrix\nscaled", "matrix\nshifted", "one row\nscaled", \
                    "all\nscaled", "all\nshifted", "one\nscaled"]
# The position of a row, with a gap below the published rows.
height(row) = -row - (row > 4 ? 0.35 : 0)
# The label of an entry: whether the output changes, and whether the table says otherwise.
still(measured) = measured < 1e-10
mark(measured, published) = (still(measured) ? "✓" : "✗") . \
    (published eq "0" && still(measured) || published eq "1" && !still(measured) ? " (!)" : "")

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 620, 0.085, 0.79)
    eval "set tics font '" . fine(kind) . "'"
    set label 1 "✓ unchanged, ✗ changed; (!): differs from the published table (upper five). Number: median relative change.   " \
        . what_of(data) at screen 0.02,0.026 tc rgb faint font fine(kind)

    # ---- The table ----
    set lmargin at screen 0.105; set rmargin at screen 0.615
    set xrange [-0.5:5.5]
    set yrange [-8.9:0.5]
    unset border; unset tics; unset grid; unset xlabel; unset ylabel
    set label 99 "What a norm's output does not change with" at screen 0.02,0.955 left tc rgb ink \
        font (kind eq "svg" ? ",17.5" : ",13.5")
    set label 2 "weights" at 1,1.75 center tc rgb ink
    set label 3 "cases (data)" at 4,1.75 center tc rgb ink
    do for [k = 1:6] { set label 10 + k changes[k] at k - 1,1.15 center tc rgb ink font fine(kind) }
    do for [k = 1:9] {
        set label 20 + k norms[k] at -0.6,height(k - 1) right tc rgb ink
    }
    set palette defined (-16 "#6db3dc", -15 "#7fbde1", -8 "#f4f4f4", -3 "#fbe3b3", 0 "#f0b441")
    set cbrange [-16:0]
    unset colorbox
    plot data index "table" using "change":(height(column("norm"))): \
             (column("change") - 0.47):(column("change") + 0.47): \
             (height(column("norm")) - 0.45):(height(column("norm")) + 0.45): \
             (log10(column("measured") + 1e-17)) with boxxyerror fs solid noborder lc palette, \
         data index "table" using "change":(height(column("norm")) + 0.17): \
             (mark(column("measured"), stringcolumn("published"))) with labels tc rgb ink, \
         data index "table" using "change": \
             (height(column("norm")) - 0.2): \
             (column("measured") < 1e-3 ? sprintf("%.0e", column("measured")) : \
              sprintf("%.2f", column("measured"))) with labels tc rgb ink font fine(kind)
    unset label

    # ---- With eps ----
    set border 3
    set lmargin at screen 0.725; set rmargin at screen 0.965
    set tmargin at screen 0.87; set bmargin at screen 0.165
    set label 99 "In float and with eps: matrix scaled" at screen 0.665,0.955 left tc rgb ink \
        font (kind eq "svg" ? ",17.5" : ",13.5")
    set grid back ls 9
    set logscale xy
    set format xy powers
    eval "set xtics 100 nomirror out scale 0.6 tc rgb ink font '" . fine(kind) . "'"
    eval "set ytics 100 nomirror out scale 0.6 tc rgb ink font '" . fine(kind) . "'"
    set xrange [1e-4:1e2]
    set yrange [1e-8:10]
    set xlabel "deviation of the activations" offset 0,0.5 tc rgb ink font fine(kind)
    set ylabel "change of the output" offset 1,0 tc rgb ink font fine(kind)
    set label 4 "BatchNorm and" at 0.12,1.6e-2 tc ls 12 font fine(kind)
    set label 2 "LayerNorm\n(eps 10^{-5})" at 0.12,7.5e-3 tc ls 13 font fine(kind)
    set label 3 "RMSNorm\n(eps 10^{-6})" at 3e-4,1e-4 tc ls 14 font fine(kind)
    plot data index "BatchNorm" using 1:2 with lines ls 2, \
         data index "LayerNorm" using 1:2 with lines ls 3 dt 2, \
         data index "RMSNorm" using 1:2 with lines ls 4
    unset logscale
}
