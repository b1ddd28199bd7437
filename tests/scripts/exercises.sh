#!/bin/sh
# Tests of examples/exercises: each solution is right, each exercise as it comes is not, and typical
# mistakes, planted in a solution, get a hint that leads to them.
#
#     tests/scripts/exercises.sh FOLDER COMPILER FLAGS...      with $LIBRARIES
set -eu
folder=$1
shift
compiler=$*
rm -rf "$folder"
mkdir -p "$folder"
cp -r examples/exercises "$folder/files"
fail() { echo "exercises: $*" >&2; exit 1; }

# says FILE STATUS TEXT: the checker says so of the file.
says() {
    $compiler "$1" $LIBRARIES -o "$folder/program" || fail "$1 does not compile"
    got=0
    said=$("$folder/program" 2>&1) || got=$?
    [ "$got" -eq "$2" ] && echo "$said" | grep -q -- "$3" || fail "$1 ended with $got, expected $2 and \"$3\": $said"
}

for file in "$folder"/files/[0-9]*.c; do
    case $file in
    */13_*) says "$file" 1 'hint: off by a multiple of x - mean in each row' ;;
    *) says "$file" 1 'hint: dx\[0\], of [a-z]*, is NG_NONE' ;;
    esac
    says "$folder/files/solutions/${file##*/}" 0 'right at both orders'
done

# mistake FILE HINT FROM TO: with TO in place of FROM in the solution.
mistake() {
    file=$folder/files/solutions/mistake.c
    awk -v from="$3" -v to="$4" '
        (at = index($0, from)) { $0 = substr($0, 1, at - 1) to substr($0, at + length(from)); found = 1 }
        { print }
        END { exit !found }' "examples/exercises/solutions/$1" >"$file" || fail "$1 has no \"$3\""
    says "$file" 1 "$2"
}
mistake 01_tanh.c 'the sign is flipped' 'dx[0] = ng_mul(tape, dy,' 'dx[0] = ng_mul(tape, ng_neg(tape, dy),'
mistake 02_sum.c 'hint: dx\[0\] must have the shape of x' \
    'ng_broadcast_to(tape, dy, ng_shape_of(node->inputs[0]))' 'dy; (void)tape, (void)node'
mistake 03_cross_entropy.c 'too large by a factor of 4' '1 / (double)ng_dim(x, 0)' '1'
mistake 04_rms_norm.c 'a multiple of x in each row' 'ng_sub(tape, dy, along)' '((void)along, dy)'
mistake 05_layer_norm.c 'constant in each row' 'ng_sub(tape, centred, along)' '((void)centred, ng_sub(tape, g, along))'
mistake 05_layer_norm.c 'hint: dx\[2\], of beta, is NG_NONE' 'dx[2] = column_sum(tape, dy)' 'dx[2] = NG_NONE'
mistake 13_find_the_bug.c '12 of 16 second derivatives' 'xhat = normalized(' 'xhat = kept('
echo "exercises: the checker marks exercises, solutions and mistakes"
