# The style of every figure, and what its panels share. A script runs in the project's folder, or with
# GNUPLOT_LIB set to it:
#
#     load 'plots/style.gp'
#     array names[2] = ["no norm", "LayerNorm"]; array styles[2] = [1, 3]
#     eval figure('name', 1200, 470, "Line: median")           # plots/name.dat -> .svg; or the script's argument
#     eval panel(0.1, 0.5, "Training loss", "epoch", "loss")   # left and right end; all else is as at the begin
#     eval key(0.6, 0.95)                                      # the names, from this place downwards
#     eval series("epoch", "loss"); plot @CURVES               # a band and a line for each name

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
set style line 8 lc rgb faint lw 1.4 dt 2     # guides
set style line 9 lc rgb "#e3e3e3" lw 1        # grid
BAND = "fs transparent solid 0.13 noborder"
FINE = ",11.5"                                # small print: font FINE
set key noautotitle textcolor rgb ink
set title tc rgb ink
MEDIAN = "Line: median; band: middle half of the seeds."
powers = "10^{%T}"                            # the label of a decade: set format y powers
# Logarithmic axes, for eval: logs('xy').
logs(axes) = "set logscale ".axes."; set format ".axes." powers"

# Begins a figure: its note and the first line of its data, "# what: ...", stand below the panels.
# Verdana and DejaVu Sans have the same widths, and viewers of SVG have one of them. A file's name
# stands in single quotes, for gnuplot and for a shell: a quote in it ends them.
given(name) = exists("ARG1") && strlen(ARG1) > 0 ? ARG1 : name
swap(text, by) = strstrt(text, "'") == 0 ? text : \
    text[1:strstrt(text, "'") - 1] . by . swap(text[strstrt(text, "'") + 1:*], by)
what_of(data) = system(sprintf("sed -n '1s/^# what: //p' '%s'", swap(data, "'\\''")))
sheet(name, width, height) = "out = given('plots/".name."'); data = out.'.dat'; panels = 0; ".sprintf( \
    "set terminal svg size %d,%d font 'Verdana,15' background '#ffffff'; set output out.'.svg'; set multiplot", width, height)
figure(name, width, height, note) = sheet(name, width, height).sprintf( \
    "; set bmargin at screen %.9g; set tmargin at screen %.9g; ", 116.0 / height, 1 - 62.0 / height).sprintf( \
    "set label 98 \"%s\".what_of(data) at screen 0.055,screen %.9g tc rgb faint font FINE noenhanced", \
    note eq "" ? "" : note."\n", (note eq "" ? 18.0 : 32.0) / height)

# Begins a panel, with its title at its left edge and as all axes are at first.
headline(text) = sprintf("set label 99 \"%s\" at graph 0,1.07 left tc rgb ink font ',17.5'; ", text)
panel(from, to, text, x, y) = "if (panels > 0) { unset label }; panels = panels + 1; unset arrow; ". \
    "unset logscale; set autoscale xy; set border 3 lw 1 lc rgb ink; set grid back ls 9; unset colorbox; ". \
    "set xtics auto; set ytics auto; set tics nomirror out scale 0.6 tc rgb ink; set format '%g'; ". \
    "block(i) = names[i]; shown(i) = names[i]; ".sprintf( \
    "set lmargin at screen %.9g; set rmargin at screen %.9g; set xlabel \"%s\" offset 0,0.4 tc rgb ink; ". \
    "set ylabel \"%s\" tc rgb ink; ", from, to, x, y).headline(text)

# A map of 16 x 16 numbers, from the upper left: the third column, in colours of its logarithm.
square = "unset grid; set border 15; set tics 5; set xrange [-0.5:15.5]; set yrange [15.5:-0.5]"
scale_at(x, y, height) = sprintf("set colorbox user origin screen %g,%g size screen 0.012,%g; set cbtics 1 font FINE", x, y, height)
MAP = 'using 2:1:(column(3) > 0 ? log10(column(3)) : NaN) with image pixels'

# The curves: column by_y of block(i) by column by_x, times scale.
array names[4] = ["no norm", "BatchNorm", "LayerNorm", "RMSNorm"]  # unless a script says otherwise
array styles[5] = [1, 2, 3, 4, 5]
array dashes[5] = [1, 1, 1, 1, 1]
scale = 1
series(x, y) = "by_x = '".x."'; by_y = '".y."'"
BANDS = 'for [i = 1:|names|] data index block(i) using (column(by_x)):(scale * column(by_y."_low")):' \
    .'(scale * column(by_y."_high")) with filledcurves ls styles[i] @BAND'
MARKED = "pn 6"                               # so many marks on a curve of any length
LINES = 'for [i = 1:|names|] data index block(i) using (column(by_x)):(scale * column(by_y)) ' \
    .'with linespoints ls styles[i] dt dashes[i] @MARKED'
CURVES = BANDS.", ".LINES

# Their names, shown(i): as a list, or where the curves end, for a y axis from low to high. Heights
# ends[i], in graph coordinates, are separated until they are at least gap apart.
key(x, y) = sprintf("do for [i = 1:|names|] { set label 10 + i shown(i) at graph %g, graph %g - 33.0 * (i - 1) / 470 * 1.03 ". \
    "tc ls 10 + styles[i] point ls styles[i] offset 1,0 }", x, y)
gap = 0.07
end_font = ",15"
above(a, b) = ends[a] > ends[b] || (ends[a] == ends[b] && a < b)
SPREAD = "do for [pass = 1:200] { do for [a = 1:|ends|] { do for [b = 1:|ends|] { \
    if (above(a, b) && ends[a] - ends[b] < gap) { \
        ends[a] = ends[a] + gap / 20; ends[b] = ends[b] - gap / 20 } } } }; "
height(value, low, high, log_y) = log_y ? log(value / low) / log(1.0 * high / low) : (value - low) / (high - low)
name_ends(low, high, log_y) = "array ends[|names|]; do for [i = 1:|names|] { ".sprintf( \
    "stats data index block(i) using (end = scale * column(by_y), 1) nooutput; ends[i] = height(end, %.9g, %.9g, %d) }; ". \
    "set yrange [%.9g:%.9g]; ", low, high, log_y, low, high).(log_y ? "set logscale y; " : "").SPREAD. \
    "do for [i = 1:|names|] { set label 10 + i shown(i) at graph 1.03, graph ends[i] tc ls 10 + styles[i] font end_font }"
