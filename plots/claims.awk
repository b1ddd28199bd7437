# Lays plots/claims.tsv out for claims.gp: a row for each claim, a column for each norm, and in such
# a cell a line for each part: column, height, low, effect and high, verdict. With -v what=rows a
# line for each claim instead: its name, its middle, and where it ends.
#
# Effects have many units. What is drawn is how far they are beyond what the claim asks, as a share of
# the threshold (where that is 0, of the interval's larger end), squeezed by asinh into -1 to 1.
BEGIN { FS = "\t" }
NR == 1 { next }
!($1 in parts) { claims[++count] = $1 }
{
    column = $3 == "BatchNorm" ? 0 : $3 == "LayerNorm" ? 1 : $3 == "RMSNorm" ? 2 : 3
    line[NR] = lines[$1, column]++
    if (lines[$1, column] > parts[$1]) parts[$1] = lines[$1, column]
    id[NR] = $1; at[NR] = column; verdict[NR] = $9
    split($8, asked, " ")
    a = beyond($5, $5, $6); b = beyond($4, $5, $6); c = beyond($6, $5, $6)
    low[NR] = least(a, least(b, c)); effect[NR] = b; high[NR] = -least(-a, least(-b, -c))
}
END {
    for (i = 1; i <= count; i++) {
        begin[claims[i]] = height
        height += parts[claims[i]] + 1
        name = claims[i]
        gsub("_", " ", name)
        if (what == "rows") printf "\"%s\" %g %g\n", name, height - (parts[claims[i]] + 1) / 2, height
    }
    if (what == "rows") exit
    for (n = 2; n <= NR; n++)
        print at[n], begin[id[n]] + 1 + line[n] + (parts[id[n]] - lines[id[n], at[n]]) / 2, low[n], effect[n], \
            high[n], verdict[n] == "holds" ? 1 : verdict[n] == "fails" ? 3 : 2
}
function least(a, b) { return a < b ? a : b }
function size(a) { return a < 0 ? -a : a }
function asinh(x) { return x < 0 ? -asinh(-x) : log(x + sqrt(x * x + 1)) }
# Of a value whose interval has these ends; asked: ">" and a threshold, "<", or a value, "+-" and so much.
function beyond(value, from, to,    distance, unit, x) {
    if (value ~ /inf/) value = value ~ /-/ ? -1e9 : 1e9
    if (value ~ /nan/) value = 0
    if (asked[2] == "+-") { distance = asked[3] - size(value - asked[1]); unit = asked[3] }
    else { distance = asked[1] == ">" ? value - asked[2] : asked[2] - value; unit = size(asked[2]) }
    if (unit == 0) unit = size(from) > size(to) ? size(from) : size(to)
    x = unit > 0 ? asinh(10 * distance / unit) / asinh(50) : 0
    return x > 1 ? 1 : x < -1 ? -1 : x
}
