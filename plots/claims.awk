# Lays plots/claims.tsv out for claims.gp: a line for each part of a claim with its row, low, effect and
# high, its verdict, -1 or 1 if the effect lies beyond the axis, and its name. With -v what=claims a line
# for each claim instead: its row and its name.
#
# Effects have many units. What is drawn is how far they are beyond what the claim asks, as a share of
# the threshold (where that is 0, of the interval's larger end), squeezed by asinh; 5 becomes 1.
BEGIN { FS = "\t" }
NR == 1 { next }
$1 != claim {
    row += claim == "" ? 1 : 1.6
    claim = $1
    if (what == "claims") { gsub("_", " ", $1); printf "%g \"%s\"\n", row, $1 }
}
{
    row++
    if (what == "claims") next
    split($8, asked, " ")
    a = beyond($5, $5, $6); b = beyond($4, $5, $6); c = beyond($6, $5, $6)
    gsub("\"", "'", $2)
    verdict = ($9 == "holds") ? 1 : ($9 == "fails") ? 3 : 2
    over = (b >= 1) ? 1 : (b <= -1) ? -1 : 0
    norm = ($3 == "-") ? "" : $3 ": "
    printf "%g %g %g %g %d %d \"%s%s\"\n", row, least(a, least(b, c)), b, -least(-a, least(-b, -c)), verdict, over, norm, $2
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
