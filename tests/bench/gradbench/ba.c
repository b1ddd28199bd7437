/* ba: bundle adjustment, the errors of p observations of points by cameras, and their sparse
 * Jacobian. The two errors of an observation depend on the 11 parameters of its camera, on its
 * point and on its weight, and a third on the weight alone.
 * The tape is reset after each block of observations, so that a block stays in cache. One backward
 * pass gives a row of the Jacobian for all observations of a block. */
#include "gradbench.h"

enum { BLOCK = 1024 };

/* ---- The problem ----------------------------------------------------------------------------- */

enum { CAMERA = 11, POINT = 3, ROW = CAMERA + POINT + 1 };
static ng_tensor *cameras, *points, *weights, *features, *camera_of, *point_of;
static ng_tensor *errors, *values, *rows, *columns; /* output: the Jacobian in rows of its values */
static int64_t n, m, p;                             /* cameras, points, observations */

/* The benchmark gives one row, to be repeated. */
static ng_tensor *repeated(const char *input, const char *name, int64_t count)
{
    ng_tensor *one = input_tensor(input, name);
    const int64_t size = ng_size(one);
    ng_tensor *all = held_zeros(NG_F64, NG_SHAPE(count, size));
    for (int64_t i = 0; all && i < count * size; i++) ng_set(all, i, ng_get(one, i % size));
    return all;
}

/* 0, 1... modulus - 1, 0, 1... */
static void put_indices(ng_tensor **to, int64_t count, int64_t modulus)
{
    int64_t *index = held_index(to, NG_SHAPE(count));
    for (int64_t i = 0; index && i < count; i++) index[i] = i % modulus;
}

static void prepare(const char *input)
{
    n = input_count(input, "n");
    m = input_count(input, "m");
    p = input_count(input, "p");
    cameras = repeated(input, "cam", n);
    points = repeated(input, "x", m);
    weights = repeated(input, "w", p);
    features = repeated(input, "feat", p);
    put_indices(&camera_of, p, n);
    put_indices(&point_of, p, m);
    errors = held_zeros(NG_F64, NG_SHAPE(3 * p));
    values = held_zeros(NG_F64, NG_SHAPE(p * (2 * ROW + 1)));
    columns = held_zeros(NG_I64, NG_SHAPE(p * (2 * ROW + 1)));
    rows = held_zeros(NG_I64, NG_SHAPE(3 * p + 1));
}

/* Writes rows and columns: rows 2 i and 2 i + 1 are those of observation i, row 2 p + i is that of
 * its weight. */
static void put_structure(void)
{
    int64_t *row = ng_data_i64(rows), *column = ng_data_i64(columns);
    for (int64_t i = 0; i <= 3 * p; i++) row[i] = i <= 2 * p ? ROW * i : 2 * (ROW - 1) * p + i;
    for (int64_t i = 0; i < 2 * p; i++) {
        for (int64_t j = 0; j < CAMERA; j++) *column++ = CAMERA * (i / 2 % n) + j;
        for (int64_t j = 0; j < POINT; j++) *column++ = CAMERA * n + POINT * (i / 2 % m) + j;
        *column++ = CAMERA * n + POINT * m + i / 2;
    }
    for (int64_t i = 0; i < p; i++) *column++ = CAMERA * n + POINT * m + i;
}

/* ---- The camera, for columns of observations ------------------------------------------------- */

/* What an observation depends on, in the order of the Jacobian's columns; the rows of each. */
enum { ROTATION, CENTER, FOCAL, PRINCIPAL, RADIAL, RADIAL_2, PLACE, WEIGHT, VARIABLES };
static const int64_t size_of[VARIABLES] = {3, 3, 1, 2, 1, 1, 3, 1};

/* a x b of columns: with roll(a)_i = a_(i + 1), it is roll(a * roll(b) - roll(a) * b). */
static ng_tensor *cross(ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *next = ng_from(tape, NG_I64, NG_SHAPE(3), NG_VALUES(1, 2, 0));
    ng_tensor *left = ng_mul(tape, a, ng_gather_rows(tape, b, next));
    ng_tensor *right = ng_mul(tape, ng_gather_rows(tape, a, next), b);
    return ng_gather_rows(tape, ng_sub(tape, left, right), next);
}

/* Rodrigues' formula: x turned by the angle |r| around r. The added number, which changes no other
 * sum, stands for the limit at r = 0. */
static ng_tensor *rotate(ng_tape *tape, ng_tensor *r, ng_tensor *x)
{
    ng_tensor *square =
        ng_add_scalar(tape, ng_sum_squares(tape, r, .axes = NG_AXES(0), .keepdim = true), 1e-300);
    ng_tensor *angle = ng_sqrt(tape, square), *cosine = ng_cos(tape, angle);
    ng_tensor *sine = ng_div(tape, ng_sin(tape, angle), angle);
    ng_tensor *dot = ng_sum(tape, ng_mul(tape, r, x), .axes = NG_AXES(0), .keepdim = true);
    ng_tensor *along = ng_mul(tape, dot, ng_div(tape, ng_scalar_sub(tape, 1, cosine), square));
    ng_tensor *turned =
        ng_add(tape, ng_mul(tape, x, cosine), ng_mul(tape, cross(tape, r, x), sine));
    return ng_add(tape, turned, ng_mul(tape, r, along));
}

