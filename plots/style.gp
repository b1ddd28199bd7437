# The look of every figure. Scripts run in the project's folder and draw each figure twice:
#
#     load 'plots/style.gp'
#     do for [kind in "svg png"] {
#         eval canvas(kind, 'plots/name', 1200, 500)      # width and height in pixels
#         plot data using 1:2 with lines ls 1, data using 1:3:4 with filledcurves ls 1 @BAND
#         unset output
#     }

set encoding utf8
set datafile missing "?"

# Okabe and Ito's palette, which is told apart with any colour vision: at most five curves a panel.
palette = "#000000 #e69f00 #0072b2 #009e73 #cc79a7"
ink = "#333333"
faint = "#777777"
do for [i = 1:5] { set style line i lc rgb word(palette, i) lw 2.2 pt 7 ps 0.7 }
set style line 8 lc rgb faint lw 1.4 dt 2     # guides
set style line 9 lc rgb "#e3e3e3" lw 1        # grid
BAND = "fs transparent solid 0.16 noborder"

set border 3 lw 1 lc rgb ink
set tics nomirror out scale 0.6 tc rgb ink
set grid back ls 9
set key noautotitle textcolor rgb ink
set title tc rgb ink
set xlabel tc rgb ink
set ylabel tc rgb ink

# Decades as powers of ten, at most about six of them labelled.
powers = "10^{%T}"

# Verdana and DejaVu Sans are equally wide, and where an SVG is looked at there is one of them.
# The name of a file goes between single quotes, where a quote is written twice.
quoted(text) = (strstrt(text, "'") == 0) ? text : \
    text[1:strstrt(text, "'")] . "'" . quoted(text[strstrt(text, "'") + 1:*])
canvas(kind, out, width, height) = sprintf((kind eq "svg") \
    ? "set terminal svg size %d,%d font 'Verdana,15' background '#ffffff'; set output '%s.svg'" \
    : "set terminal pngcairo size %d,%d font 'DejaVu Sans,11.5' background '#ffffff'; set output '%s.png'", \
    width, height, quoted(out))
