# The style of every figure. Scripts run in the project's folder, or with GNUPLOT_LIB set to it, and
# draw each figure twice:
#
#     load 'plots/style.gp'
#     do for [kind in "svg png"] {
#         eval canvas(kind, 'plots/name', 1200, 500)      # width and height in pixels
#         plot data using 1:3:4 with filledcurves ls 1 @BAND, data using 1:2 with linespoints ls 1 @MARKED
#         unset output
#     }

reset
set encoding utf8
set datafile missing "?"

# The colours of Okabe & Ito, safe for colour-blind readers, and marks for print without colour. A
# panel has at most five curves: 1 is no norm, 2 BatchNorm, 3 LayerNorm, 4 RMSNorm. Text about curve
# i has the colour 10 + i, which is darker, with a contrast of at least 4.5 to the page.
palette = "#000000 #e69f00 #0072b2 #009e73 #cc79a7"
darker  = "#000000 #8f6000 #0068a3 #00755a #a8487d"
ink = "#333333"
faint = "#6b6b6b"
array marks[5] = [7, 5, 9, 11, 13]
do for [i = 1:5] {
    set style line i lc rgb word(palette, i) lw 2.2 pt marks[i] ps 0.9
    set style line 10 + i lc rgb word(darker, i)
}
MARKED = "pn 6"                               # so many marks on a curve of any length
set style line 8 lc rgb faint lw 1.4 dt 2     # guides
set style line 9 lc rgb "#e3e3e3" lw 1        # grid
BAND = "fs transparent solid 0.13 noborder"

set border 3 lw 1 lc rgb ink
set tics nomirror out scale 0.6 tc rgb ink
set grid back ls 9
set key noautotitle textcolor rgb ink
set title tc rgb ink
set xlabel tc rgb ink
set ylabel tc rgb ink

# The label of a decade on a logarithmic axis: set format y powers.
powers = "10^{%T}"

# A panel's title, at its left edge: eval headline("Training loss"). Small print: font fine(kind).
headline(text) = sprintf("set label 99 \"%s\" at graph 0,1.07 left tc rgb ink font ',%g'", \
                         text, GPVAL_TERM eq "svg" ? 17.5 : 13.5)
fine(kind) = kind eq "svg" ? ",11.5" : ",9"

# Labels at the ends of curves: eval SPREAD separates the heights ends[1], ends[2]... (an array, in
# graph coordinates) until they are at least gap apart.
SPREAD = "do for [pass = 1:200] { do for [a = 1:|ends|] { do for [b = 1:|ends|] { \
    if (above(a, b) && ends[a] - ends[b] < gap) { \
        ends[a] = ends[a] + gap / 20; ends[b] = ends[b] - gap / 20 } } } }"
above(a, b) = ends[a] > ends[b] || (ends[a] == ends[b] && a < b)

# A file's name in single quotes; quotes in it are doubled.
quoted(text) = strstrt(text, "'") == 0 ? text : \
    text[1:strstrt(text, "'")] . "'" . quoted(text[strstrt(text, "'") + 1:*])

# The first line of a data file, without "# what: ".
what_of(data) = system(sprintf("sed -n '1s/^# what: //p' '%s'", data))

# Verdana and DejaVu Sans have the same widths, and viewers of SVG have one of them.
canvas(kind, out, width, height) = \
    kind eq "svg" ? sprintf("set terminal svg size %d,%d font 'Verdana,15' background '#ffffff'; \
        set output '%s.svg'", width, height, quoted(out)) : \
    sprintf("set terminal pngcairo size %d,%d font 'DejaVu Sans,11.5' \
        background '#ffffff'; set output '%s.png'", width, height, quoted(out))