/* The errors weight (image - feature) (2, n). */
static ng_tensor *reprojection(ng_tape *tape, ng_tensor *const v[VARIABLES], ng_tensor *feature)
{
    ng_tensor *seen = rotate(tape, v[ROTATION], ng_sub(tape, v[PLACE], v[CENTER]));
    ng_tensor *at = ng_div(tape, rows_of(tape, seen, 0, 2), rows_of(tape, seen, 2, 3));
    ng_tensor *square = ng_sum_squares(tape, at, .axes = NG_AXES(0), .keepdim = true);
    ng_tensor *outer = ng_mul(tape, v[RADIAL_2], square);
    ng_tensor *radial = ng_mul(tape, ng_add(tape, v[RADIAL], outer), square);
    ng_tensor *scale = ng_mul(tape, ng_add_scalar(tape, radial, 1), v[FOCAL]);
    ng_tensor *image = ng_add(tape, ng_mul(tape, at, scale), v[PRINCIPAL]);
    return ng_mul(tape, v[WEIGHT], ng_sub(tape, image, feature));
}

/* ---- The errors and their Jacobian ----------------------------------------------------------- */

/* The variables and errors of a block of observations. */
typedef struct {
    ng_tensor *variables[VARIABLES], *reprojection, *weight;
} block;

static block block_at(ng_tape *tape, int64_t from, int64_t to)
{
    block b;
    ng_tensor *c = ng_gather_rows(tape, cameras, rows_of(tape, camera_of, from, to));
    ng_tensor *x = ng_gather_rows(tape, points, rows_of(tape, point_of, from, to));
    c = ng_transpose(tape, c, 0, 1);
    for (int64_t i = 0, at = 0; i < PLACE; at += size_of[i++])
        b.variables[i] = ng_variable(tape, rows_of(tape, c, at, at + size_of[i]));
    b.variables[PLACE] = ng_variable(tape, ng_transpose(tape, x, 0, 1));
    b.variables[WEIGHT] =
        ng_variable(tape, ng_transpose(tape, rows_of(tape, weights, from, to), 0, 1));
    b.reprojection = reprojection(tape, b.variables,
                                  ng_transpose(tape, rows_of(tape, features, from, to), 0, 1));
    b.weight = ng_scalar_sub(tape, 1, ng_square(tape, b.variables[WEIGHT]));
    return b;
}

static int64_t block_end(int64_t from) { return from + BLOCK < p ? from + BLOCK : p; }

static ng_tensor *objective(ng_tape *tape)
{
    for (int64_t from = 0; from < p && !ng_failed(); from += BLOCK) {
        ng_tape_reset(tape);
        const block b = block_at(tape, from, block_end(from));
        copy_elements(errors, 2 * from, ng_transpose(tape, b.reprojection, 0, 1));
        copy_elements(errors, 2 * p + from, b.weight);
    }
    ng_tensor *count = ng_full(tape, NG_F64, NG_SCALAR, (double)p);
    answer("{\"reproj_error\": {\"elements\": ", rows_of(tape, errors, 0, 2));
    answer(", \"repeated\": ", count);
    answer("}, \"w_err\": {\"element\": ",
           ng_reshape(tape, rows_of(tape, errors, 2 * p, 2 * p + 1), NG_SCALAR));
    answer(", \"repeated\": ", count);
    answer("}}", NULL);
    return NULL;
}

/* Adds the first elements and the last, which the benchmark wants to see. */
static void answer_ends(ng_tape *tape, const char *text, ng_tensor *x)
{
    answer(
        text,
        ng_concat(tape, NG_TENSORS(rows_of(tape, x, 0, 2 * ROW), rows_of(tape, x, -1, NG_END)), 0));
}

static void jacobian(ng_tape *tape)
{
    for (int64_t from = 0; from < p && !ng_failed(); from += BLOCK) {
        const int64_t to = block_end(from);
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
        copy_elements(values, 2 * ROW * from, ng_transpose(tape, both, 0, 1));
        copy_elements(values, 2 * ROW * p + from, ng_gradient(tape, b.weight, b.variables[WEIGHT]));
    }
    put_structure();
    answer_ends(tape, "{\"rows\": ", rows);
    answer_ends(tape, ", \"cols\": ", columns);
    answer_ends(tape, ", \"vals\": ", values);
    answer("}", NULL);
}

const gradbench_eval eval_ba = {"objective", "jacobian", prepare, objective, jacobian};
