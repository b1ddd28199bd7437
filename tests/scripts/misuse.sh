#!/bin/sh
# A value without a name after the required arguments, as in ng_layer_norm_new(8, 1e-3) or
# ng_sum(tape, x, 1), after a setting, as in ng_layer_norm_new(8, .eps = 1e-3, 1), and a number for axes,
# as in ng_sum(tape, x, .axes = 1), are errors of every compiler, for every macro with settings. So is a tensor
# for a list of them, as in ng_check_module(layer, x, 1). The same call without it, and with every option by name
# in the order of its declaration, is right.
#
#     tests/scripts/misuse.sh FOLDER quick|full
#
# quick: $CC and $CXX, in one version of the language each; full: gcc, clang, g++ and clang++, as far as
# they are there, from C99 to C2x and from C++17 to C++23.
set -eu
folder=$1
mode=$2
rm -rf "$folder"
mkdir -p "$folder"

fail() {
    echo "misuse: $*" >&2
    exit 1
}

# Right and wrong calls of every macro over NG_NAMED, NG_CHECKED and NG_INPUTS, one on a line. 0 does for numbers
# and pointers, not for the structs of recurrent networks.
cat include/normgrad/*.h | awk -v folder="$folder" '
function value(type) {
    if (type ~ /const char \*const/) return "NG_NAMES(\"a\", \"b\")"
    if (type ~ /const bool \*/) return "NG_LIST(bool, true, false)"
    if (type ~ /\*|ng_norm_maker/) return "0"
    if (type ~ /ng_shape/) return "NG_SHAPE(2, 3)"
    if (type ~ /ng_axes/) return "NG_AXES(0)"
    if (type ~ /ng_schedule *$/) return "NG_SCHEDULE(.kind = NG_SCHEDULE_STEP, .every = 1)"
    gsub(/ /, "", type)
    return type ~ /^(double|bool|int|int64_t|uint64_t|size_t|char)$/ ? "1" : type in enums ? "(" type ")1" : ""
}
# Remembers each member of a struct, in order, with its type.
function read_struct(name,    part, n, k, j, type, names, m) {
    n = split(body, part, ";")
    for (k = 1; k <= n; k++) {
        m = part[k] ~ /\(/ ? 0 : split(part[k], names, ",")
        for (j = 1; j <= m; j++) {
            if (j == 1) { type = names[1]; sub(/[a-z_0-9]+ *$/, "", type) }
            gsub(/.*[ *]|[^a-z_0-9]/, "", names[j])
            if (names[j] != "") members[name] = members[name] " " names[j]
            types[name, names[j]] = type
        }
    }
}
function call(file, tail, list,    k, s) {
    for (k = 1; k <= required; k++)
        s = s (given[k] == "state" ? "NG_NO_STATE, " : given[k] == "weights" ? \
            "NG_NAMED(ng_recurrent_weights, bias_hh, 0), " : "0, ")
    if (type == "ng_check_options") s = s (list ? list : "(ng_tensor **)0") ", "
    print "    (void)" macro "(" s value(types[type, member]) tail ");" > (folder "/" file)
}
{ text = text $0 (sub(/\\$/, "") ? " " : "\n") }
END {
    while ((a = index(text, "/*")) > 0) {
        b = index(substr(text, a), "*/")
        text = substr(text, 1, a - 1) substr(text, a + b + 1)
    }
    gsub(/\\/, " ", text)
    gsub(/NG_CHECKED\(__VA/, "NG_NAMED_TWO(ng_check_options, inputs, list, n_inputs, __VA", text)
    gsub(/NG_INPUTS\(__VA/, "NG_NAMED_TWO(ng_inputs, named, 0, x, __VA", text)
    n = split(text, lines, "\n")
    for (k = 1; k <= n; k++) {
        if (lines[k] ~ /^ *typedef (struct|enum)/) { is_enum = lines[k] ~ /enum/; body = "" }
        else body = body lines[k]
        if (match(lines[k], /} *[a-z_0-9]+;/)) {
            name = substr(lines[k], RSTART, RLENGTH)
            gsub(/[ };]/, "", name)
            if (is_enum) enums[name]
            else { sub(/}.*/, "", body); read_struct(name) }
        }
        if (lines[k] !~ /^ *# *define ng_[a-z0-9_]+\(.*NG_NAMED(_TWO)?\(/) continue
        definitions[++count] = substr(lines[k], index(lines[k], "ng_"))
        split(substr(lines[k], match(lines[k], /NG_NAMED/)), written, / *[(,] */)
        argument[written[2], written[written[1] ~ /_TWO/ ? 5 : 3]] # two macros over one struct may differ in it
    }
    for (k = 1; k <= count; k++) {
        macro = parameters = definitions[k]
        split(substr(macro, match(macro, /NG_NAMED/)), written, / *[(,] */)
        type = written[2]
        two = written[1] ~ /_TWO/
        member = written[two ? 5 : 3]
        sub(/\(.*/, "", macro)
        if (macro in seen) continue
        seen[macro]
        gsub(/^[^(]*\(|\).*/, "", parameters)
        required = split(parameters, given, / *, */) - 1
        options = ""
        m = split(members[type], names, " ")
        for (j = 1; j <= m; j++)
            if (!((type, names[j]) in argument) && !(two && names[j] == written[3]) && value(types[type, names[j]]) != "")
                options = options ", ." names[j] " = " value(types[type, names[j]])
        call("right", "")
        call("right", options)
        call("wrong", ", 1")
        if (options != "") call("wrong", options ", 1")
        if (type == "ng_check_options") call("wrong", "", "(ng_tensor *)0")
        for (j = 1; j <= m; j++)
            for (number = 0; number < 2 && types[type, names[j]] ~ /ng_axes/; number++)
                call("wrong", ", ." names[j] " = " number)
    }
}'
echo '    (void)NG_SCHEDULE((ng_schedule_kind)1);' >>"$folder/wrong"
echo '    (void)ng_tensor_from_array(NG_F32, NG_SHAPE(4), (unsigned char *)0);' >>"$folder/wrong"
echo '    (void)ng_tensor_from_array(NG_F32, NG_SHAPE(4), (float **)0);' >>"$folder/wrong"
echo '    (void)ng_check_module(0, NG_TENSORS(0, 0), .names = NG_NAMES("x", "y"));' >>"$folder/right"
[ -s "$folder/right" ] || fail 'no macro of the headers uses NG_NAMED'
! grep -nE '\(ng_[a-z0-9_]+_options\) *\{' include/normgrad/*.h >&2 || fail 'options that are not NG_NAMED'
for which in right wrong; do
    for suffix in c cc; do
        {
            printf '#include <normgrad.h>\nvoid %s(void);\nvoid %s(void)\n{\n' $which $which
            cat "$folder/$which"
            echo '}'
        } >"$folder/$which.$suffix"
    done
done

# must_tell FILE COMPILER...: it objects to every call in the file.
must_tell() {
    file=$1
    shift
    "$@" -std="$standard" $all -Iinclude -fsyntax-only "$folder/$file.$suffix" >"$folder/said" 2>&1 || true
    # A call is named where the complaint is about the macro, too: "in expansion of macro".
    sed -n "s/.*$file\.$suffix:\([0-9]*\):.*/\1/p" "$folder/said" | sort -un >"$folder/told"
    line=5
    while IFS= read -r call; do
        grep -qx $line "$folder/told" || fail "$* -std=$standard says nothing of $call"
        line=$((line + 1))
    done <"$folder/$file"
}

# attempt SUFFIX STANDARD COMPILER...
attempt() {
    suffix=$1 standard=$2
    shift 2
    command -v "$1" >/dev/null && "$@" -std="$standard" -fsyntax-only -x "$language" /dev/null 2>/dev/null || {
        echo "skipped: there is no $1 -std=$standard"
        return 0
    }
    "$@" -std="$standard" -Wall -Wextra -pedantic -Werror -Iinclude -fsyntax-only \
        "$folder/right.$suffix" || fail "$* -std=$standard objects to a right call"
    case $("$@" --version) in *clang*) all=-ferror-limit=0 ;; *) all=-fmax-errors=0 ;; esac
    must_tell wrong "$@" -w
    tried=$((tried + 1))
}

tried=0
if [ "$mode" = full ]; then
    for compiler in gcc clang; do
        language=c
        for standard in c99 c11 c17 c2x; do attempt c $standard $compiler; done
    done
    for compiler in g++ clang++; do
        language=c++
        for standard in c++17 c++20 c++2b; do attempt cc $standard $compiler; done
    done
else
    language=c
    attempt c c99 ${CC:-cc}
    language=c++
    attempt cc c++17 ${CXX:-c++}
fi
[ $tried -gt 0 ] || fail 'no compiler was found'
echo "misuse: $(wc -l <"$folder/wrong") wrong calls, $tried compilers and standards: all are noticed"
