#!/bin/sh
# Programs that use memory after it was freed or its tape was reset, linked with the library of
# VARIANT=asan: each is stopped with a report that names its wrong line. A correct program is not.
#
#     tests/scripts/lifetimes.sh FOLDER COMPILER FLAGS... -- LIBRARIES...
set -eu
. tests/scripts/compile.sh
folder=$1
shift

fail() {
    echo "lifetimes: $*" >&2
    exit 1
}

mkdir -p "$folder"
cat > "$folder/lifetimes.c" <<'PROGRAM'
#include <normgrad.h>
#include <stdio.h>
#include <string.h>

static ng_tape *tape;
static ng_rng rng;

static ng_tensor *input(void)
{
    return ng_require_grad(ng_normal_new(NG_F32, NG_SHAPE(4, 8), 0, 1, &rng));
}

static ng_tensor *loss_of(ng_tensor *x) { return ng_sum(tape, ng_tanh(tape, x)); }

static int after_reset(void)
{
    ng_tensor *loss = loss_of(ng_tape_own(tape, input()));
    ng_tape_reset(tape);
    return ng_item(loss) > 0; /* wrong: after_reset */
}

static int after_later_steps(void)
{
    ng_tensor *first = loss_of(ng_tape_own(tape, input()));
    for (int step = 0; step < 3; step++) {
        ng_tape_reset(tape);
        loss_of(ng_tape_own(tape, input()));
    }
    return ng_item(first) > 0; /* wrong: after_later_steps */
}

static int operand_after_reset(void)
{
    ng_tensor *h = ng_tanh(tape, ng_tape_own(tape, input()));
    ng_tape_reset(tape);
    return loss_of(ng_tape_own(tape, input())) && ng_exp(tape, h); /* wrong: operand_after_reset */
}

static int data_after_reset(void)
{
    const float *values = ng_data_f32(loss_of(ng_tape_own(tape, input())));
    ng_tape_reset(tape);
    return values[0] > 0; /* wrong: data_after_reset */
}

static int owned_after_reset(void)
{
    ng_tensor *x = ng_tape_own(tape, input());
    ng_tape_reset(tape);
    return ng_size(x) > 0; /* wrong: owned_after_reset */
}

static int input_freed_before_backward(void)
{
    ng_tensor *x = input(), *loss = loss_of(x);
    ng_tensor_free(x);
    return ng_backward(tape, loss); /* wrong: input_freed_before_backward */
}

static int view_after_free(void)
{
    ng_tensor *x = input(), *row = ng_reshape(tape, x, NG_SHAPE(32));
    ng_tensor_free(x);
    return ng_get(row, 0) > 0; /* wrong: view_after_free */
}

static int parameter_after_its_module(void)
{
    ng_module *layer = ng_linear_new(8, 2);
    ng_tensor *loss = loss_of(ng_forward(layer, tape, ng_tape_own(tape, input())));
    ng_module_free(layer);
    return ng_backward(tape, loss); /* wrong: parameter_after_its_module */
}

static int gradient_after_its_leaf(void)
{
    ng_tensor *x = input();
    if (ng_backward(tape, loss_of(x))) return 1;
    ng_tensor *gradient = ng_grad(x);
    ng_tape_reset(tape);
    ng_tensor_free(x);
    return ng_get(gradient, 0) > 0; /* wrong: gradient_after_its_leaf */
}

static int freed_twice(void)
{
    ng_tensor *x = input();
    ng_tensor_free(x);
    ng_tensor_free(x); /* wrong: freed_twice */
    return 0;
}

static int right(void)
{
    ng_tensor *x = input();
    ng_module *layer = ng_linear_new(8, 2);
    for (int step = 0; step < 3; step++) {
        ng_tensor *h = ng_forward(layer, tape, ng_add(tape, x, ng_tape_own(tape, input())));
        if (ng_backward(tape, loss_of(h)) != NG_OK) return 1;
        ng_tape_reset(tape);
    }
    ng_module_free(layer);
    ng_tensor_free(x);
    return ng_failed();
}

#define CASE(name) {#name, name}
static const struct {
    const char *name;
    int (*run)(void);
} cases[] = {CASE(after_reset), CASE(after_later_steps), CASE(operand_after_reset),
             CASE(data_after_reset), CASE(owned_after_reset), CASE(input_freed_before_backward),
             CASE(view_after_free), CASE(parameter_after_its_module),
             CASE(gradient_after_its_leaf), CASE(freed_twice), CASE(right)};

int main(int argc, char **argv)
{
    rng = ng_rng_seeded(1);
    tape = ng_tape_new();
    int status = 100; /* there is no such case */
    for (size_t i = 0; i < sizeof cases / sizeof *cases && argc > 1; i++)
        if (strcmp(argv[1], cases[i].name) == 0) status = cases[i].run();
    ng_tape_free(tape);
    return status;
}
PROGRAM

compile "$folder/lifetimes.c" "$folder/lifetimes" "$@" || fail "the program does not compile"

# The tests look for leaks; the sanitizer cannot in every environment.
export ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
count=0
for name in $(sed -n 's|.*/\* wrong: \([a-z_]*\) \*/.*|\1|p' "$folder/lifetimes.c"); do
    line=$(sed -n "\|/\* wrong: $name \*/|=" "$folder/lifetimes.c")
    if "$folder/lifetimes" "$name" > "$folder/report" 2>&1; then
        fail "$name is not caught"
    fi
    grep -q 'AddressSanitizer: \(heap-use-after-free\|use-after-poison\|attempting double-free\)' \
        "$folder/report" || fail "$name: $(head -n 5 "$folder/report")"
    grep -q "lifetimes.c:$line" "$folder/report" || fail "$name: the report does not name line $line"
    count=$((count + 1))
done
"$folder/lifetimes" right || fail "the correct program is stopped"
echo "lifetimes: $count uses of memory after its life are caught at their line"
