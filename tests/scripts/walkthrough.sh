#!/bin/sh
# Follows the README's walk-through: takes the C file out of README.md, compiles it as an example
# is compiled, and runs it. The program that README.md shows first is examples/quickstart.c.
#
#     tests/scripts/walkthrough.sh FOLDER COMPILER FLAGS... -- LIBRARIES...
set -eu
. tests/scripts/compile.sh
folder=$1
shift

fail() {
    echo "walkthrough: $*" >&2
    exit 1
}

first=$(head -n 1 examples/quickstart.c)
awk -v first="$first" '$0 == first { on = 1 } /^```$/ { on = 0 } on' README.md |
    cmp -s - examples/quickstart.c || fail "README.md shows another examples/quickstart.c"

# The file's name is in the first line of its block.
file=$(sed -n 's|^/\* \(examples/[a-z0-9_]*\.c\): .*|\1|p' README.md)
[ "$(echo "$file" | wc -w)" -eq 1 ] || fail "README.md shows '$file', expected one examples/NAME.c"
program=${file%.c}
grep -qF "make build/$program && build/$program" README.md ||
    fail "README.md does not say how build/$program is made and run"

# What is missing is named with the command that installs it.
for tool in check gnuplot pkg-config valgrind clang-format doxygen; do
    said=$(env -u MAKEFLAGS make -n "needs-$tool")
    echo "$said" | grep -q "is missing.*$tool" || fail "of $tool make says: $said"
done

rm -rf "$folder"
mkdir -p "$folder/examples"
sed -n "\|^/\* $file: |,/^\`\`\`\$/p" README.md | sed '$d' > "$folder/$file"

compile "$folder/$file" "$folder/$program" "$@" || fail "README.md's $file does not compile"
"$folder/$program" > "$folder/output" || {
    cat "$folder/output"
    fail "README.md's $file says no"
}
[ "$(grep -c ' ok$' "$folder/output")" -eq 1 ] || fail "a line was to say ok: $(cat "$folder/output")"
echo "walkthrough: README.md's $file compiles, and its gradients are right"
