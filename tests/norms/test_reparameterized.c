/* What WeightNorm, WeightStandardization and SpectralNorm share: any module with a weight, tied and
 * extreme weights; a network of them that several threads read. */
#include "norms/norm.h"
#include <pthread.h>

/* The largest singular value of a matrix, by power iteration. */
static double spectral_norm_of(ng_tensor *w)
{
    ng_tensor *w64 = ng_cast(tape, ng_detach(tape, w), NG_F64);
    ng_tensor *v = ng_tape_own(tape, ng_ones_new(NG_F64, NG_SHAPE(ng_dim(w, 1))));
    double length = 0;
    ng_set(v, 0, 0.3);
    for (int step = 0; step < 500; step++) {
        v = ng_matmul(tape, ng_matmul(tape, w64, v), w64);
        length = ng_item(ng_norm(tape, v));
        v = ng_mul_scalar(tape, v, ng_exactly(1 / length));
    }
    return sqrt(length);
}

/* The weight that a layer around a Linear without bias uses: its output for the unit matrix. */
static ng_tensor *weight_in_use(ng_module *layer, ng_dtype dtype, int64_t in)
{
    return ng_forward(layer, tape, ng_eye(tape, dtype, in));
}

/* ---- A layer of one's own -------------------------------------------------------------------- */

typedef struct {
    ng_module base;
    ng_tensor *weight;
} doubled;

static ng_tensor *doubled_forward(ng_module *self, ng_tape *on, ng_tensor *x)
{
    ng_tensor *weight = ng_parameter_value(on, ((const doubled *)self)->weight);
    return ng_matmul(on, ng_mul_scalar(on, x, 2), weight);
}

static void doubled_init(ng_module *self, ng_rng *rng)
{
    ng_fill_normal(((doubled *)self)->weight, 0, 1, rng);
}

static const ng_module_class doubled_class = {
    .name = "Doubled", .size = sizeof(doubled), .forward = doubled_forward, .init = doubled_init};

static ng_module *doubled_new(ng_shape shape)
{
    doubled *layer = (doubled *)ng_module_new(&doubled_class);
    layer->weight = ng_module_add_parameter(&layer->base, "weight", shape);
    return ng_module_built(&layer->base);
}

START_TEST(any_module_with_a_weight_will_do)
{
    ng_module *layer = in_double(ng_weight_norm_new(doubled_new(NG_SHAPE(3, 5))));
    for (int i = 0; i < 3; i++) ng_set(ng_module_find(layer, "g"), i, i + 1);
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 3), 1);
    ng_tensor *w =
        ng_weight_norm(tape, ng_module_find(layer, "inner.weight"), ng_module_find(layer, "g"));
    assert_tensors_close(ng_forward(layer, tape, x), ng_matmul(tape, ng_mul_scalar(tape, x, 2), w),
                         1e-14);
    ck_assert(ng_check_module(layer, &x, 1, .order = 2).passed);
}

START_TEST(a_weight_without_rows_is_refused)
{
    const ng_shape shapes[] = {NG_SCALAR, NG_SHAPE(0, 3), NG_SHAPE(3, 0)};
    for (int i = 0; i < 3; i++) {
        assert_fails(ng_weight_norm_new(doubled_new(shapes[i])), NG_ESHAPE);
        assert_fails(ng_spectral_norm_new(doubled_new(shapes[i])), NG_ESHAPE);
    }
}

/* ---- How they start -------------------------------------------------------------------------- */

/* Also where the weight that is read in the place of a tied one is drawn after it. */
START_TEST(they_start_from_a_tied_weight)
{
    for (int round = 0; round < 2; round++) {
        ng_module *net = own(ng_sequential_new(
            ng_weight_norm_new(ng_linear_new(16, 16)), ng_spectral_norm_new(ng_linear_new(16, 16)),
            ng_linear_new(16, 16, .init = NG_INIT_XAVIER_NORMAL)));
        assert_ok(ng_module_tie(net, "0.inner.weight", "2.weight"));
        assert_ok(ng_module_tie(net, "1.inner.weight", "2.weight"));
        if (round) assert_ok(ng_module_init(net, 5));
        ng_tensor *w = ng_module_find(net, "2.weight");
        assert_tensors_close(ng_module_find(net, "0.g"), ng_norm(tape, w, .axes = NG_AXES(1)),
                             1e-6);
        ng_tensor *wv = ng_matmul(tape, w, ng_module_find(net, "1.v"));
        assert_close(ng_item(ng_dot(tape, ng_module_find(net, "1.u"), wv)), spectral_norm_of(w),
                     0.03);
    }
}

