/* What each norm is invariant to: the published tables (Ba, Kiros & Hinton 2016, table 1; Zhang &
 * Sennrich 2019, table 1) are of y = norm(x w^T) for x (cases, in), w (out, in), with eps = 0. */
#include "norms/norm.h"

enum { CASES = 6, IN = 5, OUT = 8 };

static ng_tensor *full(int64_t count, double value)
{
    return own(ng_full_new(NG_F64, NG_SHAPE(count), value));
}

static ng_tensor *layer(ng_module *made, ng_tensor *x)
{
    return ng_forward(in_double(made), tape, x);
}

/* X(name, whether it is invariant to each of the changes below, a call): the first four are Ba et
 * al.'s and Zhang and Sennrich's, pRMSNorm is of the latter. */
#define NORMS(X)                                                                                   \
    X(BatchNorm, "101110",                                                                         \
      ng_batch_norm(tape, a, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .eps = NG_ZERO,                   \
                    .training = true))                                                             \
    X(WeightNorm, "101000",                                                                        \
      ng_matmul(tape, x, ng_weight_norm(tape, w, full(OUT, 1.5)), .transpose_b = true))            \
    X(LayerNorm, "110101", ng_layer_norm(tape, a, NG_NONE, NG_NONE, .eps = NG_ZERO))               \
    X(RMSNorm, "100101", ng_rms_norm(tape, a, NG_NONE, .eps = NG_ZERO))                            \
    X(pRMSNorm, "100101",                                                                          \
      ng_row_norm(tape, a, NG_NONE, NG_NONE, .eps = NG_ZERO, .rms = true, .partial = 0.5))         \
    X(ScaleNorm, "100101", ng_scale_norm(tape, a, full(1, 2), .eps = NG_ZERO))                     \
    X(DetachNorm, "110101", ng_detach_norm(tape, a, .eps = NG_ZERO))                               \
    X(GroupNorm, "110101", ng_group_norm(tape, a, NG_NONE, NG_NONE, .groups = 2, .eps = NG_ZERO))  \
    X(GhostBatchNorm, "101110", layer(ng_batch_norm_new(OUT, .ghost = 3, .eps = NG_ZERO), a))      \
    X(BatchRenorm, "101110", /* r = 1, d = 0 */                                                    \
      layer(ng_batch_renorm_new(OUT, .r_max = 1, .d_max = NG_ZERO, .eps = NG_ZERO), a))            \
    X(DynamicTanh, "000000", layer(ng_dynamic_tanh_new(OUT), a))                                   \
    X(Derf, "000000", layer(ng_derf_new(OUT), a))                                                  \
    X(BHyT, "100101", layer(ng_bhyt_new(OUT, .eps = NG_ZERO), a))                                  \
    X(SeeDNorm, "100101", layer(ng_seed_norm_new(OUT, .eps = NG_ZERO), a)) /* beta is 0 */         \
    X(PolyNorm, "100101", layer(ng_poly_norm_new(OUT, .eps = NG_ZERO), a))                         \
    X(SimpleNorm, "100101", layer(ng_rms_norm_new(OUT, .by_deviation = true, .eps = NG_ZERO), a))  \
    X(L2Norm, "100101", layer(ng_l2_norm_new(OUT, .eps = NG_ZERO), a))                             \
    X(Nothing, "000000", a)

/* a = x w^T */
#define X(name, invariant, ...)                                                                    \
    static ng_tensor *of_##name(ng_tensor *x, ng_tensor *w)                                        \
    {                                                                                              \
        ng_tensor *a = ng_matmul(tape, x, w, .transpose_b = true);                                 \
        return (void)a, __VA_ARGS__;                                                               \
    }
NORMS(X)
#undef X

static const struct {
    const char *name, *invariant;
    ng_tensor *(*output)(ng_tensor *x, ng_tensor *w);
} norms[] = {
#define X(name, invariant, ...) {#name, invariant, of_##name},
    NORMS(X)
#undef X
};
enum { N_NORMS = sizeof norms / sizeof norms[0] };

/* The matrix or the data as a whole, or only row 2, scaled by 1.7; or one vector added to each row:
 * w' = w + 1 shift^T. */
