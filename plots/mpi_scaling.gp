# Efficiency of data-parallel training by number of ranks on four networks, extrapolated from
# measurements of `make bench-mpi` on two ranks.
#
#     gnuplot plots/mpi_scaling.gp                 plots/mpi_scaling.dat -> .svg and .png
#     gnuplot -c plots/mpi_scaling.gp PREFIX       the same for another PREFIX.dat

load 'plots/style.gp'
out  = (exists("ARG1") && strlen(ARG1)) ? ARG1 : 'plots/mpi_scaling'
data = out . '.dat'

array nets[4] = ["100 Gbit/s, 2 us", "100 Gbit/s, 20 us", "10 Gbit/s, 2 us", "10 Gbit/s, 20 us"]
array ways[2] = ["tree", "ring"]
array kinds[2] = ["more", "same"]
array named[2] = ["512 samples a rank", "512 samples in all"]
style(w) = w == 1 ? 3 : 2

do for [kind in "svg png"] {
    eval canvas(kind, out, 1200, 480)
    set multiplot
    set label 1 "Solid: 512 samples a rank; dashed: 512 samples in all. Steps on one and two ranks were measured; the rest is extrapolated." \
        at screen 0.075,0.055 tc rgb faint font fine(kind)
    set label 2 what_of(data) noenhanced at screen 0.075,0.018 tc rgb faint font fine(kind)
    set logscale x 2
    set xrange [1:1024]
    set yrange [0:105]
    set ytics 20
    set xtics (1, 4, 16, 64, 256, "1,024" 1024)
    set xlabel "ranks" offset 0,0.4
    set bmargin at screen 0.22; set tmargin at screen 0.87
    do for [n = 1:4] {
        set lmargin at screen 0.075 + 0.235 * (n - 1); set rmargin at screen 0.265 + 0.235 * (n - 1)
        eval headline(nets[n])
        set ylabel n == 1 ? "efficiency (%)" : ""
        if (n == 1) {
            set label 3 "tree" at graph 0.04,0.16 tc ls 13
            set label 4 "ring" at graph 0.04,0.08 tc ls 12
            set label 5 "80 %" at graph 0.5,0.72 center tc rgb faint
        }
        plot 80 with lines ls 8, \
             for [k = 1:2] for [w = 1:2] data index nets[n].": ".ways[w].", ".kinds[k] \
                 using "ranks":"efficiency" with linespoints ls style(w) dt k ps 0.6
        unset label 1; unset label 2; unset label 3; unset label 4; unset label 5
    }
    unset multiplot
    unset output
}
