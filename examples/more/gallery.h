/* Reported errors of norms in other libraries, each rebuilt as a small op with the same fault. The
 * formulas are ours; what is wrong with each is what its report says. */
#ifndef EXAMPLES_GALLERY_H
#define EXAMPLES_GALLERY_H

#include <normgrad.h>

#define GALLERY_EPS 1e-5

/* ---- A norm in ops --------------------------------------------------------------------------- */

/* What the statistics are over: the last axis, all others, all but the first. */
typedef enum { GALLERY_ROW, GALLERY_BATCH, GALLERY_SAMPLE } gallery_over;

typedef struct {
    ng_tensor *xhat, *rstd;
} gallery_norm;

static ng_tensor *gallery_mean(ng_tape *tape, ng_tensor *x, gallery_over over)
{
    const int rank = ng_rank(x), first = over == GALLERY_ROW ? rank - 1 : over == GALLERY_SAMPLE;
    ng_axes axes = {.count = (over == GALLERY_BATCH ? rank - 1 : rank) - first};
    for (int i = 0; i < axes.count; i++) axes.axis[i] = first + i;
    return ng_mean(tape, x, .axes = axes, .keepdim = true);
}

static gallery_norm gallery_normalize(ng_tape *tape, ng_tensor *x, gallery_over over)
{
    ng_tensor *off = ng_sub(tape, x, gallery_mean(tape, x, over));
    ng_tensor *var = gallery_mean(tape, ng_square(tape, off), over);
    ng_tensor *rstd = ng_rsqrt(tape, ng_add_scalar(tape, var, GALLERY_EPS));
    return (gallery_norm){ng_mul(tape, off, rstd), rstd};
}

/* g - mean(g) - xhat mean(g xhat), which times rstd is the gradient of xhat. */
static ng_tensor *gallery_pass(ng_tape *tape, gallery_norm n, ng_tensor *g, gallery_over over)
{
    ng_tensor *along = gallery_mean(tape, ng_mul(tape, g, n.xhat), over);
    ng_tensor *centered = ng_sub(tape, g, gallery_mean(tape, g, over));
    return ng_sub(tape, centered, ng_mul(tape, n.xhat, along));
}

static ng_tensor *gallery_dx(ng_tape *tape, gallery_norm n, ng_tensor *g, gallery_over over)
{
    return ng_mul(tape, n.rstd, gallery_pass(tape, n, g, over));
}

/* The gradient of y = xhat gamma with respect to gamma. */
static ng_tensor *gallery_dgamma(ng_tape *tape, const ng_node *node, ng_tensor *xhat, ng_tensor *dy)
{
    return ng_sum_to(tape, ng_mul(tape, dy, xhat), ng_shape_of(node->inputs[1]));
}

/* x has gamma's features; a batch norm has two rows at least. */
static bool gallery_accepts(ng_tensor *const *in, gallery_over over)
{
    const int64_t n = ng_dim(in[0], -1), rows = n > 0 ? ng_size(in[0]) / n : 0;
    if (n == ng_dim(in[1], -1) && (over != GALLERY_BATCH || rows > 1)) return true;
    ng_fail(NG_ESHAPE, "gallery: x has %lld rows of %lld features, expected %lld features",
            (long long)rows, (long long)n, (long long)ng_dim(in[1], -1));
    return false;
}

/* Records the op for a result that was computed without recording. What the op saves are constants
 * to whoever differentiates its gradient. */
static ng_tensor *gallery_record(ng_tape *tape, const ng_op *op, ng_tensor *const *in,
                                 gallery_over over)
{
    if (!gallery_accepts(in, over)) return NULL;
    const bool was = ng_tape_set_recording(tape, false);
    const gallery_norm saved = gallery_normalize(tape, in[0], over);
    ng_tensor *y = ng_mul(tape, saved.xhat, in[1]);
    ng_tape_set_recording(tape, was);
    return ng_record(tape, op, y, in, 2, &saved, sizeof saved);
}

/* An op CALLED of x and gamma over ROW, BATCH or SAMPLE with the gradient rule that follows, in
 * which `n` is its xhat and rstd, `g` is gamma dy, and dx[1] is right already. */
