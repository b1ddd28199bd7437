# The style of every figure. Scripts run in the project's folder, or with GNUPLOT_LIB set to it, and
# draw each figure twice:
#
#     load 'plots/style.gp'
#     out = given('plots/name'); data = out.'.dat'        # or the script's argument
#     do for [kind in "svg png"] {
#         eval canvas(kind, out, 1200, 500, 0.2, 0.9)     # pixels; bottom and top of all panels
#         eval panel(0.1, 0.9, "Training loss")           # left and right end; drops the labels of the one before
#         plot data using 1:3:4 with filledcurves ls 1 @BAND, data using 1:2 with linespoints ls 1 @MARKED
#     }
#
# The PNG of plots/name goes to build/.

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

# A panel's title, at its left edge: eval headline("Training loss"), without ends and with all labels.
# Small print: font fine(kind).
headline(text) = sprintf("set label 99 \"%s\" at graph 0,1.07 left tc rgb ink font ',%g'", \
                         text, GPVAL_TERM eq "svg" ? 17.5 : 13.5)
panel(from, to, text) = sprintf("if (panels > 0) { unset label }; panels = panels + 1; \
                        set lmargin at screen %.9g; set rmargin at screen %.9g; ", from, to).headline(text)
fine(kind) = kind eq "svg" ? ",11.5" : ",9"

# Labels at the ends of curves: eval SPREAD separates the heights ends[1], ends[2]... (an array, in
# graph coordinates) until they are at least gap apart.
SPREAD = "do for [pass = 1:200] { do for [a = 1:|ends|] { do for [b = 1:|ends|] { \
    if (above(a, b) && ends[a] - ends[b] < gap) { \
        ends[a] = ends[a] + gap / 20; ends[b] = ends[b] - gap / 20 } } } }"
above(a, b) = ends[a] > ends[b] || (ends[a] == ends[b] && a < b)

# A file's name in single quotes, for gnuplot and for a shell: a quote in it ends them.
swap(text, by) = strstrt(text, "'") == 0 ? text : \
    text[1:strstrt(text, "'") - 1] . by . swap(text[strstrt(text, "'") + 1:*], by)
quoted(text) = swap(text, "'.\"'\".'")

# The first line of a data file, without "# what: ".
what_of(data) = system(sprintf("sed -n '1s/^# what: //p' '%s'", swap(data, "'\\''")))

# Begins a figure of one or more panels (sheet: without margins), and ends the one before. Verdana
# and DejaVu Sans have the same widths, and viewers of SVG have one of them.
is_given(none) = exists("ARG1") && strlen(ARG1) > 0
given(name) = is_given(0) ? ARG1 : name
png(out) = is_given(0) ? out : (system("mkdir -p build"), 'build/'.out[7:*]) # of plots/name
sheet(kind, out, width, height) = "unset multiplot; unset output; unset label; panels = 0; ".sprintf( \
    kind eq "svg" ? "set terminal svg size %d,%d font 'Verdana,15' background '#ffffff'" : \
                    "set terminal pngcairo size %d,%d font 'DejaVu Sans,11.5' background '#ffffff'", \
    width, height).sprintf("; set output '%s.%s'; set multiplot", \
    quoted(kind eq "svg" ? out : png(out)), kind)
canvas(kind, out, width, height, bottom, top) = sheet(kind, out, width, height).sprintf( \
    "; set bmargin at screen %.9g; set tmargin at screen %.9g", bottom, top)
