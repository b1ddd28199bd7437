#!/bin/sh
# Tests of examples/exercises: each solution is right, each exercise as it comes is not, and each typical
# mistake, planted in a solution, gets a hint that leads to it.
#
#     tests/scripts/exercises.sh FOLDER COMPILER FLAGS... -- LINKER'S FLAGS...
set -eu
folder=$1
shift
rm -rf "$folder"
mkdir -p "$folder"
cp -r examples/exercises "$folder/files"
compiler= libraries= behind=
for word; do
    if [ "$word" = -- ]; then behind=1
    elif [ -n "$behind" ]; then libraries="$libraries $word"
    else compiler="$compiler $word"; fi
done

# marked FILE: compiles it and puts what the checker says of it into said.
marked() {
    $compiler "$1" $libraries -o "$folder/program" || { echo "exercises: $1 does not compile" >&2; exit 1; }
    got=0
    said=$("$folder/program" 2>&1) || got=$?
}

# says FILE STATUS TEXT
says() {
    marked "$1"
    if [ "$got" -ne "$2" ] || ! echo "$said" | grep -q -- "$3"; then
        echo "exercises: $1 ended with $got, expected $2 and \"$3\":" >&2
        echo "$said" >&2
        exit 1
    fi
}

for file in "$folder"/files/[0-9]*.c; do
    says "$file" 1 'hint: dx\[0\], of [a-z]*, is NG_NONE'
    says "$folder/files/solutions/${file##*/}" 0 'right at both orders'
done

# mistake FILE HINT FROM TO: with TO in place of FROM in the solution.
mistake() {
    file=$folder/files/solutions/mistake.c
    awk -v from="$3" -v to="$4" '
        (at = index($0, from)) { $0 = substr($0, 1, at - 1) to substr($0, at + length(from)); found = 1 }
        { print }
        END { exit !found }' "examples/exercises/solutions/$1" >"$file" ||
        { echo "exercises: $1 has no \"$3\"" >&2; exit 1; }
    says "$file" 1 "$2"
    mistakes=$((mistakes + 1))
}

mistakes=0
mistake 01_tanh.c 'a term of dx has no dy in it' 'ng_mul(tape, dy,' 'ng_mul(tape, ng_add_scalar(tape, ng_mul_scalar(tape, dy, 0), 1),'
mistake 04_rms_norm.c 'a term of dx has no dy in it' 'ng_sub(tape, dy, along)' '((void)along, ng_mul(tape, y, y))'
mistake 01_tanh.c 'the sign is flipped' 'dx[0] = ng_mul(tape, dy,' 'dx[0] = ng_mul(tape, ng_neg(tape, dy),'
mistake 02_sum.c 'hint: dx\[0\] must have the shape of x' \
    'ng_broadcast_to(tape, dy, ng_shape_of(node->inputs[0]))' 'dy; (void)tape, (void)node'
mistake 03_cross_entropy.c 'too large by a factor of 4' '1 / (double)ng_dim(x, 0)' '1'
mistake 03_cross_entropy.c 'does not sum to 0 along axis 1' 'ng_sub(tape, p, target)' '((void)target, p)'
mistake 04_rms_norm.c 'a multiple of x in each row' 'ng_sub(tape, dy, along)' '((void)along, dy)'
mistake 05_layer_norm.c 'constant in each row' 'ng_sub(tape, centred, along)' '((void)centred, ng_sub(tape, g, along))'
mistake 05_layer_norm.c "the mean's term is missing" 'ng_sub(tape, centred, along)' '((void)centred, (void)along, g)'
mistake 05_layer_norm.c 'hint: dx\[1\] is not set, the gradient of gamma' 'dx[1] = ' 'if (0) dx[1] = '
mistake 05_layer_norm.c 'hint: dx\[2\], of beta, is NG_NONE' 'dx[2] = column_sum(tape, dy)' 'dx[2] = NG_NONE'
mistake 05_layer_norm.c 'hint: dx\[1\] must have the shape of gamma' 'dx[1] = column_sum(tape, ng_mul(tape, dy, xhat))' \
    'dx[1] = ng_mul(tape, dy, xhat)'
mistake 05_layer_norm.c 'too small by a factor of 3' 'dx[2] = column_sum(tape, dy)' 'dx[2] = column_mean(tape, dy)'
mistake 06_batch_norm.c 'a multiple of x - mean in each channel' '2 / N' '1 / N'
mistake 06_batch_norm.c 'constant in each channel' 'ng_mul_scalar(tape, dmean, 1 / N)' 'ng_mul_scalar(tape, dmean, 0)'
mistake 07_batch_norm_simplified.c 'does not depend on gamma' 'ng_mul(tape, dy, node->inputs[1])' 'dy'
mistake 08_adaptive_layer_norm.c 'does not depend on V' 'ng_matmul(tape, dy, V, .transpose_b = true)' \
    '((void)V, ng_mul_scalar(tape, c, 0))'
mistake 09_weight_norm.c 'a multiple of x in each row' 'lengths(tape, v)' 'ng_detach(tape, lengths(tape, v))'
mistake 10_attention.c 'too large by a factor of 1.73205' '1 / sqrt((double)ng_dim(q, 1))' '1'
mistake 11_rms_norm_second.c 'a multiple of x in each row' 'ng_mul(tape, b, c)), 3)' 'ng_mul(tape, b, c)), 1)'
mistake 12_running_statistics.c 'constant in each channel' 'ng_add(tape, trained, ng_mul(tape, q, de))' \
    'ng_add(tape, trained, ng_mul(tape, q, ng_sub(tape, de, column_mean(tape, de))))'
echo "exercises: the checker marks $(ls "$folder"/files/[0-9]*.c | wc -l) exercises and $mistakes mistakes"