static const struct {
    const char *name;
    bool data, shifted;
    int64_t first, last;
} changes[] = {
    {"re-scaling of the weight matrix", false, false, 0, OUT},
    {"re-centring of the weight matrix", false, true, 0, OUT},
    {"re-scaling of a weight vector", false, false, 2, 3},
    {"re-scaling of the dataset", true, false, 0, CASES},
    {"re-centring of the dataset", true, true, 0, CASES},
    {"re-scaling of a single case", true, false, 2, 3},
};

START_TEST(invariances_are_as_published)
{
    ng_tensor *in[] = {normal(NG_F64, NG_SHAPE(CASES, IN), 1),
                       normal(NG_F64, NG_SHAPE(OUT, IN), 2)};
    ng_tensor *y = norms[_i].output(in[0], in[1]);
    for (int how = 0; how < 6; how++) {
        const int which = changes[how].data ? 0 : 1;
        ng_tensor *other[] = {in[0], in[1]};
        other[which] = own(ng_copy_new(in[which], NG_F64));
        for (int64_t i = changes[how].first * IN; i < changes[how].last * IN; i++)
            ng_set(other[which], i,
                   changes[how].shifted
                       ? ng_get(other[which], i) + 0.7 * cos(1.0 + (double)(i % IN))
                       : 1.7 * ng_get(other[which], i));
        ng_tensor *moved = ng_sub(tape, y, norms[_i].output(other[0], other[1]));
        const double off = ng_item(ng_max(tape, ng_abs(tape, moved)));
        const bool invariant = norms[_i].invariant[how] == '1';
        ck_assert_msg(invariant ? off < 1e-10 : off > 1e-3,
                      "%s under %s: outputs differ by %g, expected %s", norms[_i].name,
                      changes[how].name, off, invariant ? "0" : "a difference");
    }
}

/* ---- Floats over their whole range ----------------------------------------------------------- */

enum { BATCH_ROWS, BATCH_IMAGES, LAYER, RMS, GROUP, RANGE_NORMS };

static ng_tensor *norm_of(int norm, ng_tensor *x)
{
    switch (norm) {
    case LAYER: return ng_layer_norm(tape, x, NG_NONE, NG_NONE, .eps = NG_ZERO);
    case RMS: return ng_rms_norm(tape, x, NG_NONE, .eps = NG_ZERO);
    case GROUP: return ng_group_norm(tape, x, NG_NONE, NG_NONE, .groups = 2, .eps = NG_ZERO);
    default:
        return ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .eps = NG_ZERO,
                             .training = true);
    }
}

/* x 2^exponent has the y of x, and 2^-exponent times its dx: also where 1 / deviation is beyond the
 * largest float. Subnormal x are exact, because x has whole numbers. */
START_TEST(a_power_of_two_changes_nothing_over_the_range_of_floats)
{
    static const int exponents[] = {-145, -130, -120, -100, -60, 60, 100, 120};
    const int norm = _i / 8, exponent = exponents[_i % 8];
    const ng_shape shape = norm == BATCH_IMAGES ? NG_SHAPE(5, 8, 7) : NG_SHAPE(35, 8);
    ng_tensor *x = normal(NG_F32, shape, 1), *dy = normal(NG_F32, shape, 2);
    for (int64_t i = 0; i < ng_size(x); i++) ng_set(x, i, round(4 * ng_get(x, i)));
    ng_tensor *scaled = own(ng_copy_new(x, NG_F32));
    for (int64_t i = 0; i < ng_size(x); i++) ng_set(scaled, i, ldexp(ng_get(x, i), exponent));
    ng_require_grad(x), ng_require_grad(scaled);
    ng_tensor *y = norm_of(norm, x), *other = norm_of(norm, scaled);
    for (int64_t i = 0; i < ng_size(x); i++)
        ck_assert_double_eq_tol(ng_get(other, i), ng_get(y, i), 2e-6);
    if (exponent < -120) return; /* dx is beyond the largest float */
    ng_tensor *dx = ng_gradient(tape, y, x, .cotangent = dy);
    ng_tensor *other_dx = ng_gradient(tape, other, scaled, .cotangent = dy);
    for (int64_t i = 0; i < ng_size(x); i++)
        ck_assert_double_eq_tol(ldexp(ng_get(other_dx, i), exponent), ng_get(dx, i), 2e-6);
}

Suite *invariances_suite(void)
{
    Suite *suite = suite_create("invariances");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_loops(tests, N_NORMS, invariances_are_as_published);
    add_loops(tests, 8 * RANGE_NORMS, a_power_of_two_changes_nothing_over_the_range_of_floats);
    return suite;
}
