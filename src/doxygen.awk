# What Doxygen reads in place of a public header (src/Doxyfile). A comment and the declarations under
# it, up to a blank line, become a group, which is a man page named after its first function. A
# comment behind a declaration or a member stays with it; a member without one is documented if the
# comment above names it. A macro over NG_NAMED or NG_LISTED becomes a function with typed arguments and settings.

function plain(text,    part, n, k, out, fixed, line) { # a comment as Doxygen's text
    gsub(/^ *\/\*|\*\/ *$/, "", text)
    n = split(text, part, "\n")
    for (k = 1; k <= n; k++) {
        line = part[k]
        sub(/^ *\* ?/, "", line)
        if (sub(/^ *---- +/, "", line)) sub(/ +---*/, ".\n", line)
        if (line != "" && fixed != (k > 1 && line ~ /^  |^[A-Za-z_0-9, ]+   +[^ ]/))
            out = out ((fixed = !fixed) ? "@verbatim\n" : "\n@endverbatim\n")
        if (!fixed) gsub(/[\\@<>&#%$"|]/, "\\\\&", line)
        out = out line "\n"
    }
    return out (fixed ? "\n@endverbatim\n" : "")
}
function sentence(text) {
    sub(/@verbatim.*/, "", text)
    gsub(/[ \n]+/, " ", text)
    sub(/\. .*/, ".", text)
    return text ~ /[^ ]/ ? text : "Described above."
}
function rest(text) { # a comment to its end
    while (text !~ /\*\// && (getline line) > 0) text = text "\n" line
    return text
}
function name_of(s) {
    if (s ~ /^# *define/) {
        sub(/^# *define +/, "", s)
        sub(/[^A-Za-z0-9_].*/, "", s)
        return s
    }
    if (s ~ /^[^(;{]*\(\*/) sub(/^[^(]*\(\*/, "", s)
    else if (s ~ /}/ && s !~ /^struct/) sub(/.*} */, "", s)
    sub(/ *[();,={\[].*/, "", s)
    sub(/.*[ *]/, "", s)
    return s
}
function add(text, doc) { count++; texts[count] = text; docs[count] = doc }
function end_group(    k, name) {
    for (k = count; k > 0; k--) if (name == "" || texts[k] !~ /^(typedef|struct)/) name = name_of(texts[k])
    if (count) printf "/** @defgroup %s %s\n%s@{ */\n", name, name, about != "" ? about : section
    for (k = 1; k <= count; k++) {
        if (docs[k] == "" && about != "") docs[k] = sentence(about)
        if (name_of(texts[k]) in settings_of)
            docs[k] = docs[k] "\n@par Settings\n@verbatim\n" settings[settings_of[name_of(texts[k])]] "\n@endverbatim\n"
        print (docs[k] != "" ? "/** " docs[k] " */\n" : "") texts[k]
    }
    if (count) print "/** @} */"
    count = 0
    about = raw = ""
}
function members_told(type, text,    part, own, n, k, m, j, out, base, told, within, behind, above, name) { # a struct or enum, each member with its comment
    n = split(text, part, "\n")
    for (k = 1; k <= n; k++) {
        told = ""
        name = name_of(part[k])
        if (within || part[k] ~ /^ *\/\*/) {
            if (!within) sub(/\/\*/, "/**", part[k])
            within = part[k] !~ /\*\//
            if (!within && !behind && part[k + 1] ~ /^    [a-zA-Z]/) above = k + 1
            if (!within) behind = 0
        } else if (match(part[k], / *\/\*/)) {
            told = " /**<" substr(part[k], RSTART + RLENGTH)
            behind = within = told !~ /\*\//
            part[k] = substr(part[k], 1, RSTART - 1)
        } else if (part[k] ~ /^    [a-zA-Z]/ && k != above) {
            if ((type ", " name) in argument) out = out "/** The argument. */\n"
            else if (name != "" && index(raw, name)) out = out "/** Described above. */\n"
        }
        if (part[k] !~ /^    [a-z][^(]*,.*;/) { out = out part[k] told "\n"; continue }
        m = split(part[k], own, / *[,;] */) # "int64_t in, out;" is two members with one comment
        base = own[1]
        sub(/[*a-z_A-Z0-9]+$/, "", base)
        for (j = 1; j < m; j++) out = out (j > 1 ? (told == "" ? "/** Described above. */ " : "") base : "") own[j] ";" told "\n"
    }
    return out
}
function learn(type, text,    part, own, n, k, m, j, base) { # the members of a struct, with their types
    gsub(/\/\*[^*]*(\*[^*\/][^*]*)*\*\//, "", text)
    sub(/^[^{]*{/, "", text)
    n = split(text, part, ";")
    for (k = 1; k < n - 1; k++) {
        gsub(/^[ \n]+/, "", part[k])
        m = split(part[k], own, / *, */)
        base = own[1]
        sub(/[a-z_A-Z0-9]+$/, "", base)
        settings[type] = settings[type] "    " part[k] ";\n"
        for (j = 1; j <= m; j++) members[type, name_of(own[j])] = base name_of(own[j])
    }
}
function typed(name, call, text,    own, arg, n, k, list) { # the macro `name` as a function, from name_with's text
    sub(/^NG_API +/, "", text)
    list = text
    sub(/ng_[a-z0-9_]+_with\(.*/, "", text)
    sub(/^[^(]*\(/, "", list)
    n = split(list, arg, / *,[ \n]*/)
    list = ""
    for (k = 1; k < n; k++) list = list arg[k] ", "
    sub(/.*NG_(NAMED|LISTED)(_TWO)?\(/, "", call)
    gsub(/[\\\n )]/, "", call)
    split(call, own, ",")
    for (k = 2; own[k] != "" && own[k] != "__VA_ARGS__"; k += 2) list = list members[own[1], own[k]] ", "
    settings_of[name] = own[1]
    return text name "(" list own[1] " settings);"
}

BEGIN { # the members that take an argument of a macro
    while ((getline line < ARGV[1]) > 0)
        if (match(line, /NG_(NAMED|LISTED)\([a-z0-9_]+, *[a-z0-9_]+/)) {
            call = substr(line, RSTART, RLENGTH)
            sub(/.*\(/, "", call)
            argument[call] = 1
        }
    close(ARGV[1])
}
{ line = $0 }
line ~ /^#ifdef __cplusplus/ { skipped = 1 }
line ~ /^#(else|endif)/ { skipped = 0 }
skipped || line ~ /^# *(if|else|endif|pragma)|^NG_(BEGIN|END)_C|define NORMGRAD_/ { next }
line ~ /^#include/ { print; next }
line ~ /^ *$/ { end_group(); next }
line ~ /^\/\*/ {
    end_group()
    raw = rest(line)
    if (!opened++) { print "/** @file\n" plain(raw) "*/"; next }
    if (raw ~ /^\/\* ----/) section = plain(raw)
    if (raw !~ /^\/\* ----.*---- \*\//) about = plain(raw)
    next
}
line ~ /^ +\/\*/ { doc = plain(rest(line)); for (k = latest; k <= count; k++) docs[k] = doc; next }
{
    text = line
    while ((text ~ /^#/ ? line ~ /\\$/ : text ~ /{/ ? text !~ /\n}/ : text !~ /;/) && (getline line) > 0)
        text = text "\n" line
    name = name_of(text)
    doc = ""
    latest = count + 1
    if (text !~ /^typedef [^(;]*{|^struct [^(;]*{/) {
        if (match(text, /\/\*/)) { doc = plain(rest(substr(text, RSTART))); text = substr(text, 1, RSTART - 1) }
        if (text !~ /^#/) sub(/ *\n?{.*/, ";", text)
    } else {
        learn(name, text)
        text = members_told(name, text)
    }
    if (name ~ /^NG_(API|PRINTF|MUST_CHECK|BEGIN_C|END_C|NTH|ONE|FIRST_NAMED|EACH_[A-Z0-9]+)$/) next
    if (text ~ /^#.*NG_(NAMED|LISTED)/ && name ~ /^ng_/ && match(text, /ng_[a-z0-9_]+_with\(/)) {
        calls[name] = text
        callers[substr(text, RSTART, RLENGTH - 1)] = callers[substr(text, RSTART, RLENGTH - 1)] " " name
        next
    }
    n_callers = split(callers[name], caller, " ")
    for (c = 1; c <= n_callers; c++) add(typed(caller[c], calls[caller[c]], text), doc)
    add(text, doc)
}
END { end_group() }