#define GALLERY_OP(called, over)                                                                   \
    static void called##_rule(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx,   \
                              gallery_norm n, ng_tensor *g);                                       \
    static void called##_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy,               \
                                  ng_tensor **dx)                                                  \
    {                                                                                              \
        const gallery_norm n = gallery_normalize(tape, node->inputs[0], over);                     \
        dx[1] = gallery_dgamma(tape, node, n.xhat, dy);                                            \
        called##_rule(tape, node, dy, dx, n, ng_mul(tape, dy, node->inputs[1]));                   \
    }                                                                                              \
    static ng_tensor *called(ng_tape *tape, ng_tensor *const *in, void *context)                   \
    {                                                                                              \
        static const ng_op op = {.name = #called, .gradient = called##_gradient};                  \
        (void)context;                                                                             \
        return gallery_record(tape, &op, in, over);                                                \
    }                                                                                              \
    static void called##_rule(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx,   \
                              gallery_norm n, ng_tensor *g)

/* ---- Wrong gradients ------------------------------------------------------------------------- */

GALLERY_OP(no_gradient, GALLERY_ROW)
{
    (void)tape, (void)node, (void)dy, (void)n, (void)g;
    dx[0] = dx[1] = NG_NONE;
}

GALLERY_OP(constant_statistics, GALLERY_BATCH)
{
    (void)node, (void)dy;
    dx[0] = ng_mul(tape, n.rstd, g);
}

GALLERY_OP(rstd_taken_for_variance, GALLERY_BATCH)
{
    (void)node, (void)dy;
    ng_tensor *rstd = ng_rsqrt(tape, ng_add_scalar(tape, n.rstd, GALLERY_EPS));
    n.xhat = ng_mul(tape, ng_div(tape, n.xhat, n.rstd), rstd), n.rstd = rstd;
    dx[0] = gallery_dx(tape, n, g, GALLERY_BATCH);
}

GALLERY_OP(gamma_left_out, GALLERY_SAMPLE)
{
    (void)node, (void)g;
    dx[0] = gallery_dx(tape, n, dy, GALLERY_SAMPLE);
}

/* One formula computes the gradient, another one a gradient that is recorded. */
GALLERY_OP(other_formula_recorded, GALLERY_ROW)
{
    (void)node;
    const bool recording = ng_tape_set_recording(tape, true);
    ng_tape_set_recording(tape, recording);
    ng_tensor *along = gallery_mean(tape, ng_mul(tape, dy, n.xhat), GALLERY_ROW);
    ng_tensor *centered = ng_sub(tape, g, gallery_mean(tape, g, GALLERY_ROW));
    ng_tensor *wrong = ng_sub(tape, centered, ng_mul(tape, n.xhat, along));
    dx[0] = recording ? ng_mul(tape, n.rstd, wrong) : gallery_dx(tape, n, g, GALLERY_ROW);
}

/* The rows of x (N, T, n) are taken to be N rows of T n numbers. */
GALLERY_OP(rank_two_assumed, GALLERY_ROW)
{
    (void)dy;
    n = gallery_normalize(tape, node->inputs[0], GALLERY_SAMPLE);
    dx[0] = gallery_dx(tape, n, g, GALLERY_SAMPLE);
}

GALLERY_OP(saved_statistics, GALLERY_ROW)
{
    (void)dy;
    n = *(const gallery_norm *)node->attributes;
    dx[0] = gallery_dx(tape, n, g, GALLERY_ROW);
}

/* Evaluation, whose gradient is training's. */
static void evaluation_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const gallery_norm n = gallery_normalize(tape, node->inputs[0], GALLERY_BATCH);
    dx[0] = gallery_dx(tape, n, ng_mul(tape, dy, node->inputs[1]), GALLERY_BATCH);
    dx[1] = gallery_dgamma(tape, node, n.xhat, dy);
}

static ng_tensor *training_formula_in_evaluation(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "evaluation", .gradient = evaluation_gradient};
    (void)context;
    if (!gallery_accepts(in, GALLERY_BATCH)) return NULL;
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *xhat = ng_mul_scalar(tape, ng_add_scalar(tape, in[0], -0.3), 0.8);
    ng_tensor *y = ng_mul(tape, xhat, in[1]);
    ng_tape_set_recording(tape, was);
    return ng_record(tape, &op, y, in, 2, NULL, 0);
}

