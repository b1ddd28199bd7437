/* Functions as PyTorch's users expect them: its values and gradients of both orders; edge cases. */
#include "fixture.h"
#include "golden.h"
#include "support.h"

/* ---- Against PyTorch ----------------------------------------------------------------------- */

#define TOLERANCE 1e-11

typedef struct row row;
struct row {
    const char *name;
    ng_tensor *(*call)(ng_tensor *const *in, const row *self);
    int inputs; /* that have gradients */
    ng_reduction reduction;
};

static ng_tensor *as_labels(ng_tensor *x) { return ng_cast(tape, x, NG_I64); }

/* X(name of the figures, operands with gradients, a call), at each of the three reductions */
#define LOSSES(X)                                                                                  \
    X(soft, 2, ng_cross_entropy(tape, in[0], in[1], .reduction = how))                             \
    X(soft_all, 2,                                                                                 \
      ng_cross_entropy(tape, in[0], in[1], .reduction = how, .smoothing = 0.2,                     \
                       .channels_first = true, .weights = in[2]))                                  \
    X(first, 1,                                                                                    \
      ng_cross_entropy(tape, in[0], as_labels(in[1]), .reduction = how, .ignore = true,            \
                       .ignored = 3, .channels_first = true))                                      \
    X(first_all, 1,                                                                                \
      ng_cross_entropy(tape, in[0], as_labels(in[1]), .reduction = how, .smoothing = 0.1,          \
                       .ignore = true, .ignored = 1, .channels_first = true, .weights = in[2]))    \
    X(nll_first, 1,                                                                                \
      ng_nll(tape, in[0], as_labels(in[1]), .reduction = how, .ignore = true,                      \
             .channels_first = true, .weights = in[2]))                                            \
    X(bce, 2,                                                                                      \
      ng_binary_cross_entropy(tape, in[0], in[1], .reduction = how, .weights = in[2],              \
                              .positive_weights = in[3]))

#define CALL(name, inputs, ...)                                                                    \
    static ng_tensor *call_##name(ng_tensor *const *in, const row *self)                           \
    {                                                                                              \
        const ng_reduction how = self->reduction;                                                  \
        return (void)how, __VA_ARGS__;                                                             \
    }
LOSSES(CALL)

#define LOSS(name, inputs, ...)                                                                    \
    {#name "_mean", call_##name, inputs, NG_MEAN}, {#name "_sum", call_##name, inputs, NG_SUM},    \
        {#name "_none", call_##name, inputs, NG_EACH},
static const row rows[] = {LOSSES(LOSS)};
enum { N_ROWS = sizeof rows / sizeof rows[0], MOST_INPUTS = 4 };

GOLDEN_FIXTURE("tests/golden/torch.txt")

static ng_tensor *figure(const row *r, char what, int i)
{
    char name[80];
    snprintf(name, sizeof name, "%s/%c%d", r->name, what, i);
    return golden_find(name);
}

#define expect_figure(r, what, i, x) assert_golden(x, TOLERANCE, "%s/%c%d", (r)->name, what, i)

/* A row without directions v0... has gradients of the first order only. */
LOOP_TEST(values_and_gradients_are_pytorchs, N_ROWS)
{
    const row *r = &rows[_i];
    const bool twice = figure(r, 'v', 0);
    ng_tensor *in[MOST_INPUTS], *g[MOST_INPUTS], *h[MOST_INPUTS];
    for (int i = 0; i < MOST_INPUTS; i++) {
        in[i] = figure(r, 'x', i);
        if (i < r->inputs) in[i] = ng_require_grad(own(ng_copy_new(in[i], NG_F64)));
    }
    ng_tensor *y = r->call(in, r), *dy = golden("%s/dy", r->name);
    assert_ok(y);
    assert_golden(y, TOLERANCE, "%s/y", r->name);
    assert_ok(ng_gradients(tape, &y, 1, in, r->inputs, g, .cotangents = &dy, .record = twice));
    ng_tensor *along = ng_full(tape, NG_F64, NG_SCALAR, 0);
    for (int i = 0; i < r->inputs; i++) {
        expect_figure(r, 'g', i, g[i]);
        if (twice) along = ng_add(tape, along, ng_dot(tape, g[i], figure(r, 'v', i)));
    }
    if (!twice) return;
    assert_ok(ng_gradients(tape, &along, 1, in, r->inputs, h, .allow_unused = true));
    for (int i = 0; i < r->inputs; i++) expect_figure(r, 'h', i, h[i]);
}

TEST(every_figure_has_a_row) { golden_expect_rows(rows, N_ROWS, sizeof *rows, NULL); }

/* ---- Losses -------------------------------------------------------------------------------- */

FIXTURE(set_up, tear_down)

static ng_tensor *zeros(ng_dtype dtype, ng_shape shape) { return ng_full(tape, dtype, shape, 0); }

TEST(a_class_of_probability_zero_may_be_ruled_out)
{
    ng_tensor *x = ng_from(tape, NG_F64, NG_SHAPE(1, 3), NG_VALUES(0, -(double)INFINITY, 0));
    ng_tensor *t = ng_from(tape, NG_F64, NG_SHAPE(1, 3), NG_VALUES(0.5, 0, 0.5));
    assert_near(ng_item(ng_cross_entropy(tape, x, t)), log(2), 1e-15);
}

TEST(losses_refuse_what_does_not_fit)
{
    ng_tensor *x = zeros(NG_F32, NG_SHAPE(2, 3)), *rows_of = zeros(NG_F32, NG_SHAPE(2)),
              *wide = zeros(NG_F64, NG_SHAPE(2, 3)),
              *two = ng_full(tape, NG_F32, NG_SHAPE(2, 3), 2);
    assert_fails(
        ng_cross_entropy(tape, x, rows_of), NG_EDTYPE,
        "ng_cross_entropy: labels is float32 (2,), expected int64, or probabilities of the "
        "logits' shape");
    assert_fails(ng_cross_entropy(tape, x, wide), NG_EDTYPE, "ng_cross_entropy");
    assert_refused(ng_cross_entropy(tape, x, x, .ignore = true),
                   "ng_cross_entropy: .ignore is set, which has an effect only with int64 labels");
    assert_refused(ng_cross_entropy(tape, x, two), "target 2 at [0], expected 0 to 1");
    ng_tensor *labels = zeros(NG_I64, NG_SHAPE(2));
    assert_fails(
        ng_cross_entropy(tape, zeros(NG_F32, NG_SHAPE(2, 3, 4)), labels, .channels_first = true),
        NG_ESHAPE, "labels is (2,) and x (2, 4, 3)");
    assert_fails(ng_binary_cross_entropy(tape, x, x, .weights = rows_of), NG_ESHAPE,
                 "ng_binary_cross_entropy: weights is float32 (2,), expected float32 of a shape "
                 "that broadcasts to (2, 3)");
    assert_fails(ng_binary_cross_entropy(tape, x, x, .positive_weights = wide), NG_EDTYPE,
                 "positive_weights is float64 (2, 3)");
}
