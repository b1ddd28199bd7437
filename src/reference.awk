# Reads a public header as it is written, for the reference and for the lint.
#
#     awk -f src/reference.awk ops.h                            what Doxygen reads in its place
#     awk -v man=FOLDER -v version=0.2.0 -f src/reference.awk ops.h   writes man pages
#     awk -v lint=1 -f src/reference.awk ops.h                  names what has no sentence
#
# A header is a comment about the whole, then sections, each under a comment with a rule
#     /* ---- Title ---- text */
# and in them blocks: a comment, then the declarations it is about, up to a blank line. A block is a
# page of the reference, named after its first function, with its declarations as the header has
# them. A declaration without a comment above has one on its line, or indented on the next, and
# stands on the page of its section.

{ lines[NR] = $0 }

END {
    file = FILENAME
    sub(/.*include\//, "", file)
    topic = file
    gsub(/\.h$/, "", topic)
    gsub(/\//, "_", topic)
    read_header()
    if (man != "") {
        sheet = man "/" topic ".3"
        if (contents != "") print ".SH DECLARATIONS" contents >> sheet
        print ".SH SEE ALSO" >> sheet
        for (n = 1; n <= also; n++) print ".BR normgrad_" headers[n] " (3)," >> sheet
        if (topic != "normgrad") print ".BR normgrad (3)" >> sheet
    }
    exit missing
}

# ---- Reading --------------------------------------------------------------------------------------

function read_header(    i) {
    for (i = 1; i <= NR; i++) {
        if (lines[i] ~ /^[ \t]*$/) end_block()
        else if (lines[i] ~ /^\/\*/) i = read_comment(i)
        else if (lines[i] ~ /^ +\/\*/) i = read_late_comment(i)
        else if (lines[i] ~ /^#/) i = read_directive(i)
        else if (lines[i] ~ /^NG_END_C/) i = behind_the_cxx(i)
        else if (lines[i] !~ /^NG_BEGIN_C/) i = read_declaration(i)
    }
    end_block()
    close_section()
}

function read_comment(i,    text, title, stop) {
    if (count) end_block()
    text = lines[i]
    while (lines[i] !~ /\*\//) text = text "\n" lines[++i]
    text = inside(text)
    if (!opened++) begin_topic(text)
    else if (text ~ /^----/) {
        close_section()
        title = text
        sub(/\n.*/, "", title)
        gsub(/^-+ *| *-+$/, "", title)
        stop = index(text, "\n")
        begin_section(title, stop ? substr(text, stop + 1) : "")
    } else block_text = text
    return i
}

# A comment on a line of its own belongs to the declaration above.
function read_late_comment(i,    text) {
    text = lines[i]
    while (lines[i] !~ /\*\//) text = text "\n" lines[++i]
    if (count) {
        own[count] = own[count] (own[count] == "" ? "" : " ") flow(inside(text))
        parts[count] = parts[count] "\n" text
    }
    return i
}

function read_directive(i,    text, name, k) {
    text = lines[i]
    while (lines[i] ~ /\\$/ || text ~ /\/\*[^\/]*$/) text = text "\n" lines[++i]
    if (topic == "normgrad" && sub(/^#include <normgrad\//, "", text)) headers[++also] = substr(text, 1, index(text, ".") - 1)
    if (text !~ /^# *define/) return i
    name = text
    sub(/^# *define +/, "", name)
    sub(/[^A-Za-z0-9_].*/, "", name)
    for (k = 1; k <= count; k++) if (names[k] == name) return i # its other form, as for C++
    if (name !~ /^NORMGRAD_/) add(name, text ~ ("define +" name "\\(") ? "macro" : "constant", text)
    return i
}

function read_declaration(i,    text, bare) {
    text = lines[i]
    bare = without_comments(text)
    while (bare !~ /[;}][ \t]*$/ || depth(bare) > 0 || (bare ~ /}[ \t]*$/ && bare !~ /\) *{/)) {
        if (i >= NR) break
        text = text "\n" lines[++i]
        bare = without_comments(text)
    }
    if (bare !~ /^typedef struct [a-z_]+ [a-z_]+;/ || !defined_here(bare)) add(name_of(bare), kind_of(bare), text)
    return i
}

# Whether the struct that a typedef names stands in this header, where it has its comment.
function defined_here(bare,    k) {
    sub(/^typedef struct /, "", bare)
    sub(/ .*/, "", bare)
    for (k = 1; k <= NR; k++) if (lines[k] ~ ("^struct " bare " *{")) return 1
    return 0
}

# What only C++ sees, between C's end and its next beginning, is not of the manual.
function behind_the_cxx(i) {
    while (i < NR && lines[i] !~ /^NG_BEGIN_C/) i++
    return i
}

function depth(s) { return gsub(/{/, "", s) - gsub(/}/, "", s) }

function without_comments(s,    out, a, b) {
    out = ""
    while ((a = index(s, "/*")) > 0) {
        out = out substr(s, 1, a - 1)
        s = substr(s, a)
        if ((b = index(s, "*/")) == 0) return out "/*"
        s = substr(s, b + 2)
    }
    return out s
}

function kind_of(bare) {
    if (bare ~ /^typedef enum[^;]*{/) return "enum"
    if (bare ~ /^(typedef )?struct[^;(]*{/) return "struct"
    if (bare ~ /^typedef/) return "type"
    if (bare ~ /\) *{/) return "inline"
    return bare ~ /\(/ ? "function" : "variable"
}

function name_of(bare) {
    gsub(/__attribute__ *\(\(.*\)\) */, "", bare)
    if (bare ~ /^struct[^;(]*{/) sub(/^struct +/, "", bare)
    else if (bare ~ /^typedef (struct|enum)[^;]*{/) sub(/.*} */, "", bare)
    else if (bare ~ /^typedef [^(]*\(\*/) sub(/^[^(]*\(\*/, "", bare)
    else {
        sub(/ *[(;].*/, "", bare)
        sub(/.*[ *]/, "", bare)
    }
    sub(/[^A-Za-z0-9_].*/, "", bare)
    return bare
}

function add(name, kind, text) {
    names[++count] = name
    kinds[count] = kind
    texts[count] = parts[count] = text
    own[count] = ""
    if (kind == "struct") structs[name] = text
    sub(/^NG_API /, "", parts[count])
    if (kind == "inline") parts[count] = substr(text, 1, index(text, ")")) ";"
    if (kind !~ /struct|enum/ && match(text, /\/\*/)) own[count] = flow(inside(substr(text, RSTART)))
}

# The declarations of a block as a page shows them: how macros are called, then what the header says.
function shown(    k, calls, rest) {
    for (k = 1; k <= count; k++)
        if (kinds[k] == "macro") calls = calls usage(k) "\n"
        else rest = rest (rest == "" ? "" : "\n") parts[k]
    return calls (calls != "" && rest != "" ? "\n" : "") rest
}

# A macro like a prototype: what it gives and what it takes, where NG_NAMED tells.
function usage(k,    text, call, type, last, j, result, taken) {
    text = parts[k]
    gsub(/[ \t]*\\\n[ \t]*/, " ", text)
    call = text
    sub(/^# *define +/, "", call)
    call = substr(call, 1, index(call, ")"))
    if (!match(text, /NG_NAMED\([a-z0-9_]+, *[a-z0-9_]+/)) return call
    type = last = substr(text, RSTART + 9, RLENGTH - 9)
    sub(/,.*/, "", type)
    sub(/.*, */, "", last)
    taken = call
    gsub(/^[^(]*\(|\.\.\.\)$/, "", taken)
    for (j = 1; j <= count; j++) if (names[j] == names[k] "_with") {
        result = taken = flow(without_comments(texts[j]))
        sub(/^NG_API /, "", result)
        sub(/ng_[a-z0-9_]+_with\(.*/, "", result)
        sub(/^[^(]*\(/, "", taken)
        sub(/[a-z0-9_]+ [a-z]+\);.*$/, "", taken)
    }
    return result names[k] "(" taken member_of(type, last) ", .option = value...);"
}

# "int64_t dim", of a struct of this header.
function member_of(type, name,    j) {
    if (!(type in structs)) return name
    split_members(structs[type])
    for (j = 1; j <= members; j++) if (member[j] ~ ("[ *]" name "$")) return member[j]
    return name
}

# The text of a comment, without its marks.
function inside(text) {
    sub(/^[ \t]*\/\* */, "", text)
    sub(/[ \t\n]*\*\/.*$/, "", text)
    gsub(/\n[ \t]*\* ?/, "\n", text)
    return text
}

# One line of what was several.
function flow(text) {
    gsub(/[ \t]*\n[ \t]*/, " ", text)
    gsub(/^ +| +$/, "", text)
    return text
}

function first_sentence(text,    rest, at, done) {
    sub(/\n\n.*/, "", text)
    sub(/(   +|\n +)ng_.*/, "", text)
    rest = text = flow(text)
    done = ""
    while ((at = index(rest, ". ")) > 0) {
        done = done substr(rest, 1, at)
        rest = substr(rest, at + 1)
        if (done !~ /(et al| |cf|e\.g|i\.e)\.$/) return done
    }
    return text
}

# The text after its first sentence, which may end on any of its lines.
function without_first(text,    sentence, n) {
    sentence = first_sentence(text)
    for (n = length(sentence); n < length(text); n++)
        if (flow(substr(text, 1, n)) == sentence) break
    text = substr(text, n + 1)
    sub(/^ *\n+/, "", text)
    sub(/^ /, "", text)
    return text
}

# ---- Topics, sections, blocks ---------------------------------------------------------------------

function begin_topic(text) {
    sub(/^normgrad: /, "", text)
    open_page(topic, topic == "normgrad" ? "" : "normgrad", file, text, "")
    close_page()
    if (topic == "normgrad" && doxygen()) {
        print "/// @mainpage " topic
        print_text(text)
        print ""
    }
}

function doxygen() { return man == "" && !lint }

function begin_section(title, text) {
    section = tolower(title)
    gsub(/[^a-z0-9]+/, "_", section)
    section = "section_" topic "_" section
    section_title = title
    block_text = section_text = text
    section_shown = section_names = ""
    if (doxygen()) open_page(section, topic, title, text, "")
    if (doxygen()) close_page()
}

function close_section() {
    end_block()
    if (man != "" && section_names != "") {
        open_page("", topic, section_names, section_title ".\n\n" section_text, section_shown)
        link(section_names)
    }
    section = section_text = ""
}

function end_block(    page, k) {
    if (count && lint) find_missing()
    else if (count && (section == "" || (block_text != "" && block_text != section_text))) {
        page = doxygen() ? first_name(principals()) : ""
        open_page(page, section == "" || man != "" ? topic : section, principals(), block_text, shown())
        for (k = 1; k <= count && doxygen(); k++) print_declaration(k, page)
        close_page()
        link(all_names())
    } else if (count) {
        if (doxygen()) {
            print "/// @addtogroup " section "\n/// @{\n"
            for (k = 1; k <= count; k++) print_declaration(k, section)
            close_page()
        }
        section_shown = section_shown (section_shown == "" ? "" : "\n\n") shown()
        section_names = section_names (section_names == "" ? "" : ", ") all_names()
    }
    count = 0
    block_text = ""
}

function all_names(    k, s) {
    for (k = 1; k <= count; k++) s = s (k > 1 ? ", " : "") names[k]
    return s
}

# What a user calls or names, most of all; not the function behind a macro, nor its options.
function principals(    k, s) {
    for (k = 1; k <= count; k++)
        if (kinds[k] ~ /macro|function|inline/ && names[k] !~ /_with$/)
            s = s (s == "" ? "" : ", ") names[k]
    return s == "" ? all_names() : s
}

function first_name(list) {
    sub(/,.*/, "", list)
    return list
}

# ---- A page ---------------------------------------------------------------------------------------

function open_page(name, parent, title, text, code) {
    if (lint) return
    if (man != "") {
        open_man(title, parent, text, code)
        return
    }
    print "/// @defgroup " name " " escaped(title)
    if (parent != "") print "/// @ingroup " parent
    if (text != "") print "/// @brief " escaped(first_sentence(text))
    print "///"
    print_text(without_first(text))
    if (code != "") print_fixed(code)
    print "/// @{\n"
}

function close_page() {
    if (doxygen()) print "/// @}\n"
}

function open_man(title, parent, text, code) {
    sheet = man "/" (title == file ? topic : first_name(title)) ".3"
    if (title == file) title = topic
    print ".TH " first_name(title) " 3 \"\" \"normgrad " version "\"\n.SH NAME" > sheet
    print title " \\- " escaped(first_sentence(text)) > sheet
    if (code != "") {
        print ".SH SYNOPSIS\n.nf\n#include <" file ">\n" > sheet
        print verbatim(code) "\n.fi" > sheet
    }
    print ".SH DESCRIPTION" > sheet
    print_text(text)
    if (title != topic) {
        contents = contents "\n.TP\n" title "\n" escaped(first_sentence(text))
        print ".SH SEE ALSO" > sheet
        print_related(code)
        print ".BR " parent " (3)" > sheet
    }
    close(sheet)
}

# Options and reports that a page speaks of and does not show.
function print_related(code,    name, told) {
    told = code
    while (match(told, /ng_[a-z0-9_]+_(options|report)/)) {
        name = substr(told, RSTART, RLENGTH)
        told = substr(told, RSTART + RLENGTH)
        if (!index(code, "} " name ";") && !((sheet, name) in related)) print ".BR " name " (3)," > sheet
        related[sheet, name]
    }
}

# Every name on a page leads to it.
function link(list,    part, n, k, target) {
    if (man == "") return
    n = split(list, part, ", ")
    target = sheet
    sub(/.*\//, "", target)
    for (k = 1; k <= n; k++) if (part[k] ".3" != target) {
        print ".so man3/" target > (man "/" part[k] ".3")
        close(man "/" part[k] ".3")
    }
}

# Paragraphs flow; what is indented, or aligned by hand, stays as it is written. A sentence may end in
# "...and bias (0).   ng_layer_norm_new(128)": how the function is called.
function print_text(text,    part, n, k, run, mode, now, cut) {
    n = split(text, part, "\n")
    mode = run = ""
    for (k = 1; k <= n + 1; k++) {
        if (k <= n && (cut = match(part[k], /[^ ]   +ng_[a-z_0-9]+\(/)) && part[k] !~ /^ / && mode != "fixed") {
            print_run("flow", run (run == "" ? "" : "\n") substr(part[k], 1, cut))
            run = substr(part[k], cut + 1)
            mode = "fixed"
            continue
        }
        if (k > n || part[k] == "") now = ""
        else now = part[k] ~ /^  |[^ .]  +[^ ]/ ? "fixed" : "flow"
        if (now != mode) {
            print_run(mode, run)
            run = ""
        }
        mode = now
        if (now != "") run = run (run == "" ? "" : "\n") part[k]
    }
}

function print_run(mode, run) {
    if (run == "") return
    if (mode == "fixed") print_fixed(dedented(run))
    else if (man == "") print "/// " escaped(flow(run)) "\n///"
    else print ".PP\n" escaped(flow(run)) > sheet
}

function print_fixed(text,    part, n, k) {
    if (man != "") {
        print ".PP\n.RS 4\n.nf\n" escaped(text) "\n.fi\n.RE" > sheet
        return
    }
    n = split(text, part, "\n")
    print "/// @code{.c}"
    for (k = 1; k <= n; k++) print "/// " part[k]
    print "/// @endcode\n///"
}

function dedented(text,    part, n, k, least, spaces) {
    n = split(text, part, "\n")
    least = 99
    for (k = 1; k <= n; k++) {
        match(part[k], /^ */)
        if (RLENGTH < least) least = RLENGTH
    }
    text = substr(part[1], least + 1)
    for (k = 2; k <= n; k++) text = text "\n" substr(part[k], least + 1)
    return text
}

function verbatim(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    gsub(/\n\./, "\n\\\\\\&.", s)
    gsub(/\n'/, "\n\\\\\\&'", s)
    return s
}

function escaped(s) {
    if (man != "") {
        s = verbatim(s)
        return s ~ /^[.']/ ? "\\&" s : s
    }
    gsub(/\\/, "\\\\", s)
    gsub(/@/, "\\@", s)
    gsub(/#/, "\\#", s)
    gsub(/%/, "\\%", s)
    gsub(/</, "\\<", s)
    gsub(/>/, "\\>", s)
    return s
}

# ---- Declarations, for Doxygen --------------------------------------------------------------------

function print_declaration(k, page,    text) {
    print "/// @brief " escaped(brief_of(k))
    if (kinds[k] == "struct" || kinds[k] == "enum") print_members(k, page)
    else print without_comments(texts[k])
    print ""
}

function brief_of(k) {
    if (own[k] != "") return own[k]
    if (names[k] ~ /_options$/) return "The options of " principals() "."
    if (names[k] ~ /_with$/) return "What the macro calls, with its options in a struct."
    if (kinds[k] ~ /struct|enum|type|constant/ && !index(", " principals() ",", ", " names[k] ","))
        return "See " first_name(principals()) "."
    return first_sentence(block_text)
}

function print_members(k, page,    j) {
    split_members(texts[k])
    print head
    for (j = 1; j <= members; j++) {
        print "    /// @brief " (member_doc[j] == "" ? "See @ref " page "." : escaped(flow(member_doc[j])))
        print "    " member[j] (kinds[k] == "enum" ? "," : ";")
    }
    print foot
}

# Members and the comment of each, before them on a line of its own or behind them: head, member[],
# member_doc[], foot.
function split_members(text,    body, at, stop, statement, comment, separator, alone) {
    at = index(text, "{")
    head = without_comments(substr(text, 1, at))
    stop = match(text, /}[^}]*$/)
    foot = without_comments(substr(text, stop))
    body = substr(text, at + 1, stop - at - 1)
    separator = text ~ /^typedef enum/ ? "," : ";"
    members = latest = 0
    before = statement = ""
    while (body != "") {
        if (substr(body, 1, 2) == "/*") {
            stop = index(body, "*/") + 1
            comment = inside(substr(body, 1, stop))
            if (statement ~ /[^ \n\t]/) {
                keep(statement, separator)
                describe_latest(comment)
                statement = ""
            } else if (alone) before = comment
            else describe_latest(comment)
        } else {
            stop = 1
            at = substr(body, 1, 1)
            if (at == separator) {
                if (statement ~ /[^ \n\t]/) keep(statement, separator)
                statement = ""
            } else statement = statement at
            alone = at == "\n" ? 1 : at ~ /[ \t]/ ? alone : 0
        }
        body = substr(body, stop + 1)
    }
    if (statement ~ /[^ \n\t]/) keep(statement, separator)
}

# "int64_t in, out" is two members, with one comment.
function keep(statement, separator,    part, n, k, type) {
    statement = flow(statement)
    n = 1
    part[1] = statement
    if (separator == ";" && statement !~ /\(/) n = split(statement, part, / *, */)
    type = part[1]
    sub(/ *\[.*/, "", type)
    sub(/[* ]*[A-Za-z0-9_]+$/, "", type)
    latest = members + 1
    for (k = 1; k <= n; k++) {
        member[++members] = (k > 1 ? type " " : "") part[k]
        member_doc[members] = before
    }
    before = ""
}

function describe_latest(comment,    j) {
    for (j = latest ? latest : 1; j <= members; j++) member_doc[j] = comment
}

# ---- Lint -----------------------------------------------------------------------------------------

# A declaration has a sentence of its own or in the comment above; a member may be named in it.
function find_missing(    k, j, name, about) {
    about = block_text " " section_text
    for (k = 1; k <= count; k++) {
        if (own[k] == "" && block_text == "") complain(names[k])
        if (kinds[k] != "struct" && kinds[k] != "enum") continue
        split_members(texts[k])
        for (j = 1; j <= members; j++) {
            name = member[j]
            sub(/ *[=[].*/, "", name)
            if (name ~ /\(\*/) sub(/.*\(\*/, "", name)
            else sub(/.*[ *]/, "", name)
            sub(/[^A-Za-z0-9_].*/, "", name)
            if (member_doc[j] == "" && !mentions(about, name)) complain(names[k] "." name)
        }
    }
}

function mentions(text, name) {
    return (" " text " ") ~ ("[^A-Za-z0-9_]" name "[^A-Za-z0-9_]")
}

function complain(what) {
    print FILENAME ": " what " has no sentence"
    missing = 1
}
