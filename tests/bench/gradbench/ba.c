/* ba: bundle adjustment, the errors of p observations of points by cameras, and their sparse
 * Jacobian. The two errors of an observation depend on the 11 parameters of its camera, on its
 * point and on its weight, and a third on the weight alone.
 * The tape is reset after each block of observations, so that a block stays in cache. One backward
 * pass gives a row of the Jacobian for all observations of a block. */
#include "ba.h"
#include <string.h>

enum { BLOCK = 1024 };

/* Rows from .. to of x, as columns. */
static ng_tensor *columns_of(ng_tape *tape, ng_tensor *x, int64_t from, int64_t to)
{
    return ng_transpose(tape, ng_slice(tape, x, 0, from, to), 0, 1);
}

/* The variables and errors of a block of observations. */
typedef struct {
    ng_tensor *variables[VARIABLES], *reprojection, *weight;
} block;

static block block_at(ng_tape *tape, int64_t from, int64_t to)
{
    block b;
    ng_tensor *c = ng_gather_rows(tape, cameras, ng_slice(tape, camera_of, 0, from, to));
    ng_tensor *x = ng_gather_rows(tape, points, ng_slice(tape, point_of, 0, from, to));
    c = ng_transpose(tape, c, 0, 1);
    for (int64_t i = 0, at = 0; i < PLACE; at += size_of[i++])
        b.variables[i] = ng_variable(tape, part(tape, c, at, size_of[i]));
    b.variables[PLACE] = ng_variable(tape, ng_transpose(tape, x, 0, 1));
    b.variables[WEIGHT] = ng_variable(tape, columns_of(tape, weights, from, to));
    b.reprojection = reprojection(tape, b.variables, columns_of(tape, features, from, to));
    b.weight = ng_scalar_sub(tape, 1, ng_square(tape, b.variables[WEIGHT]));
    return b;
}

/* Copies x to elements of `to`. */
static void copy(ng_tensor *to, int64_t at, const ng_tensor *x)
{
    if (x) memcpy(ng_data_f64(to) + at, ng_data_f64(x), (size_t)ng_size(x) * sizeof(double));
}

static void objective(ng_tape *tape, ng_tensor **results)
{
    (void)results;
    for (int64_t from = 0; from < p && !ng_failed(); from += BLOCK) {
        const int64_t to = from + BLOCK < p ? from + BLOCK : p;
        ng_tape_reset(tape);
        const block b = block_at(tape, from, to);
        copy(errors, 2 * from, ng_transpose(tape, b.reprojection, 0, 1));
        copy(errors, 2 * p + from, b.weight);
    }
}

/* What the benchmark wants to see: the first elements and the last. */
static ng_tensor *ends(ng_tape *tape, ng_tensor *x)
{
    return ng_concat(
        tape, NG_TENSORS(ng_slice(tape, x, 0, 0, 2 * ROW), ng_slice(tape, x, 0, -1, NG_END)), 0);
}

static void jacobian(ng_tape *tape, ng_tensor **results)
{
    for (int64_t from = 0; from < p && !ng_failed(); from += BLOCK) {
        const int64_t to = from + BLOCK < p ? from + BLOCK : p;
        ng_tape_reset(tape);
        block b = block_at(tape, from, to);
        ng_tensor *gradients[2][VARIABLES];
        for (int i = 0; i < 2; i++) {
            ng_tensor *one = ng_from(tape, NG_F64, NG_SHAPE(2, 1), NG_VALUES(1 - i, i));
            ng_tensor *seed = ng_broadcast_to(tape, one, NG_SHAPE(2, to - from));
            ng_gradients(tape, &b.reprojection, 1, b.variables, VARIABLES, gradients[i],
                         .cotangents = &seed);
        }
        ng_tensor *both = ng_concat(tape, gradients[0], 2 * VARIABLES, 0);
        copy(values, 2 * ROW * from, ng_transpose(tape, both, 0, 1));
        copy(values, 2 * ROW * p + from, ng_gradient(tape, b.weight, b.variables[WEIGHT]));
    }
    put_structure();
    results[0] = ends(tape, rows);
    results[1] = ends(tape, columns);
    results[2] = ends(tape, values);
}

static void print_errors(void)
{
    printf("{\"reproj_error\": {\"elements\": [%.17g, %.17g], \"repeated\": %lld}, ",
           ng_get(errors, 0), ng_get(errors, 1), (long long)p);
    printf("\"w_err\": {\"element\": %.17g, \"repeated\": %lld}}", ng_get(errors, 2 * p),
           (long long)p);
}

int main(void)
{
    const gradbench_module module = {
        .module = "ba",
        .prepare = prepare,
        .primal = {"objective", objective, .print = print_errors},
        .gradient = {{"jacobian", jacobian, {"rows", "cols", "vals"}}}};
    return gradbench(&module);
}
