# What Doxygen reads in place of a public header (src/Doxyfile). A function over NG_NAMED is
# shown as it is called, with its settings in a table under it. For man pages (-v man=1) a comment and
# the declarations under it, up to a blank line, become a group: a page named after its first function.

function escaped(line) { gsub(/[\\@<>&#%$"|*~\[]/, "\\\\&", line); return line }
function trimmed(text) { gsub(/^[ \n]+|[ \n]+$/, "", text); return text }
function cell(text) { # as HTML
    text = trimmed(text)
    gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text)
    return linked(text)
}
function linked(text,    word, out) { # each function of the library with a link
    while (!man && match(text, /ng_[a-z0-9_]*[a-z0-9]/)) {
        word = substr(text, RSTART, RLENGTH)
        out = out substr(text, 1, RSTART - 1) (word in known && word != self ? "@ref " word " \"" word "\"" : "%" word)
        text = substr(text, RSTART + RLENGTH)
    }
    return out text
}
function is_row(line) { # "term    what it is"
    gsub(/^ +| +$/, "", line)
    if (!match(line, /   +/)) return 0
    return substr(line, 1, RSTART - 1) !~ /  |;$/ && substr(line, RSTART + RLENGTH) !~ /   |^ng_.*\)$/
}
function block(lines, n,    k, term, text, rows, out, at, first, names, n_names) { # lines that are set in: a table, code, or as they are
    first = match(lines[1], /[^ ]/)
    rows = !man
    for (k = 1; k <= n; k++) if (!is_row(lines[k]) && match(lines[k], /[^ ]/) <= first + 3) rows = 0
    if (!rows) {
        for (k = 1; k <= n; k++) text = text "\n" substr(lines[k], first > 5 ? 5 : 1)
        return text !~ /ng_[a-z0-9_]+\(/ || man ? "\n@verbatim" text "\n@endverbatim\n" : "\n@code{.c}" text "\n@endcode\n"
    }
    out = "\n<table class=\"rows\">"
    for (k = 1; k <= n; k++) {
        at = match(lines[k], /[^ ]/)
        if (!is_row(lines[k])) { out = out " " cell(lines[k]); continue }
        text = substr(lines[k], at)
        match(text, /   +/)
        term = substr(text, 1, RSTART - 1)
        text = substr(text, RSTART + RLENGTH)
        n_names = split(term, names, /[^a-z0-9_]+/)
        for (at = 1; at <= n_names; at++) if (names[at] ~ /^ng_/) summary[names[at]] = text
        out = out (k > 1 ? "</td></tr>" : "") "\n<tr><td><code>" cell(term) "</code></td><td>" cell(text)
    }
    return out "</td></tr>\n</table>\n"
}
function plain(text,    part, n, k, out, own, m, line, listed) { # a comment as Doxygen's text
    gsub(/^ *\/\*|\*\/ *$/, "", text)
    n = split(text, part, "\n")
    for (k = 1; k <= n + 1; k++) {
        line = k > n ? "" : part[k]
        sub(/^ *\* ?/, "", line)
        if (k == 1) sub(/^ /, "", line)
        if (line ~ /^ *---- /) continue
        if (line ~ /^ *- /) { sub(/^ */, "", line); listed = 1 }
        else if (listed && line ~ /^    /) sub(/^ */, "", line)
        else listed = 0
        if (k <= n && line ~ (k > 1 ? "^  +[^ ]|^[A-Za-z_0-9, ]+   +[^ ]" : "^  +[^ ]")) { own[++m] = line; continue }
        if (m > 0 && (line != "" || k > n)) { out = out block(own, m); m = 0 }
        if (m > 0 && line == "") { out = out block(own, m); m = 0 }
        if (line == "" || line ~ /^- /) out = out "\n"
        out = out linked(escaped(line)) (line ~ /[^ ]$/ ? " " : "\n")
    }
    return out
}
function sentence(text) {
    sub(/@(verbatim|code).*|<table.*/, "", text)
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
    sub(/ *[()[;,={].*/, "", s)
    sub(/.*[ *]/, "", s)
    return s
}
function add(text, doc) { count++; texts[count] = text; docs[count] = doc }
function end_group(    k, name, first, doc, type) {
    for (k = count; k > 0; k--) if (first == "" || texts[k] !~ /^(typedef|struct)/) first = name_of(texts[k])
    if (count && man) printf "/** @defgroup %s %s\n%s@{ */\n", first, first, about != "" ? about : section
    for (k = 1; k <= count; k++) {
        self = name = name_of(texts[k])
        doc = docs[k]
        if (name in settings_of) users[settings_of[name]] = users[settings_of[name]] (users[settings_of[name]] == "" ? "" : ", ") name
        if (doc == "") {
            if (man) doc = about == "" ? "" : sentence(about)
            else if (name == first) doc = about
            else if (name in summary) doc = cell(summary[name]) ".\n\nSee @ref " first " \"" first "\"."
            else if (name in users) doc = "The settings of " linked_list(users[name]) "."
            else if (about != "") doc = sentence(about) (first in known ? "\n\nSee @ref " first " \"" first "\"." : "")
        }
        if (name in settings_of) {
            type = settings_of[name]
            if (!(type in shown_here)) doc = call_with(texts[k], type) doc "\n\n" table_of(type)
            else if (shown_here[type] != first) doc = doc "\n\nSettings are as in @ref " shown_here[type] " \"" shown_here[type] "\"."
            if (!(type in shown_here)) shown_here[type] = name
            if (!man) doc = doc "\n\nStruct: @ref " type " \"" type "\"."
        }
        print (doc != "" ? "/** " doc " */\n" : "") texts[k]
        if (!man && texts[k] ~ /\(/ && texts[k] !~ /^(typedef|struct|#)/ && !(name in summary) && docs[k] != "")
            list = list "\n<tr><td><code>" call_of(texts[k]) "</code></td><td>" trimmed(docs[k]) "</td></tr>"
    }
    if (count && man) print "/** @} */"
    count = 0
    about = raw = ""
}
function linked_list(names) { gsub(/ng_[a-z0-9_]+/, "@ref & \"&\"", names); return names }
function call_of(text,    name, n, k, arg, out) { # ng_add(tape, a, b)
    name = name_of(text)
    sub(/^[^(]*\(/, "", text)
    sub(/\).*/, "", text)
    n = split(text, arg, / *, */)
    for (k = 1; k <= n; k++) { sub(/.*[ *]/, "", arg[k]); out = out (k > 1 ? ", " : "") (arg[k] == "void" ? "" : arg[k]) }
    return "@ref " name " \"" name "\"(" out ")"
}
function default_of(text) { # "1e-5" of "default 1e-5"
    if (!match(text, /[Dd]efault (-?[0-9][0-9.e\/-]*|NG_[A-Z0-9_]+)/)) return ""
    text = substr(text, RSTART + 8, RLENGTH - 8)
    sub(/\.$/, "", text)
    return text
}
function call_with(text, type,    k, call, word) { # the function as it is called, with its first default
    if (man) return ""
    for (k = 1; k <= size[type]; k++)
        if (setting[type, k] !~ /,/ && default_of(told_of[type, k]) != "") break
    call = call_of(text)
    gsub(/@ref ng_[a-z0-9_]+ |"/, "", call)
    if (k <= size[type]) sub(/\.\.\.\)/, "." setting[type, k] " = " default_of(told_of[type, k]) ", ...)", call)
    return "@code{.c}\n" call "\n@endcode\n"
}
function end_section() { # its text, and those of its functions that no list above has, for the page's head
    if (gsub(/\n<tr>/, "&", list) < 3) list = ""
    if (!man && (section ~ /[^ \n]/ || list != "")) {
        guide = guide "\n<h2>" title "</h2>\n" section "\n"
        if (list != "") guide = guide "<table class=\"rows\">" list "\n</table>\n"
    }
    list = section = ""
}
# The members of a struct of settings: setting[type, i], with its comment told_of[type, i] and its type kind[type, i].
function learn(type, text,    part, n, k, m, j, own, base, within, line, behind) {
    n = split(text, part, "\n")
    for (k = 2; k < n; k++) {
        line = part[k]
        sub(/^ +/, " ", line)
        if (within || line ~ /^ \/\*/) {
            behind = behind line
            within = line !~ /\*\//
            continue
        }
        sub(/^ /, "", line)
        if (line == "") continue
        m = size[type] = size[type] + 1
        if (match(line, / *\/\*/)) { behind = behind substr(line, RSTART); within = line !~ /\*\//; line = substr(line, 1, RSTART - 1) }
        told_of[type, m] = behind
        while (within && k < n - 1) { k++; own = part[k]; sub(/^ +/, " ", own); told_of[type, m] = told_of[type, m] own; within = own !~ /\*\// }
        behind = ""
        sub(/;.*/, "", line)
        j = split(line, own_names, / *, */)
        base = own_names[1]
        sub(/[a-z_A-Z0-9]+$/, "", base)
        kind[type, m] = base
        for (; j > 0; j--) { setting[type, m] = name_of(own_names[j]) (setting[type, m] == "" ? "" : ", ") setting[type, m]; members[type, name_of(own_names[j])] = base name_of(own_names[j]) }
    }
}
function is_argument(type, name) { return (type, name) in argument || (type, name) in before }
function table_of(type,    k, out, text, shown) { # the settings of a function
    for (k = 1; k <= size[type]; k++) {
        shown = setting[type, k]
        if (is_argument(type, shown)) continue
        text = told_of[type, k]
        gsub(/\/\*|\*\//, "", text)
        gsub(/^ +| +$/, "", text)
        if (man) { out = out "    ." shown "  " text "\n"; continue }
        gsub(/, /, ",<br/>.", shown)
        if (default_of(text) != "" && shown !~ /,/) {
            shown = shown " = " default_of(text)
            if (text == "default " default_of(text)) text = ""
        }
        out = out "\n<tr><td><code>." shown "</code></td><td><code>" kind[type, k] "</code></td><td>" cell(text) "</td></tr>"
    }
    if (out == "") return ""
    return man ? "@par Settings\n@verbatim\n" out "\n@endverbatim\n" : \
        "<table class=\"settings\">" out "\n</table>\n"
}
function members_told(type, text,    part, own, n, k, m, j, out, base, note, within, behind, above, name, shared, brief) { # a struct or enum, each member with its comment
    n = split(text, part, "\n")
    brief = man ? "" : " @brief"
    for (k = 1; k <= n; k++) {
        if (part[k] ~ /^ *NG_[A-Z_]+$/) continue
        note = ""
        name = name_of(part[k])
        if (within || part[k] ~ /^ *\/\*/) {
            if (!within) sub(/\/\*/, "/**" brief, part[k])
            within = part[k] !~ /\*\//
            if (!within && !behind && part[k + 1] ~ /^    [a-zA-Z]/) above = k + 1
            if (!within) behind = 0
        } else if (match(part[k], / *\/\*/)) {
            note = " /**<" brief substr(part[k], RSTART + RLENGTH)
            if (note ~ /like the/) shared = 1
            behind = within = note !~ /\*\//
            part[k] = substr(part[k], 1, RSTART - 1)
        } else if (part[k] ~ /^    [a-zA-Z]/ && k != above) {
            if (is_argument(type, name)) out = out "/**" brief " The argument. */\n"
            else if (name != "" && (shared || index(raw, name))) out = out "/**" brief " Described above. */\n"
        }
        if (part[k] !~ /^    [a-z][^(]*,.*;/) { out = out part[k] note "\n"; continue }
        m = split(part[k], own, / *[,;] */) # "int64_t in, out;" is two members with one comment
        base = own[1]
        sub(/[*a-z_A-Z0-9]+$/, "", base)
        for (j = 1; j < m; j++) out = out (j > 1 ? (note == "" ? "/**" brief " Described above. */ " : "") base : "") own[j] ";" note "\n"
    }
    return out
}
function typed(name, call, text,    own, arg, n, k, list, parameters) { # the macro `name` as a function, from name_with's text
    sub(/^NG_API +/, "", text)
    list = text
    sub(/ng_[a-z0-9_]+_with\(.*/, "", text)
    sub(/^[^(]*\(/, "", list)
    n = split(list, arg, / *,[ \n]*/)
    parameters = call
    sub(/^[^(]*\(/, "", parameters)
    sub(/\).*/, "", parameters)
    if (split(parameters, own, ",") < n) n = split(parameters, own, ",")
    list = ""
    for (k = 1; k < n; k++) list = list arg[k] ", "
    if (sub(/.*NG_INPUTS\(/, "ng_inputs, x, ", call)) argument["ng_inputs", "x"]
    sub(/.*NG_CHECKED\(/, "ng_check_options, inputs, list, n_inputs, ", call)
    sub(/.*NG_NAMED(_TWO)?\(/, "", call)
    gsub(/[\\\n )]/, "", call)
    split(call, own, ",")
    for (k = 2; own[k] != "" && own[k] != "__VA_ARGS__"; k += 2) list = list members[own[1], own[k]] ", "
    settings_of[name] = own[1]
    return text name "(" list "...);"
}

BEGIN { # the members that take an argument of a macro, and all names
    while ((getline line < ARGV[1]) > 0)
        if (match(line, /NG_NAMED(_TWO)?\([a-z0-9_]+, *[a-z0-9_]+/)) {
            call = substr(line, RSTART)
            n = split(call, part, /[(,) ]+/)
            argument[part[2], part[3]]
            if (part[1] ~ /TWO/) before[part[2], part[5]]
        }
    close(ARGV[1])
    while (("cat include/normgrad.h include/normgrad/*.h" | getline line) > 0) {
        if (line ~ /^typedef struct.*{/) body = ""
        body = body (body == "" ? "" : "\n") line
        if (line ~ /^} ng_[a-z0-9_]*(options|inputs);/) learn(name_of(line), body)
        if (line ~ /^(#define|NG_API|typedef|}) .*ng_/ && line !~ /^NG_API.*_with\(/) {
            sub(/[;({].*/, "", line)
            sub(/.*[ *]/, "", line)
            if (line ~ /^ng_/) known[line]
        }
    }
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
    if (!opened++) { about = plain(raw); print "/** @file\n" (man ? "" : "@brief " sentence(about) "\n\n") about "*/"; about = ""; next }
    if (raw !~ /^\/\* ----/) { about = plain(raw); next }
    end_section()
    section = plain(title = raw)
    sub(/^\/\* -+ */, "", title)
    sub(/ *--.*/, "", title)
    if ((getline line) <= 0 || line ~ /^ *$/) next
    about = section # it is about the declaration under it alone
    section = ""
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
        if ((at = index(text, "/*"))) { doc = plain(rest(substr(text, at))); text = substr(text, 1, at - 1) }
        if (text !~ /^#/) sub(/ *\n?{.*/, ";", text)
    } else {
        text = members_told(name, text)
    }
    if (name ~ /^NG_(API|PRINTF|MUST_CHECK|BEGIN_C|END_C|NTH|ONE|FIRST_NAMED|EACH_[A-Z0-9]+)$/) next
    if (text ~ /^#.*NG_(NAMED|INPUTS|CHECKED)/ && name ~ /^ng_/ && match(text, /ng_[a-z0-9_]+_with\(/)) {
        calls[name] = text
        callers[substr(text, RSTART, RLENGTH - 1)] = callers[substr(text, RSTART, RLENGTH - 1)] " " name
        next
    }
    n_callers = split(callers[name], caller, " ")
    for (c = 1; c <= n_callers; c++) add(typed(caller[c], calls[caller[c]], text), doc)
    if (n_callers == 0) add(text, doc)
}
END {
    end_group()
    end_section()
    if (guide != "") print "/** @file\n" guide "*/"
}