/* GroupNorm of x (..., C) with two groups. In dgamma channel c is taken to be of group c % 2. */
static gallery_norm groups_of(ng_tape *tape, ng_tensor *x)
{
    const int64_t channels = ng_dim(x, -1), rows = ng_size(x) / channels;
    const gallery_norm n =
        gallery_normalize(tape, ng_reshape(tape, x, NG_SHAPE(rows, 2, channels / 2)), GALLERY_ROW);
    return (gallery_norm){ng_reshape(tape, n.xhat, ng_shape_of(x)), n.rstd};
}

static void other_group_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0], *g = ng_mul(tape, dy, node->inputs[1]);
    const int64_t channels = ng_dim(x, -1), rows = ng_size(x) / channels;
    const ng_shape grouped = NG_SHAPE(rows, 2, channels / 2),
                   turned = NG_SHAPE(rows, channels / 2, 2);
    gallery_norm n = gallery_normalize(tape, ng_reshape(tape, x, grouped), GALLERY_ROW);
    ng_tensor *gx = gallery_dx(tape, n, ng_reshape(tape, g, grouped), GALLERY_ROW);
    dx[0] = ng_reshape(tape, gx, ng_shape_of(x));
    ng_tensor *mean = gallery_mean(tape, ng_reshape(tape, x, grouped), GALLERY_ROW);
    mean = ng_reshape(tape, mean, NG_SHAPE(rows, 1, 2));
    ng_tensor *off = ng_sub(tape, ng_reshape(tape, x, turned), mean);
    ng_tensor *xhat = ng_mul(tape, off, ng_reshape(tape, n.rstd, NG_SHAPE(rows, 1, 2)));
    dx[1] = gallery_dgamma(tape, node, ng_reshape(tape, xhat, ng_shape_of(x)), dy);
}

static ng_tensor *statistics_of_another_group(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "group", .gradient = other_group_gradient};
    (void)context;
    if (!gallery_accepts(in, GALLERY_ROW)) return NULL;
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *y = ng_mul(tape, groups_of(tape, in[0]).xhat, in[1]);
    ng_tape_set_recording(tape, was);
    return ng_record(tape, &op, y, in, 2, NULL, 0);
}

/* ---- Wrong from the third order on ----------------------------------------------------------- */

/* The gradient of the gradient dx = rstd pass(g), right if its statistics were those of x: they are
 * saved numbers, so that its own gradient lacks what they depend on. */
typedef struct {
    gallery_norm n;
    gallery_over over;
} gallery_saved;

static void second_gradient(ng_tape *tape, const ng_node *node, ng_tensor *v, ng_tensor **dx)
{
    const gallery_saved *s = node->attributes;
    ng_tensor *g = node->inputs[1], *xhat = s->n.xhat;
    ng_tensor *vx = gallery_mean(tape, ng_mul(tape, v, xhat), s->over);
    ng_tensor *gx = gallery_mean(tape, ng_mul(tape, g, xhat), s->over);
    ng_tensor *means = ng_mul(tape, gallery_mean(tape, v, s->over), gallery_mean(tape, g, s->over));
    ng_tensor *both = ng_sub(tape, gallery_mean(tape, ng_mul(tape, v, g), s->over), means);
    both = ng_sub(tape, both, ng_mul(tape, vx, gx));
    ng_tensor *w = ng_add(tape, ng_mul(tape, gx, v), ng_mul(tape, vx, g));
    w = ng_add(tape, ng_mul(tape, xhat, both), gallery_pass(tape, s->n, w, s->over));
    dx[0] = ng_neg(tape, ng_mul(tape, ng_square(tape, s->n.rstd), w));
    dx[1] = gallery_dx(tape, s->n, v, s->over);
}

