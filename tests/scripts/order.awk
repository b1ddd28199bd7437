# In C++ settings stand in the order of their struct: do the calls that a text shows keep it?
#
#     awk -f tests/scripts/order.awk include/normgrad/*.h README.md...
#
# Reads structs and macros from the headers, and calls from all files.

FNR == 1 { all = all " " }
{ text = $0 }
text ~ /^typedef (struct|union) \{/ { inside = 1; count = 0; next }
inside && text ~ /^}/ {
    inside = 0
    gsub(/[};]/, "", text)
    gsub(/ /, "", text)
    for (i = 1; i <= count; i++) place[text, member[i]] = i
    next
}
inside {
    sub(/\/\*.*/, "", text)
    parts = split(text, part, /[,;]/)
    for (i = 1; i <= parts; i++)
        if (match(part[i], /[a-z_0-9]+(\[[^]]*\])? *$/)) {
            name = substr(part[i], RSTART, RLENGTH)
            sub(/[[ ].*/, "", name)
            member[++count] = name
        }
}
/^#define ng_[a-z0-9_]*\(/ { match($2, /^[a-z0-9_]*/); macro = substr($2, 1, RLENGTH) }
{ gsub(/NG_CHECKED\(/, "NG_NAMED_TWO(ng_check_options, ", text); gsub(/NG_INPUTS\(/, "NG_NAMED_TWO(ng_inputs, ", text) }
macro != "" && match(text, /NG_NAMED[A-Z_]*\([a-z0-9_]*/) {
    type = substr(text, RSTART, RLENGTH)
    sub(/.*\(/, "", type)
    of[macro] = type
    macro = ""
}
{ sub(/^ \* ?/, "", text); all = all " " text }

END {
    for (rest = all; match(rest, /ng_[a-z0-9_]*\(/);) {
        name = substr(rest, RSTART, RLENGTH - 1)
        rest = substr(rest, RSTART + RLENGTH)
        if (!(name in of)) continue
        calls++
        depth = 1; last = 0
        for (i = 1; i < 600 && depth > 0; i++) {
            c = substr(rest, i, 1)
            if (c ~ /[({]/) depth++
            if (c ~ /[)}]/) depth--
            if (depth != 1 || c != ".") continue
            if (!match(substr(rest, i), /^\.[a-z_0-9]+ =/)) continue
            setting = substr(rest, i + 1, RLENGTH - 3)
            at = place[of[name], setting]
            if (at == "" || at < last) {
                print "order: " name "(" substr(rest, 1, 90) "...: ." setting \
                    (at == "" ? " is unknown" : " comes before another")
                failed = 1
            }
            last = at
        }
    }
    if (calls < 50) { print "order: only " calls + 0 " calls were found"; failed = 1 }
    exit failed
}
