# Prints a file with the one place that reads OLD reading NEW; a blank of OLD is any white space, so that
# a line that was broken elsewhere is still found. Fails where there is no such place, or more.

function pattern_of(text,    i, c, result) {
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == " ") {
            if (substr(text, i - 1, 1) != " ") result = result "[ \n]+"
        } else {
            result = result (index(".[]*+?(){}|^$/\\", c) ? "\\" c : c)
        }
    }
    return result
}

{ text = text $0 "\n" }

END {
    pattern = pattern_of(ENVIRON["OLD"])
    if (!match(text, pattern)) {
        print "there is no such text" > "/dev/stderr"
        exit 1
    }
    before = substr(text, 1, RSTART - 1)
    rest = substr(text, RSTART + RLENGTH)
    if (match(rest, pattern)) {
        print "there is more than one such text" > "/dev/stderr"
        exit 1
    }
    printf "%s%s%s", before, ENVIRON["NEW"], rest
}