START_TEST(an_initialization_that_fails_says_so)
{
    ng_module *net = own(ng_spectral_norm_new(ng_linear_new(5, 4)));
    allocations_fail_after(0);
    ck_assert_int_eq(ng_module_init(net, 3), NG_ENOMEM);
    ck_assert_ptr_null(ng_module_find(net, "u"));
    allocations_succeed();
    assert_error(NG_ENOMEM, "");
    assert_ok(ng_module_find(net, "u"));
}

/* Alone, in a network, and initialized again: u and v belong to the current weight. */
START_TEST(spectral_norm_works_in_evaluation_before_any_training)
{
    for (int i = 0; i < 50; i++) {
        ng_module *layer = ng_spectral_norm_new(ng_linear_new(16, 24, .no_bias = true));
        ng_module *net = own(i % 2 ? ng_sequential_new(layer) : layer);
        if (i > 1) assert_ok(ng_module_init(net, (uint64_t)i));
        assert_close(spectral_norm_of(weight_in_use(evaluating(net), NG_F32, 16)), 1, 0.03);
    }
}

/* With a weight of zeros or at the ends of the dtype's range the weight in use is finite. With an
 * ordinary weight the layer works again. */
START_TEST(spectral_norm_recovers_from_any_weight)
{
    static const double scales[] = {0, 1e-30, 1e-44, 1e30, 3e37, 1e200, 1e300, 1e-300, 5e-324};
    const double scale = scales[_i];
    const ng_dtype dtype = fabs(log10(scale)) < 50 || scale == 0 ? NG_F32 : NG_F64;
    ng_module *layer = own(ng_spectral_norm_new(ng_linear_new(6, 4, .no_bias = true)));
    assert_ok(ng_module_to(layer, dtype));
    ng_tensor *weight = ng_module_find(layer, "inner.weight");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 24; i++) ng_set(weight, i, (round ? 1 : scale) * cos(i * i));
        ng_tensor *used = NULL;
        for (int i = 0; i < 40; i++) {
            ng_tape_reset(tape);
            used = weight_in_use(layer, dtype, 6);
            ng_zero_grads(layer);
            assert_ok(ng_backward(tape, ng_sum(tape, used)));
        }
        for (int i = 0; i < 24; i++) {
            ck_assert(isfinite(ng_get(used, i)) && (scale != 0 || round || ng_get(used, i) == 0));
            ck_assert(isfinite(ng_get(ng_grad(weight), i)) || (scale < 1e-40 && !round));
        }
        if (round || (scale > 1e-40 && scale < 1e250))
            assert_close(spectral_norm_of(used), 1, 1e-5);
    }
}

/* ---- One network, several threads ------------------------------------------------------------ */

typedef struct {
    ng_module *net;
    const ng_tensor *x, *expected;
    int wrong;
} reader;

/* Forward passes on a tape of its own; counts results that differ. */
static void *read_often(void *argument)
{
    reader *r = argument;
    ng_tape *on = ng_tape_new();
    ng_tensor *x = ng_copy_new(r->x, NG_F32);
    if (on) ng_tape_set_recording(on, false);
    for (int i = 0; i < 500; i++) {
        const ng_tensor *y = ng_forward(r->net, on, x);
        for (int64_t k = 0; k < ng_size(r->expected); k++)
            r->wrong += !y || ng_get(y, k) != ng_get(r->expected, k);
        ng_tape_reset(on);
    }
    ng_tensor_free(x), ng_tape_free(on);
    return NULL;
}

START_TEST(a_network_in_evaluation_serves_several_threads)
{
    enum { READERS = 4 };
    ng_module *net = evaluating(own(ng_sequential_new(
        ng_weight_norm_new(ng_linear_new(6, 8)), ng_batch_norm_new(8), ng_gelu_new(),
        ng_spectral_norm_new(ng_linear_new(8, 8)), ng_layer_norm_new(8),
        ng_weight_norm_new(ng_linear_new(8, 5), .whole = true))));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(3, 6), 1);
    const ng_tensor *expected = ng_forward(net, tape, x);
    assert_ok(expected);
    reader readers[READERS];
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++) {
        readers[i] = (reader){net, x, expected, 0};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_often, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(readers[i].wrong, 0);
    }
}

Suite *reparameterized_suite(void)
{
    Suite *suite = suite_create("reparameterized");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, any_module_with_a_weight_will_do, a_weight_without_rows_is_refused,
              they_start_from_a_tied_weight, an_initialization_that_fails_says_so,
              spectral_norm_works_in_evaluation_before_any_training,
              a_network_in_evaluation_serves_several_threads);
    add_loops(tests, 9, spectral_norm_recovers_from_any_weight);
    return suite;
}
