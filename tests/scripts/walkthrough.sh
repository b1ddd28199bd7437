#!/bin/sh
# Follows the README's walk-through: takes the C file out of README.md, compiles it as an example
# is compiled, and runs it. The program that README.md shows first is examples/quickstart.c.
#
#     tests/scripts/walkthrough.sh FOLDER COMPILER FLAGS...      with $LIBRARIES
set -eu
folder=$1
shift
fail() { echo "walkthrough: $*" >&2; exit 1; }

awk -v first="$(head -n 1 examples/quickstart.c)" '$0 == first { on = 1 } /^```$/ { on = 0 } on' README.md |
    cmp -s - examples/quickstart.c || fail "README.md shows another examples/quickstart.c"

# The file's name is in the first line of its block.
file=$(sed -n 's|^/\* \(examples/[a-z0-9_]*\.c\): .*|\1|p' README.md)
[ "$(echo "$file" | wc -w)" -eq 1 ] || fail "README.md shows '$file', expected one examples/NAME.c"
grep -qF "make build/${file%.c} && build/${file%.c}" README.md || fail "README.md does not say how $file is made and run"
mkdir -p "$folder/examples"
sed -n "\|^/\* $file: |,/^\`\`\`\$/p" README.md | sed '$d' >"$folder/$file"
"$@" "$folder/$file" $LIBRARIES -o "$folder/program" && "$folder/program" >"$folder/output" || fail "README.md's $file fails"
[ "$(grep -c ' ok$' "$folder/output")" -eq 1 ] || fail "a line was to say ok: $(cat "$folder/output")"
echo "walkthrough: README.md's $file compiles, and its gradients are right"