static ng_tensor *recorded_dx(ng_tape *tape, ng_tensor *x, ng_tensor *g, gallery_over over)
{
    static const ng_op op = {.name = "norm_dx", .gradient = second_gradient};
    const bool was = ng_tape_set_recording(tape, false);
    const gallery_saved saved = {gallery_normalize(tape, x, over), over};
    ng_tensor *y = gallery_dx(tape, saved.n, g, over);
    ng_tape_set_recording(tape, was);
    return ng_record(tape, &op, y, (ng_tensor *const[]){x, g}, 2, &saved, sizeof saved);
}

GALLERY_OP(layer_norm_saved, GALLERY_ROW)
{
    (void)dy, (void)n;
    dx[0] = recorded_dx(tape, node->inputs[0], g, GALLERY_ROW);
}

GALLERY_OP(batch_norm_saved, GALLERY_BATCH)
{
    (void)dy, (void)n;
    dx[0] = recorded_dx(tape, node->inputs[0], g, GALLERY_BATCH);
}

/* ---- Right gradients of wrong results -------------------------------------------------------- */

/* A condition (N, n), aligned from the right with x (N, T, n): that of sample i goes to position i
 * where N = T. */
static ng_tensor *condition_of_positions(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    if (!gallery_accepts(in, GALLERY_ROW)) return NULL;
    ng_tensor *scale = ng_add_scalar(tape, in[1], 1);
    return ng_mul(tape, gallery_normalize(tape, in[0], GALLERY_ROW).xhat, scale);
}

/* RMSNorm that sums in blocks, of 8 elements if there are more than two rows. */
static ng_tensor *order_of_the_batch(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    if (!gallery_accepts(in, GALLERY_ROW)) return NULL;
    const int64_t n = ng_dim(in[0], -1), block = ng_size(in[0]) > 2 * n ? 8 : n;
    ng_tensor *squares = ng_square(tape, in[0]), *sum = NULL;
    for (int64_t i = 0; i < n; i += block) {
        ng_tensor *part = ng_slice(tape, squares, -1, i, i + block < n ? i + block : n);
        part = ng_sum(tape, part, .axes = NG_AXES(-1), .keepdim = true);
        sum = i == 0 ? part : ng_add(tape, sum, part);
    }
    ng_tensor *square = ng_add_scalar(tape, ng_mul_scalar(tape, sum, 1 / (double)n), GALLERY_EPS);
    return ng_mul(tape, ng_mul(tape, in[0], ng_rsqrt(tape, square)), in[1]);
}

/* The variance is E[x^2] - E[x]^2. */
static ng_tensor *difference_of_squares(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    if (!gallery_accepts(in, GALLERY_ROW)) return NULL;
    ng_tensor *mean = gallery_mean(tape, in[0], GALLERY_ROW);
    ng_tensor *square = gallery_mean(tape, ng_square(tape, in[0]), GALLERY_ROW);
    ng_tensor *var = ng_sub(tape, square, ng_square(tape, mean));
    ng_tensor *rstd = ng_rsqrt(tape, ng_add_scalar(tape, var, GALLERY_EPS));
    return ng_mul(tape, ng_mul(tape, ng_sub(tape, in[0], mean), rstd), in[1]);
}

/* BatchNorm of a padded batch: the statistics are those of all rows, also of the last, which is
 * padding. */
static ng_tensor *padding_counts(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    if (!gallery_accepts(in, GALLERY_BATCH)) return NULL;
    const int64_t rows = ng_dim(in[0], 0);
    ng_tensor *y = ng_mul(tape, gallery_normalize(tape, in[0], GALLERY_BATCH).xhat, in[1]);
    return rows > 1 ? ng_slice(tape, y, 0, 0, rows - 1) : y;
}

/* ---- The gallery ----------------------------------------------------------------------------- */

/* The checks, from the one that sees least. An order includes those below it. */
typedef enum {
    GALLERY_GAMMA_1, /* the gradient, at a gamma of ones */
    GALLERY_ORDER_1,
    GALLERY_ORDER_2,
    GALLERY_ORDER_3,
    GALLERY_INDEPENDENT,
    GALLERY_SHAPES,
    GALLERY_CHECKS
} gallery_check;

/* `found` has an x for each check that finds the fault, a dot for one that does not, and a minus
 * where the check does not apply: rows of a batch norm depend on each other. */
typedef struct {
    const char *report, *fault;
    ng_check_call *call;
    const char *found;
    bool batch;
    int64_t rows, features; /* of x */
} gallery_bug;

