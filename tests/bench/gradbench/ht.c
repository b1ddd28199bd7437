/* ht: hand tracking, the distances of n measured points to a hand whose pose is theta, and their
 * Jacobian, for theta and for two numbers u of each point, its place in a triangle.
 * Theta moves 4 x 4 matrices of the bones, in which all vertices are linear. One ng_jvp of seven
 * copies of theta, each along elements of which no two move the same bone, differentiates the
 * matrices by all elements; the rest is one product. */
#include "gradbench.h"
#include <string.h>

/* ---- The problem ----------------------------------------------------------------------------- */

/* theta: the hand's rotation and place, and for each finger a flexion and a spread of its second
 * bone and a flexion of the next two. */
enum { THETA = 26, KINDS = 7, CORNERS = 3, MOST_BONES = 64 };
enum { BLOCK = 64 }; /* points, which so stay in cache */
static ng_tensor *theta, *points, *us, *base, *inverse;
static ng_tensor *skin;             /* (vertices, 4 bones + 1): weight times position, and 1 */
static ng_tensor *corner;           /* (3, points): the triangle's vertices; (1, points): the one */
static ng_tensor *flexion, *spread; /* which element of theta, or 0 behind them, turns a bone */
static ng_tensor *level[MOST_BONES]; /* bones at this distance from the root, and for each its */
static ng_tensor *above[MOST_BONES]; /* parent's index in the level above */
static ng_tensor *order;             /* where a bone is, if all levels are joined */
static ng_tensor *axes;              /* (KINDS, THETA): 1 where an element is of a kind */
static ng_tensor *follows;           /* (4 bones + 1, 1, THETA): -1 where a row of the pose does */
static int64_t bones, levels;

/* The bones level by level: a level is turned at once. */
static void sort_bones(const ng_tensor *parents)
{
    int64_t depth[MOST_BONES] = {0}, place[MOST_BONES], joined = 0, last = 0;
    for (int64_t i = 0; i < bones; i++) {
        const int64_t parent = (int64_t)ng_get(parents, i);
        depth[i] = parent < 0 ? 0 : depth[parent] + 1;
        last = depth[i] > last ? depth[i] : last;
    }
    int64_t *where = held_index(&order, NG_SHAPE(bones));
    levels = last + 1;
    for (int64_t d = 0; where && d < levels; d++) {
        int64_t count = 0;
        for (int64_t i = 0; i < bones; i++) count += depth[i] == d;
        int64_t *own = held_index(&level[d], NG_SHAPE(count)),
                *parent = held_index(&above[d], NG_SHAPE(count));
        if (!own || !parent) return;
        for (int64_t i = 0, at = 0; i < bones; i++) {
            if (depth[i] != d) continue;
            own[at] = i, parent[at] = d ? place[(int64_t)ng_get(parents, i)] : 0;
            where[i] = joined++, place[i] = at++;
        }
    }
}

static void read_skin(const char *model)
{
    const ng_tensor *position = input_tensor(model, "base_positions");
    const ng_tensor *weight = input_tensor(model, "weights");
    if (ng_failed()) return;
    skin = held_zeros(NG_F64, NG_SHAPE(ng_dim(position, 0), 4 * bones + 1));
    double *to = skin ? ng_data_f64(skin) : NULL;
    for (int64_t v = 0; to && v < ng_dim(position, 0); v++, *to++ = 1)
        for (int64_t i = 0; i < 4 * bones; i++)
            *to++ = ng_get(weight, v * bones + i / 4) * ng_get(position, 4 * v + i % 4);
}

static void read_vertices(const char *data, const char *model)
{
    const ng_tensor *near = input_tensor(data, "correspondences");
    const ng_tensor *triangle = us ? input_tensor(model, "triangles") : NULL;
    const int64_t n = near ? ng_size(near) : 0;
    int64_t *at = held_index(&corner, NG_SHAPE(us ? CORNERS : 1, n));
    for (int64_t i = 0; at && i < ng_size(corner); i++) {
        const int64_t found = (int64_t)ng_get(near, i % n);
        at[i] = us ? (int64_t)ng_get(triangle, CORNERS * found + i / n) : found;
    }
}

/* Elements of a kind move different rows of the pose: a finger's four those of its bones; the
 * rotation's three those of all bones; and the place's, of the same kinds, the last. */
