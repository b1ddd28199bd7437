# Errors of norms in float, by library and input, from `make accuracy`.
#
#     gnuplot plots/accuracy.gp              plots/accuracy.dat -> .svg
#     gnuplot -c plots/accuracy.gp FOLDER    the same in another folder

load 'plots/style.gp'
ARG1 = given('plots').'/accuracy'
data = ARG1.'.dat'
stats data using 0 nooutput
rows = STATS_records
inputs = 13
head = system("sed -n '2s/.*column for each input: //p' '".data."'")
broken(text) = strstrt(text, " ") ? text[1:strstrt(text, " ") - 1]."\n".text[strstrt(text, " ") + 1:*] : text
names = system("awk '!/^#/ { split($0, part, \"\\\"\"); split($0, word, \" \"); r = word[1]; sub(\"layer_norm\", \"LayerNorm\", r); sub(\"rms_norm\", \"RMSNorm\", r); sub(\"batch_norm\", \"BatchNorm\", r); printf \"\\\"%s %s, %s\\\" \", r, word[2], part[2] }' '".data."'")
shown(x) = x >= 1000 ? sprintf("%.0e", x) : x >= 10 ? sprintf("%.0f", x) : x < 0.05 ? "0" : sprintf("%.1f", x)
brief(text) = strstrt(text, "+") ? text[1:strstrt(text, "+") - 1].text[strstrt(text, "+") + 2:*] : text
# A number in a column; "inf" and "-", not measured, are none.
text(k) = stringcolumn(k)
amount(k) = text(k) eq "-" ? NaN : text(k) eq "inf" ? 7 : real(text(k)) < 1 ? 0 : log10(real(text(k)))
label(k) = text(k) eq "-" || text(k) eq "inf" ? text(k) : brief(shown(real(text(k))))
height = 172.0 + 27 * rows
eval sheet('accuracy', 1150, height)
set lmargin at screen 0.235; set rmargin at screen 0.985
set bmargin at screen 92.0 / height; set tmargin at screen 1 - 52.0 / height
set label 99 "Largest error in units in the last place of a row's largest element, float32, rows of 17 to 65,536" \
    at graph -0.3, screen 1 - 24.0 / height left tc rgb ink font ",17.5"
unset colorbox; unset grid; set border 0
set cbrange [0:7]
set palette defined (0 "#ffffff", 0.4 "#e8f1f8", 1.3 "#b9d6ea", 3 "#fbe3b5", 5 "#f0a94f", 7 "#d26a1a")
set xrange [-0.5 : inputs - 0.5]; set yrange [rows - 0.5 : -0.5]
set xtics scale 0 tc rgb ink; set ytics scale 0 tc rgb ink
set for [k = 1:inputs] xtics add (broken(word(head, k)) k - 1)
set for [k = 1:rows] ytics add (word(names, k) k - 1)
set xlabel "input: rows of this mean with deviation 1, or of this scale with mean 0; least and most: the ends of float's range" offset 0,-1 tc rgb ink
plot for [k = 1:inputs] data using (k - 1):0:(k - 1.5):(k - 0.5):($0 - 0.5):($0 + 0.5):(amount(3 + k)) \
         with boxxyerror fs solid border lc rgb "#ffffff" fc palette, \
     for [k = 1:inputs] data using (k - 1):0:(label(3 + k)) with labels font FINE tc rgb ink