static const gallery_bug gallery[] = {
    {"huggingface/candle 3613", "a fused LayerNorm gives no gradient", no_gradient, "xxxxxx", false,
     3, 4},
    {"facebookresearch/CrypTen 143", "BatchNorm's statistics are constants in its gradient",
     constant_statistics, "xxxx-x", true, 3, 4},
    {"pytorch/xla 913", "the gradient of evaluation is training's", training_formula_in_evaluation,
     "xxxx-x", true, 3, 4},
    {"flagos-ai/FlagGems 5222", "the saved 1 / deviation is taken for a variance",
     rstd_taken_for_variance, "xxxx-x", true, 3, 4},
    {"tenstorrent/tt-metal 56202", "dgamma has the statistics of another group",
     statistics_of_another_group, "xxxxxx", false, 3, 4},
    {"uxlfoundation/oneDNN 3543", "GroupNorm's dx is wrong unless gamma is 1", gamma_left_out,
     ".xxxxx", false, 3, 4},
    {"pytorch/pytorch 41595", "a recorded gradient of LayerNorm lacks a gamma",
     other_formula_recorded, "..xx..", false, 3, 4},
    {"pytorch/pytorch 76185", "what a gradient saved is constant in its own gradient",
     saved_statistics, "..xx..", false, 3, 4},
    {"pytorch/pytorch 175754", "LayerNorm's second gradient saved its statistics", layer_norm_saved,
     "...x..", false, 3, 4},
    {"pytorch/pytorch 186256", "BatchNorm's second gradient saved its statistics", batch_norm_saved,
     "...x-.", true, 3, 4},
    {"flagos-ai/FlagGems 5392", "the gradient takes any x for a matrix", rank_two_assumed, ".....x",
     false, 3, 4},
    {"vllm-project/vllm 48271", "the order of a sum depends on the number of rows",
     order_of_the_batch, "....x.", false, 8, 61},
    {"normgrad before 0.5", "a condition of samples goes to positions", condition_of_positions,
     "....x.", false, 3, 4},
    {"tracel-ai/burn 5607", "the variance is E[x^2] - E[x]^2", difference_of_squares, "......",
     false, 3, 4},
    {"pytorch/pytorch 70529", "padding counts in BatchNorm's statistics", padding_counts, "....-.",
     true, 3, 4},
};
enum { GALLERY_BUGS = sizeof gallery / sizeof *gallery };

/* Runs a check. x is (rows, n), or (rows, rows, n) if a condition (rows, n) is in gamma's place. */
static ng_check_report gallery_run(const gallery_bug *bug, gallery_check check)
{
    const bool condition = bug->call == condition_of_positions;
    const int64_t rows = bug->rows, n = bug->features;
    ng_rng rng = ng_rng_seeded(4);
    ng_tensor *x =
        ng_normal_new(NG_F64, condition ? NG_SHAPE(rows, rows, n) : NG_SHAPE(rows, n), 1, 2, &rng);
    ng_tensor *gamma =
        ng_normal_new(NG_F64, condition ? NG_SHAPE(rows, n) : NG_SHAPE(n), 1, 0.5, &rng);
    for (int64_t i = 0; i < ng_size(gamma) && check == GALLERY_GAMMA_1; i++) ng_set(gamma, i, 1);
    const int order = check == GALLERY_ORDER_2 ? 2 : check == GALLERY_ORDER_3 ? 3 : 1;
    const ng_check_report report = ng_check_function(
        bug->call, NG_TENSORS(x, gamma), .names = NG_NAMES("x", condition ? "condition" : "gamma"),
        .order = order, .independent = check == GALLERY_INDEPENDENT,
        .shapes = check == GALLERY_SHAPES);
    ng_tensor_free(x), ng_tensor_free(gamma);
    return report;
}

/* 'x' where a check finds the fault, '.' where not, '-' where it does not apply. */
static char gallery_verdict(const gallery_bug *bug, gallery_check check)
{
    if (check == GALLERY_INDEPENDENT && bug->batch) return '-';
    return gallery_run(bug, check).passed ? '.' : 'x';
}

#endif