static void read_kinds(const ng_tensor *parents, const int64_t *flex, const int64_t *side)
{
    axes = held_zeros(NG_F64, NG_SHAPE(KINDS, THETA));
    follows = held_zeros(NG_F64, NG_SHAPE(4 * bones + 1, 1, THETA));
    if (ng_failed()) return;
    double *row = ng_data_f64(follows);
    for (int64_t i = 0; i <= 4 * bones; i++, row += THETA) {
        const int64_t bone = i < 4 * bones ? i / 4 : -1;
        const int64_t parent = bone < 0 ? -1 : (int64_t)ng_get(parents, bone);
        int64_t moved[KINDS] = {0};
        for (int64_t t = 0; t < THETA; t++) {
            const int64_t kind = t < 6 ? t % 3 : 3 + (t - 6) % 4;
            ng_data_f64(axes)[kind * THETA + t] = 1;
            const bool own =
                bone < 0 ? t >= 3 && t < 6 : t < 3 || t == flex[bone] || t == side[bone];
            if (!own && (parent < 0 || ng_get(follows, 4 * parent * THETA + t) == 0)) continue;
            row[t] = -1;
            if (moved[kind]++) ng_fail(NG_EVALUE, "ht: a bone of two fingers");
        }
    }
}

static void read_bones(const char *model)
{
    ng_tensor *parents = input_tensor(model, "parents");
    base = input_tensor(model, "base_relatives");
    inverse = input_tensor(model, "inverse_base_absolutes");
    bones = ng_size(parents);
    if (bones > MOST_BONES) ng_fail(NG_EVALUE, "ht: %lld bones", (long long)bones);
    if (*input_member(model, "is_mirrored") == 't') ng_fail(NG_EVALUE, "ht: a mirrored hand");
    if (ng_failed()) return;
    sort_bones(parents);
    int64_t *flex = held_index(&flexion, NG_SHAPE(bones)),
            *side = held_index(&spread, NG_SHAPE(bones));
    for (int64_t i = 0; flex && side && i < bones; i++) {
        const int64_t joint = i >= 2 && i < 22 ? (i - 2) % 4 : 3; /* 0, 1, 2, or none */
        const int64_t first = 6 + 4 * ((i - 2) / 4);
        flex[i] = joint == 3 ? THETA : joint ? first + joint + 1 : first;
        side[i] = joint ? THETA : first + 1;
    }
    if (!ng_failed()) read_kinds(parents, flex, side);
}

static ng_tensor *places, *slopes; /* (vertices, 3) (vertices, 3 THETA) */
static ng_tensor *weight, *of_us;  /* (corners, points); (points, 3, 2): the Jacobian for us */
static ng_tensor *jacobi;          /* the output */
static int64_t count, width;

static void prepare(const char *input)
{
    const char *data = input_member(input, "data"), *model = data ? input_member(data, "model") : 0;
    if (!model) {
        ng_fail(NG_EPARSE, "ht: no model in the input");
        return;
    }
    theta = input_tensor(input, "theta");
    points = input_tensor(data, "points");
    const char *given = input_member(input, "us");
    us = given && strncmp(given, "[]", 2) ? input_tensor(input, "us") : NULL;
    read_bones(model);
    if (ng_failed()) return;
    read_skin(model);
    read_vertices(data, model);
    if (ng_failed()) return;
    count = ng_dim(points, 0), width = THETA + (us ? 2 : 0);
    places = held_zeros(NG_F64, NG_SHAPE(ng_dim(skin, 0), 3));
    slopes = held_zeros(NG_F64, NG_SHAPE(ng_dim(skin, 0), 3 * THETA));
    weight = held_zeros(NG_F64, ng_shape_of(corner));
    of_us = held_zeros(NG_F64, NG_SHAPE(count, 3, 2));
    jacobi = held_zeros(NG_F64, NG_SHAPE(3 * count, width));
}

/* ---- The hand for rows of theta (k, THETA) --------------------------------------------------- */

static ng_tensor *angles(ng_tape *tape, ng_tensor *rows, ng_tensor *which)
{
    ng_tensor *turned = ng_pad(tape, ng_transpose(tape, rows, 0, 1), 0, 0, 1);
    ng_tensor *angle = ng_gather_rows(tape, turned, which); /* (bones, k) */
    return ng_reshape(tape, angle, NG_SHAPE(bones, -1, 1));
}

