/* ht: hand tracking, the distances of n measured points to a hand whose pose is theta, and their
 * Jacobian, for theta and for two numbers u of each point, its place in a triangle.
 * Theta moves 4 x 4 matrices of the bones, in which all vertices are linear. One ng_jvp of as many
 * rows of theta as it has elements, each along its own axis, differentiates the matrices; the rest
 * is one product. */
#include "ht.h"
#include <string.h>

enum { BLOCK = 1024 };                               /* points, which so stay in cache */
static ng_tensor *places, *slopes, *errors, *jacobi; /* (vertices, 3) (vertices, 3 THETA); output */
static int64_t n, width;

static void prepare(const char *input)
{
    const char *data = input_member(input, "data"), *model = data ? input_member(data, "model") : 0;
    if (!model) {
        ng_fail(NG_EPARSE, "ht: no model in the input");
        return;
    }
    theta = input_tensor(input, "theta");
    points = input_tensor(data, "points");
    us = input_member(input, "us") && strncmp(input_member(input, "us"), "[]", 2)
             ? input_tensor(input, "us")
             : NULL;
    read_bones(model);
    if (ng_failed()) return;
    read_skin(model);
    read_vertices(data, model);
    if (ng_failed()) return;
    n = ng_dim(points, 0), width = THETA + (us ? 2 : 0);
    places = held_zeros(NG_F64, NG_SHAPE(ng_dim(skin, 0), 3));
    slopes = held_zeros(NG_F64, NG_SHAPE(ng_dim(skin, 0), 3 * THETA));
    errors = held_zeros(NG_F64, NG_SHAPE(3 * n));
    jacobi = held_zeros(NG_F64, NG_SHAPE(3 * n, width));
}

/* Copies x to elements of `to`, and lets the tape go. */
static void keep(ng_tape *tape, ng_tensor *to, int64_t at, const ng_tensor *x)
{
    if (x) memcpy(ng_data_f64(to) + at, ng_data_f64(x), (size_t)ng_size(x) * sizeof(double));
    ng_tape_reset(tape);
}

static void move_vertices(ng_tape *tape)
{
    ng_tensor *one = ng_reshape(tape, theta, NG_SHAPE(1, THETA));
    keep(tape, places, 0, ng_matmul(tape, skin, pose(tape, one)));
}

/* Rows of x (vertices, ...) at the points `from` .. `to`: the corners' with weights u, or one's. */
static ng_tensor *blend(ng_tape *tape, ng_tensor *x, ng_tensor *u, int64_t from, int64_t to)
{
    ng_tensor *row[CORNERS] = {NULL};
    for (int c = 0; c < (u ? CORNERS : 1); c++)
        row[c] = ng_gather_rows(tape, x, ng_slice(tape, vertex[c], 0, from, to));
    if (!u) return row[0];
    ng_tensor *u0 = ng_slice(tape, u, 1, 0, 1), *u1 = ng_slice(tape, u, 1, 1, 2);
    ng_tensor *first = ng_mul(tape, u0, ng_sub(tape, row[0], row[2]));
    ng_tensor *second = ng_mul(tape, u1, ng_sub(tape, row[1], row[2]));
    return ng_add(tape, row[2], ng_add(tape, first, second));
}

static ng_tensor *error(ng_tape *tape, ng_tensor *u, int64_t from, int64_t to)
{
    return ng_sub(tape, ng_slice(tape, points, 0, from, to), blend(tape, places, u, from, to));
}

static ng_tensor *part_of_us(ng_tape *tape, int64_t from, int64_t to)
{
    return us ? ng_variable(tape, ng_slice(tape, us, 0, from, to)) : NULL;
}

static void objective(ng_tape *tape, ng_tensor **results)
{
    move_vertices(tape);
    for (int64_t from = 0; from < n && !ng_failed(); from += BLOCK) {
        const int64_t to = from + BLOCK < n ? from + BLOCK : n;
        keep(tape, errors, 3 * from, error(tape, part_of_us(tape, from, to), from, to));
    }
    results[0] = errors;
}

static void jacobian(ng_tape *tape, ng_tensor **results)
{
    if (us) move_vertices(tape);
    ng_tensor *rows = ng_broadcast_to(tape, theta, NG_SHAPE(THETA, THETA));
    ng_tensor *axes = ng_eye(tape, NG_F64, THETA);
    rows = ng_variable(tape, rows);
    ng_tensor *posed = pose(tape, rows), *slope = ng_jvp(tape, posed, &rows, 1, &axes);
    keep(tape, slopes, 0, ng_matmul(tape, skin, slope));
    for (int64_t from = 0; from < n && !ng_failed(); from += BLOCK) {
        const int64_t to = from + BLOCK < n ? from + BLOCK : n;
        ng_tensor *u = part_of_us(tape, from, to), *column[3];
        ng_tensor *s = ng_neg(tape, blend(tape, slopes, u, from, to));
        s = ng_reshape(tape, s, NG_SHAPE(-1, THETA, 3));
        column[2] = ng_transpose(tape, s, 1, 2);
        ng_tensor *e = us ? error(tape, u, from, to) : NULL;
        for (int i = 0; us && i < 2; i++) {
            ng_tensor *axis = ng_from(tape, NG_F64, NG_SHAPE(1, 2), NG_VALUES(1 - i, i));
            axis = ng_broadcast_to(tape, axis, NG_SHAPE(to - from, 2));
            column[i] = ng_reshape(tape, ng_jvp(tape, e, &u, 1, &axis), NG_SHAPE(-1, 3, 1));
        }
        keep(tape, jacobi, 3 * from * width, us ? ng_concat(tape, column, 3, 2) : column[2]);
    }
    results[0] = jacobi;
}

int main(void)
{
    const gradbench_module module = {.module = "ht",
                                     .prepare = prepare,
                                     .primal = {"objective", objective},
                                     .gradient = {{"jacobian", jacobian}}};
    return gradbench(&module);
}