/* Rotations around z and x, as matrices (bones, k, 4, 4). */
static ng_tensor *joints(ng_tape *tape, ng_tensor *rows)
{
    enum { ONE, CZ, SZ, CX, SX, CZ_CX, CZ_SX, SZ_CX, SZ_SX, TERMS };
    ng_tensor *x = angles(tape, rows, flexion), *z = angles(tape, rows, spread);
    ng_tensor *cx = ng_cos(tape, x), *sx = ng_sin(tape, x);
    ng_tensor *cz = ng_cos(tape, z), *sz = ng_sin(tape, z);
    ng_tensor *term[TERMS] = {[ONE] = ng_full(tape, NG_F64, ng_shape_of(x), 1),
                              [CZ] = cz,
                              [SZ] = sz,
                              [CX] = cx,
                              [SX] = sx,
                              [CZ_CX] = ng_mul(tape, cz, cx),
                              [CZ_SX] = ng_mul(tape, cz, sx),
                              [SZ_CX] = ng_mul(tape, sz, cx),
                              [SZ_SX] = ng_mul(tape, sz, sx)};
    static const int element[16] = {CZ, SZ_CX, SZ_SX, -1, SZ, CZ_CX, CZ_SX, -1,
                                    -1, SX,    CX,    -1, -1, -1,    -1,    ONE};
    double put[TERMS * 16] = {0};
    for (int i = 0; i < 16; i++)
        if (element[i] >= 0) put[element[i] * 16 + i] = i == 1 || i == 6 ? -1 : 1;
    ng_tensor *put_in = ng_from(tape, NG_F64, NG_SHAPE(TERMS, 16), put, TERMS * 16);
    ng_tensor *all = ng_matmul(tape, ng_concat(tape, term, TERMS, 2), put_in);
    return ng_reshape(tape, all, NG_SHAPE(bones, -1, 4, 4));
}

/* The transposed rotation (k, 3, 3) by the angle |r| around r: cos + (1 - cos) n n^T - sin [n],
 * n = r / |r|. At r = 0, where |r| has no derivative, it is no rotation, as in the benchmark. */
static ng_tensor *rotation(ng_tape *tape, ng_tensor *rows)
{
    const double cross[27] = {[5] = -1, [7] = 1, [11] = 1, [15] = -1, [19] = -1, [21] = 1};
    ng_tensor *r = ng_slice(tape, rows, 1, 0, 3), *eye = ng_eye(tape, NG_F64, 3);
    ng_tensor *angle = ng_sqrt(tape, ng_sum_squares(tape, r, .axes = NG_AXES(1), .keepdim = true));
    if (!angle || ng_get(angle, 0) < 1e-4) return ng_reshape(tape, eye, NG_SHAPE(1, 3, 3));
    ng_tensor *n = ng_div(tape, r, angle), *column = ng_reshape(tape, n, NG_SHAPE(-1, 3, 1));
    ng_tensor *along = ng_matmul(tape, column, column, .transpose_b = true);
    ng_tensor *of_n = ng_from(tape, NG_F64, NG_SHAPE(3, 9), cross, 27);
    ng_tensor *around = ng_reshape(tape, ng_matmul(tape, n, of_n), NG_SHAPE(-1, 3, 3));
    angle = ng_reshape(tape, angle, NG_SHAPE(-1, 1, 1));
    ng_tensor *cosine = ng_cos(tape, angle), *rest = ng_sub(tape, eye, along);
    return ng_sub(tape, ng_add(tape, along, ng_mul(tape, rest, cosine)),
                  ng_mul(tape, around, ng_sin(tape, angle)));
}

/* By what `skin` is multiplied, (4 bones + 1, 3, k), so that vertices are where theta puts them. */
static ng_tensor *pose(ng_tape *tape, ng_tensor *rows)
{
    ng_tensor *own[MOST_BONES], *from = ng_reshape(tape, base, NG_SHAPE(bones, 1, 4, 4));
    ng_tensor *relative = ng_matmul(tape, from, joints(tape, rows));
    for (int64_t d = 0; d < levels; d++) {
        own[d] = ng_gather_rows(tape, relative, level[d]);
        if (d) own[d] = ng_matmul(tape, ng_gather_rows(tape, own[d - 1], above[d]), own[d]);
    }
    ng_tensor *absolute = ng_gather_rows(tape, ng_concat(tape, own, (int)levels, 0), order);
    ng_tensor *back = ng_reshape(tape, inverse, NG_SHAPE(bones, 1, 4, 4));
    ng_tensor *moved = ng_slice(tape, ng_matmul(tape, absolute, back), 2, 0, 3);
    moved = ng_permute(tape, moved, NG_AXES(1, 0, 3, 2)); /* (k, bones, 4, 3) */
    moved = ng_reshape(tape, moved, NG_SHAPE(-1, 4 * bones, 3));
    ng_tensor *turned = ng_matmul(tape, moved, rotation(tape, rows));
    ng_tensor *place = ng_reshape(tape, ng_slice(tape, rows, 1, 3, 6), NG_SHAPE(-1, 1, 3));
    ng_tensor *all = ng_concat(tape, NG_TENSORS(turned, place), 1);
    return ng_permute(tape, all, NG_AXES(1, 2, 0));
}

/* ---- The errors and their Jacobian ----------------------------------------------------------- */

/* Copies x to elements of `to`, and lets the tape go. */
static void keep(ng_tape *tape, ng_tensor *to, int64_t at, const ng_tensor *x)
{
    copy_elements(to, at, x);
    ng_tape_reset(tape);
}

/* The vertices (vertices, 3 k) of a pose (4 bones + 1, 3, k). */
static ng_tensor *skinned(ng_tape *tape, ng_tensor *x)
{
    return ng_matmul(tape, skin, ng_reshape(tape, x, NG_SHAPE(4 * bones + 1, -1)));
}

static void move_vertices(ng_tape *tape)
{
    ng_tensor *one = ng_reshape(tape, theta, NG_SHAPE(1, THETA));
    keep(tape, places, 0, skinned(tape, pose(tape, one)));
}

/* The weights of the corners (..., corners, points) for u (..., 2, points). */
static ng_tensor *weights(ng_tape *tape, ng_tensor *u)
{
    ng_tensor *sum = ng_sum(tape, u, .axes = NG_AXES(-2), .keepdim = true);
    return ng_concat(tape, NG_TENSORS(u, ng_scalar_sub(tape, 1, sum)), -2);
}

/* Where the hand is (..., 3, points), for weights of the corners. */
static ng_tensor *nearest(ng_tape *tape, ng_tensor *w)
{
    ng_tensor *at = ng_transpose(tape, ng_gather_rows(tape, places, corner), 1, 2);
    at = ng_mul(tape, at, ng_unsqueeze(tape, w, -2));
    return ng_sum(tape, at, .axes = NG_AXES(-3));
}

/* Those of us, or 1 for the one vertex. */
static ng_tensor *own_weights(ng_tape *tape)
{
    if (us) return weights(tape, ng_transpose(tape, us, 0, 1));
    return ng_full(tape, NG_F64, NG_SHAPE(1, count), 1);
}

static ng_tensor *objective(ng_tape *tape)
{
    move_vertices(tape);
    ng_tensor *hand = nearest(tape, own_weights(tape));
    ng_tensor *error = ng_sub(tape, points, ng_transpose(tape, hand, 0, 1));
    return ng_reshape(tape, error, NG_SHAPE(-1));
}

static void differentiate_for_us(ng_tape *tape)
{
    move_vertices(tape);
    ng_tensor *axis = ng_reshape(tape, ng_eye(tape, NG_F64, 2), NG_SHAPE(2, 2, 1));
    axis = ng_broadcast_to(tape, ng_neg(tape, axis), NG_SHAPE(2, 2, count));
    ng_tensor *u = ng_broadcast_to(tape, ng_transpose(tape, us, 0, 1), NG_SHAPE(2, 2, count));
    u = ng_variable(tape, u);
    ng_tensor *columns = ng_jvp(tape, nearest(tape, weights(tape, u)), &u, 1, &axis);
    keep(tape, of_us, 0, ng_permute(tape, columns, NG_AXES(2, 1, 0)));
}

static void jacobian(ng_tape *tape)
{
    if (us) differentiate_for_us(tape);
    keep(tape, weight, 0, own_weights(tape));
    ng_tensor *rows = ng_broadcast_to(tape, theta, NG_SHAPE(KINDS, THETA));
    rows = ng_variable(tape, rows);
    ng_tensor *slope = ng_jvp(tape, pose(tape, rows), &rows, 1, &axes);
    slope = ng_mul(tape, ng_matmul(tape, slope, axes), follows);
    keep(tape, slopes, 0, skinned(tape, slope));
    for (int64_t from = 0; from < count && !ng_failed(); from += BLOCK) {
        const int64_t to = from + BLOCK < count ? from + BLOCK : count;
        ng_tensor *at = ng_gather_rows(tape, slopes, ng_slice(tape, corner, 1, from, to));
        ng_tensor *w = ng_unsqueeze(tape, ng_slice(tape, weight, 1, from, to), 2);
        ng_tensor *s = ng_sum(tape, ng_mul(tape, at, w), .axes = NG_AXES(0));
        s = ng_reshape(tape, s, NG_SHAPE(-1, 3, THETA));
        if (us) s = ng_concat(tape, NG_TENSORS(rows_of(tape, of_us, from, to), s), 2);
        keep(tape, jacobi, 3 * from * width, s);
    }
    answer(NULL, jacobi);
}

const gradbench_eval eval_ht = {"objective", "jacobian", prepare, objective, jacobian};
