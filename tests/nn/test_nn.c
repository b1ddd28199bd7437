/* Modules: names, summaries, initial weights, modes, layers against their formulas, wrong use,
 * conversion, checkpoints. */
#include "core/tensor.h"
#include "nn/module.h"
#include "support/fixture.h"
#include "support/folder.h"
#include "support/support.h"
#include "tape/tape.h"
#include <math.h>

/* ---- Tools --------------------------------------------------------------------------------- */

static ng_module *small_net(void)
{
    return ng_sequential_new(ng_linear_new(4, 3), ng_batch_norm_new(3), ng_relu_new(),
                             ng_residual_new(ng_layer_norm_new(3)), ng_linear_new(3, 2));
}

static bool same_values(const ng_tensor *a, const ng_tensor *b)
{
    return ng_size(a) == ng_size(b) && ng_dtype_of(a) == ng_dtype_of(b) &&
           memcmp(a->data, b->data, (size_t)ng_size(a) * ng_dtype_bytes(ng_dtype_of(a))) == 0;
}

static ng_tensor *from(ng_shape shape, const double *values, int64_t count)
{
    return ng_tensor_from(NG_F64, shape, values, count);
}

/* ---- Names and counts ---------------------------------------------------------------------- */

START_TEST(parameters_are_named_by_path_in_order_of_registration)
{
    ng_module *net = own(small_net());
    const char *const parameters[] = {"0.weight",       "0.bias",       "1.weight", "1.bias",
                                      "3.inner.weight", "3.inner.bias", "4.weight", "4.bias"};
    const char *const buffers[] = {"1.running_mean", "1.running_var", "1.num_batches_tracked"};
    ng_named_tensor found;
    for (int i = 0; i < 8; i++) {
        ck_assert(ng_module_parameter(net, i, &found));
        ck_assert_str_eq(found.name, parameters[i]);
        ck_assert_ptr_eq(found.tensor, ng_module_find(net, parameters[i]));
        ck_assert(ng_requires_grad(found.tensor));
    }
    ck_assert_ptr_eq(found.owner, ng_module_child(net, 4));
    ck_assert(!ng_module_parameter(net, 8, &found));
    ck_assert(!ng_module_parameter(net, -1, &found));
    for (int i = 0; i < 3; i++) {
        ck_assert(ng_module_buffer(net, i, &found));
        ck_assert_str_eq(found.name, buffers[i]);
        ck_assert_ptr_eq(found.tensor, ng_module_find(net, buffers[i]));
        ck_assert(!ng_requires_grad(found.tensor));
    }
    ck_assert(!ng_module_buffer(net, 3, &found));
    ck_assert_int_eq(ng_parameter_count(net), 4 * 3 + 3 + 6 + 6 + 3 * 2 + 2);
    ck_assert(!ng_failed());

    assert_refused(ng_module_find(net, "3.inner.gamma"));
}

/* ---- Summary ------------------------------------------------------------------------------- */

START_TEST(summary_is_an_aligned_table)
{
    ng_module *net = own(ng_sequential_new(ng_linear_new(64, 128), ng_layer_norm_new(128),
                                           ng_relu_new(), ng_residual_new(ng_rms_norm_new(128)),
                                           ng_linear_new(128, 10, .no_bias = true)));
    char *text = summary_of(net);
    ck_assert_str_eq(text,
                     "path     layer                      parameters                     count\n"
                     "------------------------------------------------------------------------\n"
                     "         Sequential\n"
                     "0        Linear(64, 128)            weight (128, 64), bias (128,)  8,320\n"
                     "1        LayerNorm(128, eps=1e-05)  weight (128,), bias (128,)       256\n"
                     "2        ReLU\n"
                     "3        Residual\n"
                     "3.inner  RMSNorm(128, eps=1e-06)    weight (128,)                    128\n"
                     "4        Linear(128, 10, no bias)   weight (10, 128)               1,280\n"
                     "------------------------------------------------------------------------\n"
                     "total                                                              9,984\n");
    free(text);

    ng_freeze(ng_module_child(net, 0));
    text = summary_of(net);
    ck_assert_ptr_nonnull(strstr(text, "bias (128,), frozen  8,320\n"));
    ck_assert_ptr_nonnull(strstr(text, "trainable  "));
    ck_assert_ptr_nonnull(strstr(text, "  1,664\n"));
    ck_assert_ptr_nonnull(strstr(text, "frozen  "));
    free(text);
}

/* ---- How weights are drawn ----------------------------------------------------------------- */

/* Mean 0 and the given variance within 5 deviations of the estimates, whose variances over n draws
 * are var / n and (kurtosis - 1) var^2 / n; a kurtosis is 9/5 for uniform, 3 for normal draws. */
static void assert_moments(const ng_tensor *x, double var, double kurtosis)
{
    const double n = (double)ng_size(x);
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < ng_size(x); i++) {
        sum += ng_get(x, i);
        squares += ng_get(x, i) * ng_get(x, i);
    }
    assert_near(sum / n, 0, 5 * sqrt(var / n));
    assert_near(squares / n, var, 5 * var * sqrt((kurtosis - 1) / n));
}

static double largest(const ng_tensor *x)
{
    double most = 0;
    for (int64_t i = 0; i < ng_size(x); i++) most = fmax(most, fabs(ng_get(x, i)));
    return most;
}

START_TEST(initial_weights_have_the_stated_moments)
{
    const double in = 400, out = 300;
    const struct {
        ng_init_kind kind;
        double value, var, kurtosis;
    } cases[] = {
        {NG_INIT_DEFAULT, 0, 1 / in / 3, 1.8},
        {NG_INIT_KAIMING_UNIFORM, 0, 6 / in / 3, 1.8},
        {NG_INIT_KAIMING_NORMAL, 0, 2 / in, 3},
        {NG_INIT_XAVIER_UNIFORM, 0, 6 / (in + out) / 3, 1.8},
        {NG_INIT_XAVIER_NORMAL, 0, 2 / (in + out), 3},
        {NG_INIT_NORMAL, 0.3, 0.09, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ng_module *layer = own(ng_linear_new((int64_t)in, (int64_t)out, .init = cases[i].kind,
                                             .init_value = cases[i].value));
        const ng_tensor *weight = ng_module_find(layer, "weight");
        assert_moments(weight, cases[i].var, cases[i].kurtosis);
        /* Uniform: within the bound sqrt(3 var), give and take its rounding to float. */
        if (cases[i].kurtosis < 2) ck_assert(largest(weight) <= sqrt(3 * cases[i].var) * 1.000001);
        /* The bias is in U(-b, b), b^2 = 1 / in, or 0. */
        const double bias = largest(ng_module_find(layer, "bias"));
        if (cases[i].kind == NG_INIT_DEFAULT)
            ck_assert(bias > 0 && bias <= sqrt(1 / in) * 1.000001);
        else
            ck_assert(bias == 0);
    }
}

START_TEST(init_draws_tensors_of_any_rank)
{
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *kernel =
        own(ng_zeros_new(NG_F64, NG_SHAPE(40, 10, 5, 5))); /* fan_in 250, out 1000 */
    assert_ok(ng_fill_init(kernel, NG_INIT_KAIMING_NORMAL, 0, &rng));
    assert_moments(kernel, 2.0 / 250, 3);
    assert_ok(ng_fill_init(kernel, NG_INIT_XAVIER_UNIFORM, 0, &rng));
    assert_moments(kernel, 2.0 / 1250, 1.8);
    ng_tensor *vector = own(ng_zeros_new(NG_F64, NG_SHAPE(5000)));
    assert_ok(ng_fill_init(vector, NG_INIT_XAVIER_NORMAL, 0, &rng));
    assert_moments(vector, 1.0 / 5000, 3);
    assert_ok(ng_fill_init(vector, NG_INIT_CONSTANT, -2.5, &rng));
    ck_assert(ng_get(vector, 4999) == -2.5);
    assert_refused(ng_fill_init(vector, (ng_init_kind)99, 0, &rng));
}

START_TEST(weights_depend_on_seed_and_path_only)
{
    ng_module *net = own(small_net()), *twin = own(small_net()), *longer = own(small_net());
    assert_same_module(net, twin);
    assert_ok(ng_sequential_add(longer, ng_linear_new(2, 9)));
    assert_same_bits(ng_module_find(net, "4.weight"), ng_module_find(longer, "4.weight"));

    assert_ok(ng_module_init(net, 7));
    ck_assert(!same_values(ng_module_find(net, "0.weight"), ng_module_find(twin, "0.weight")));
    assert_ok(ng_module_init(twin, 7));
    assert_same_module(net, twin);
    assert_ok(ng_module_init(twin, 8));
    ck_assert(!same_values(ng_module_find(net, "0.weight"), ng_module_find(twin, "0.weight")));

    ng_module *fresh = own(small_net());
    assert_ok(ng_module_init(net, 0));
    assert_same_module(net, fresh);
}

/* What was used has the values with which it was used, in any network. */
START_TEST(weights_are_drawn_once)
{
    ng_module *set = ng_linear_new(3, 3), *seeded = ng_linear_new(3, 3);
    ng_module *called = ng_linear_new(3, 3), *converted = ng_linear_new(3, 3);
    ng_module *untouched = ng_linear_new(3, 3);
    assert_ok(ng_fill(ng_module_find(set, "weight"), 0.5));
    assert_ok(ng_module_init(seeded, 3));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 3), 3), *y = ng_forward(called, tape, x);
    assert_ok(ng_module_to(converted, NG_F64));
    assert_ok(ng_module_to(converted, NG_F32));
    ng_module *net = own(ng_sequential_new(set, seeded, called, converted, untouched));

    assert_values(ng_module_find(net, "0.weight"), 0, .5, .5, .5, .5, .5, .5, .5, .5, .5);
    ng_module *alone = own(ng_linear_new(3, 3)), *again = own(ng_linear_new(3, 3));
    assert_ok(ng_module_init(again, 3));
    assert_same_module(seeded, again);
    assert_same_bits(ng_forward(called, tape, x), y);
    assert_same_module(called, alone);
    assert_same_module(converted, alone);
    ng_module *other = own(ng_sequential_new(ng_relu_new(), ng_relu_new(), ng_relu_new(),
                                             ng_relu_new(), ng_linear_new(3, 3)));
    assert_same_bits(ng_module_find(net, "4.weight"), ng_module_find(other, "4.weight"));

    assert_ok(ng_sequential_add(net, ng_linear_new(3, 3))); /* to a network that was used */
    ck_assert(!same_values(ng_module_find(net, "5.weight"), ng_module_find(net, "4.weight")));
    ck_assert(!same_values(ng_module_find(net, "5.bias"),
                           ng_zeros_like(tape, ng_module_find(net, "5.bias"))));
}

START_TEST(init_puts_buffers_back)
{
    ng_module *layer = own(ng_batch_norm_new(2)), *fresh = own(ng_batch_norm_new(2));
    ng_fill(ng_module_find(layer, "running_mean"), 5);
    ng_fill(ng_module_find(layer, "running_var"), 5);
    ng_fill(ng_module_find(layer, "num_batches_tracked"), 5);
    ng_fill(ng_module_find(layer, "weight"), 5);
    assert_ok(ng_module_init(layer, 1));
    assert_same_module(layer, fresh);
}

/* ---- Modes --------------------------------------------------------------------------------- */

START_TEST(train_and_eval_reach_the_whole_tree)
{
    ng_module *net = own(ng_sequential_new(ng_residual_new(ng_dropout_new(0.5))));
    ng_module *dropout = ng_module_child(ng_module_child(net, 0), 0);
    ck_assert(dropout->training);
    ng_eval(net);
    ck_assert(!dropout->training && !net->training);
    ng_train(net);
    ck_assert(dropout->training && net->training);
}

START_TEST(dropout_drops_in_training_and_passes_in_eval)
{
    ng_module *layer = own(ng_dropout_new(0.25));
    ng_tensor *x = own(ng_ones_new(NG_F64, NG_SHAPE(400)));
    ng_tensor *y = ng_forward(layer, tape, x);
    ck_assert(ng_item(ng_min(tape, y)) == 0 && ng_item(ng_max(tape, y)) == 1 / 0.75);
    ng_eval(layer);
    assert_same_bits(ng_forward(layer, tape, x), x);
}

START_TEST(freezing_takes_parameters_out_and_unfreezing_brings_them_back)
{
    ng_module *net = own(small_net());
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = own(ng_normal_new(NG_F32, NG_SHAPE(6, 4), 0, 1, &rng));
    ng_freeze(ng_module_child(net, 0));
    ck_assert(!ng_requires_grad(ng_module_find(net, "0.weight")));
    ck_assert(ng_requires_grad(ng_module_find(net, "4.weight")));
    assert_ok(ng_backward(tape, ng_sum(tape, ng_square(tape, ng_forward(net, tape, x)))));
    ck_assert(!ng_has_grad(ng_module_find(net, "0.weight")));
    ck_assert(ng_has_grad(ng_module_find(net, "4.weight")));
    ng_unfreeze(net);
    ck_assert(ng_requires_grad(ng_module_find(net, "0.weight")));
}

/* ---- BatchNorm ----------------------------------------------------------------------------- */

static const double batches[3][4] = {{1, 10, 3, 30}, {2, 0, 6, -20}, {5, 7, 5, 9}};

static void run_batches(ng_module *layer)
{
    ng_tape *on = ng_tape_new();
    for (int i = 0; i < 3; i++) {
        ng_tensor *x = from(NG_SHAPE(2, 2), batches[i], 4);
        assert_ok(ng_forward(layer, on, x));
        ng_tensor_free(x);
    }
    ng_tape_free(on);
}

START_TEST(ng_train_does_not_unfreeze_a_frozen_batch_norm)
{
    ng_module *option = own(ng_batch_norm_new(2, .frozen = true)),
              *frozen = own(ng_batch_norm_new(2));
    ng_module *layers[] = {option, frozen};
    ng_freeze(frozen);
    for (int i = 0; i < 2; i++) {
        assert_ok(ng_module_to(layers[i], NG_F64));
        ng_train(layers[i]);
        run_batches(layers[i]);
        assert_values(ng_module_find(layers[i], "running_mean"), 0, 0, 0);
        assert_values(ng_module_find(layers[i], "running_var"), 0, 1, 1);
        assert_values(ng_module_find(layers[i], "num_batches_tracked"), 0, 0);
    }
    ck_assert(ng_requires_grad(ng_module_find(option, "weight")));
    ck_assert(!ng_requires_grad(ng_module_find(frozen, "weight")));
    ng_unfreeze(frozen);
    run_batches(frozen);
    ck_assert(ng_item(ng_module_find(frozen, "num_batches_tracked")) == 3);
}

START_TEST(without_running_statistics_eval_uses_the_batch)
{
    ng_module *layer = own(ng_batch_norm_new(2, .no_running_stats = true, .eps = 1e-9));
    assert_ok(ng_module_to(layer, NG_F64));
    ng_named_tensor buffer;
    ck_assert(!ng_module_buffer(layer, 0, &buffer));
    ng_eval(layer);
    ng_tensor *x = own(from(NG_SHAPE(2, 2), batches[0], 4));
    /* eps shortens xhat = 1 by eps / (2 var) <= 5e-10 */
    assert_values(ng_forward(layer, tape, x), 1e-9, -1, -1, 1, 1);
}

START_TEST(a_batch_that_fails_is_not_counted)
{
    ng_module *layer = own(ng_batch_norm_new(2));
    ng_tensor *x = own(ng_zeros_new(NG_F32, NG_SHAPE(2, 2))),
              *counter = ng_module_find(layer, "num_batches_tracked");
    assert_fails(ng_forward(layer, tape, own(ng_zeros_new(NG_F32, NG_SHAPE(1, 2)))), NG_ESHAPE,
                 "BatchNorm");
    ng_tape_set_mode(tape, NG_TAPE_REMEMBER); /* as the gradient checker runs it */
    assert_ok(ng_forward(layer, tape, x));
    ck_assert(ng_item(counter) == 0);
    ng_tape_set_mode(tape, NG_TAPE_LIVE);
    assert_ok(ng_forward(layer, tape, x));
    ck_assert(ng_item(counter) == 1);
}

/* ---- Layers against their formulas --------------------------------------------------------- */

START_TEST(containers_hand_the_condition_to_those_that_take_one)
{
    ng_rng rng = ng_rng_seeded(3);
    ng_tensor *x = own(ng_normal_new(NG_F32, NG_SHAPE(3, 4), 0, 1, &rng));
    ng_tensor *c = own(ng_normal_new(NG_F32, NG_SHAPE(3, 2), 0, 1, &rng));
    ng_module *net = own(ng_sequential_new(
        ng_linear_new(4, 4), ng_residual_new(ng_adaptive_layer_norm_new(4, .condition = 2))));
    ng_fill(ng_module_find(net, "1.inner.modulation.weight"), 0.25);
    ng_tensor *h = ng_forward(ng_module_child(net, 0), tape, x);
    ng_module *norm = ng_module_child(ng_module_child(net, 1), 0);
    ng_tensor *expected = ng_add(tape, h, ng_forward(norm, tape, h, .condition = c));
    assert_same_bits(ng_forward(net, tape, x, .condition = c), expected);
    assert_refused(ng_forward(net, tape, x));
}

/* A GRU takes the lengths and attention the mask; the norm takes neither. */
START_TEST(each_layer_of_a_container_takes_its_own_inputs)
{
    ng_module *net = own(ng_sequential_new(ng_gru_new(3, 4), ng_layer_norm_new(4),
                                           ng_multi_head_attention_new(4, 2)));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 3, 3), 5);
    ng_tensor *lengths = own(ng_tensor_from(NG_I64, NG_SHAPE(2), NG_VALUES(2, 3)));
    ng_tensor *mask = own(ng_tensor_from(NG_F32, NG_SHAPE(2, 3), NG_VALUES(1, 1, 0, 1, 1, 1)));
    ng_tensor *h = ng_forward(ng_module_child(net, 0), tape, x, .lengths = lengths);
    ng_tensor *normed = ng_forward(ng_module_child(net, 1), tape, h);
    ng_tensor *expected = ng_forward(ng_module_child(net, 2), tape, normed, .mask = mask);
    assert_same_bits(ng_forward(net, tape, x, .mask = mask, .lengths = lengths), expected);
    ck_assert(!same_values(ng_forward(net, tape, x), expected));
}

START_TEST(an_input_that_no_layer_takes_is_an_error)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 3), 5);
    ng_module *plain = own(ng_sequential_new(ng_linear_new(3, 3), ng_batch_norm_new(3)));
    assert_refused(ng_forward(plain, tape, x, .condition = x));
    ck_assert(ng_item(ng_module_find(plain, "1.num_batches_tracked")) == 0); /* nothing has run */
    assert_ok(ng_forward(plain, tape, x, .condition = NG_NONE, .mask = NG_NONE));
    /* Conditional norms take a condition only if they were made so. */
    ng_module *cross = own(ng_multi_head_attention_new(4, 2, .context = 3));
    ng_tensor *q = normal(NG_F32, NG_SHAPE(2, 3, 4), 5), *k = normal(NG_F32, NG_SHAPE(2, 5, 3), 6);
    ng_tensor *mask = own(ng_ones_new(NG_F32, NG_SHAPE(2, 5)));
    assert_refused(ng_forward(cross, tape, q, .memory = k, .mask = mask));
    ng_set(mask, 4, 0);
    assert_same_bits(ng_forward(cross, tape, q, .memory = k, .memory_mask = mask),
                     ng_forward_attention(cross, tape, q, k, k, mask));
}

/* A failed input is not the same as one that is left out. */
START_TEST(an_input_that_failed_passes_through)
{
    ng_module *attention = own(ng_multi_head_attention_new(4, 2));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 3, 4), 5);
    assert_fails(ng_forward(attention, tape, x, .mask = ng_reshape(tape, x, NG_SHAPE(5))),
                 NG_ESHAPE, "ng_reshape");
    assert_fails(ng_forward(attention, tape, x, .mask = NULL), NG_ENULL);
    assert_ok(ng_forward(attention, tape, x, .mask = NG_NONE));
}

START_TEST(residual_adds_its_input)
{
    ng_tensor *x = own(ng_tensor_from(NG_F32, NG_SHAPE(1, 2), NG_VALUES(1, -2)));
    ng_module *relu = own(ng_residual_new(ng_relu_new())),
              *wide = own(ng_residual_new(ng_linear_new(2, 3)));
    assert_values(ng_forward(relu, tape, x), 0, 2, -2);
    assert_fails(ng_forward(wide, tape, x), NG_ESHAPE, "Residual");
}

/* ---- Your own module ----------------------------------------------------------------------- */

static int shifts_destroyed;

typedef struct {
    ng_module base;
    ng_tensor *shift, *calls;
    ng_module *norm;
} shift_norm;

static ng_tensor *shift_forward(ng_module *self, ng_tape *on, ng_tensor *x)
{
    shift_norm *own = (shift_norm *)self;
    ng_fill(own->calls, ng_item(own->calls) + 1);
    return ng_forward(own->norm, on, ng_add(on, x, own->shift));
}

static void shift_init(ng_module *self, ng_rng *rng)
{
    ng_fill_normal(((shift_norm *)self)->shift, 0, 1, rng);
}

static void shift_destroy(ng_module *self)
{
    (void)self;
    shifts_destroyed++;
}

static const ng_module_class shift_class = {.name = "ShiftNorm",
                                            .size = sizeof(shift_norm),
                                            .forward = shift_forward,
                                            .init = shift_init,
                                            .destroy = shift_destroy};

static ng_module *shift_norm_new(int64_t dim)
{
    shift_norm *self = (shift_norm *)ng_module_new(&shift_class);
    if (!self) return NULL;
    self->shift = ng_module_add_parameter(&self->base, "shift", NG_SHAPE(dim));
    self->norm = ng_module_add_child(&self->base, "norm", ng_layer_norm_new(dim));
    self->calls = ng_module_add_buffer(&self->base, "calls", NG_SHAPE(1), 0);
    return ng_module_built(&self->base);
}

START_TEST(your_own_module_is_like_any_other)
{
    shifts_destroyed = 0;
    ng_module *net = ng_sequential_new(ng_linear_new(3, 4), shift_norm_new(4));
    ng_module *twin = ng_sequential_new(ng_linear_new(3, 4), shift_norm_new(4));
    ng_named_tensor found;
    ck_assert(ng_module_parameter(net, 2, &found));
    ck_assert_str_eq(found.name, "1.shift");
    ck_assert(ng_module_parameter(net, 4, &found));
    ck_assert_str_eq(found.name, "1.norm.bias");
    ck_assert(largest(ng_module_find(net, "1.shift")) > 0);
    assert_same_module(net, twin);

    ng_tape *on = ng_tape_new();
    ng_tensor *x = ng_ones_new(NG_F32, NG_SHAPE(2, 3));
    ng_tensor *y = ng_forward(net, on, x);
    assert_ok(ng_backward(on, ng_sum(on, ng_square(on, y))));
    ck_assert(ng_has_grad(ng_module_find(net, "1.shift")));
    ck_assert(ng_item(ng_module_find(net, "1.calls")) == 1);
    ng_tensor_free(x), ng_tape_free(on), ng_module_free(net), ng_module_free(twin);
    ck_assert_int_eq(shifts_destroyed, 2);
}

static const ng_module_class plain_class = {.name = "Plain", .size = sizeof(ng_module)};

START_TEST(a_parameter_starts_at_its_value_and_goes_back_to_it)
{
    ng_module *self = own(ng_module_new(&plain_class));
    ng_tensor *seven = ng_module_add_parameter(self, "seven", NG_SHAPE(2), .value = 7);
    ng_tensor *zero = ng_module_add_parameter(self, "zero", NG_SHAPE(2));
    ng_tensor *meant = ng_module_add_parameter(self, "meant", NG_SHAPE(2), .value = NG_ZERO);
    ck_assert_ptr_eq(ng_module_add_parameter(self, "none", NG_SHAPE(-1), .left_out = true),
                     NG_NONE);
    ck_assert_ptr_eq(ng_module_built(self), self);
    ck_assert_int_eq(ng_parameter_count(self), 6);
    for (int round = 0; round < 2; round++) {
        assert_values(seven, 0, 7, 7);
        assert_values(zero, 0, 0, 0);
        assert_values(meant, 0, 0, 0);
        ck_assert(!signbit(ng_get(meant, 0)));
        ng_fill(seven, 1), ng_fill(zero, 1), ng_fill(meant, 1);
        assert_ok(ng_module_init(self, 3));
    }
}

START_TEST(a_layer_that_is_added_keeps_its_modes)
{
    ng_module *body = ng_sequential_new(ng_linear_new(2, 2)), *list = ng_list_new(ng_relu_new());
    ng_module *modules[] = {body, list};
    for (int i = 0; i < 2; i++) {
        ng_module *head = ng_linear_new(2, 2), *other = ng_dropout_new(0.5);
        ng_eval(other);
        ng_freeze(modules[i]), ng_eval(modules[i]);
        assert_ok((i ? ng_list_add : ng_sequential_add)(modules[i], head));
        ck_assert(head->training && !head->frozen);
        ck_assert(ng_requires_grad(ng_module_find(modules[i], "1.weight")));
        ng_unfreeze(modules[i]), ng_train(modules[i]);
        assert_ok((i ? ng_list_add : ng_sequential_add)(modules[i], other));
        ck_assert(!other->training);
        ng_module_free(modules[i]);
    }
}

START_TEST(a_parameter_that_a_frozen_module_gets_is_frozen_too)
{
    ng_module *self = own(ng_module_new(&plain_class));
    ng_tensor *before = ng_module_add_parameter(self, "before", NG_SHAPE(2));
    ck_assert(ng_requires_grad(before));
    ng_freeze(self);
    ng_tensor *after = ng_module_add_parameter(self, "after", NG_SHAPE(2));
    ck_assert(!ng_requires_grad(before) && !ng_requires_grad(after));
    ng_unfreeze(self);
    ck_assert(ng_requires_grad(before) && ng_requires_grad(after));
}

START_TEST(a_constructor_that_failed_is_cleaned_up_at_its_end)
{
    assert_fails(shift_norm_new(-1), NG_ESHAPE, "ng_module_add_parameter");

    const char *const names[] = {"", "a.b", "twice", NULL};
    for (int i = 0; i < 4; i++) {
        ng_module *self = ng_module_new(&shift_class);
        assert_ok(ng_module_add_parameter(self, "twice", NG_SHAPE(1)));
        assert_fails(ng_module_add_parameter(self, names[i], NG_SHAPE(1)),
                     names[i] ? NG_EVALUE : NG_ENULL);
        assert_ok(ng_module_add_child(self, "child", ng_relu_new()));
        assert_fails(ng_module_add_child(self, names[i], ng_linear_new(2, 2)),
                     names[i] ? NG_EVALUE : NG_ENULL);
        assert_fails(ng_module_built(self), NG_ESTATE);
    }
}

START_TEST(a_class_needs_a_name_and_a_size)
{
    const ng_module_class nameless = {.size = sizeof(ng_module)}, sizeless = {.name = "Norm"};
    assert_fails(ng_module_new(&nameless), NG_ENULL);
    assert_refused(ng_module_new(&sizeless));
}

/* .forward would drop an input that the class takes, or be dropped for .forward_with. */
static ng_tensor *forward_all(ng_module *self, ng_tape *on, const ng_inputs *in)
{
    return shift_forward(self, on, in->x);
}

START_TEST(a_class_whose_forward_drops_inputs_is_refused)
{
    ng_module_class class = shift_class;
    class.needs = NG_INPUT_CONDITION;
    assert_refused(ng_module_new(&class), "ng_module_new");
    class.needs = 0, class.takes = NG_INPUT_MASK;
    assert_refused(ng_module_new(&class), "ng_module_new");
    class.takes = 0, class.forward_with = forward_all;
    assert_refused(ng_module_new(&class), "ng_module_new");
    class.forward = NULL, class.needs = NG_INPUT_CONDITION;
    ng_module *accepted = ng_module_new(&class);
    assert_ok(accepted);
    ng_module_free(accepted);
}

/* ---- Wrong use ----------------------------------------------------------------------------- */

START_TEST(modules_nested_too_deep_are_an_error_and_leak_nothing)
{
    ng_module *net = ng_relu_new();
    for (int i = 1; i < NG_MAX_DEPTH; i++) net = ng_residual_new(net);
    assert_ok(net);
    assert_ok(ng_module_init(net, 1));
    net = ng_residual_new(net);
    ck_assert_ptr_null(net); /* one more than there may be */
    for (int i = 0; i < 100000; i++) net = ng_residual_new(net);
    assert_refused(net, "ng_module_add_child");
    ng_module *outer = own(ng_sequential_new(ng_relu_new())), *inner = outer; /* from the top */
    for (int i = 0; i < 2 * NG_MAX_DEPTH && inner; i++) {
        ng_module *next = ng_sequential_new(ng_relu_new());
        inner = ng_sequential_add(inner, next) == NG_OK ? next : NULL;
    }
    assert_error(NG_EVALUE, "ng_");
}

START_TEST(an_error_inside_a_network_says_where)
{
    ng_module *net = own(
        ng_sequential_new(ng_linear_new(3, 4),
                          ng_sequential_new(ng_relu_new(), ng_residual_new(ng_linear_new(5, 5)))));
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(2, 3)));
    ck_assert_ptr_null(ng_forward(net, tape, x));
    ck_assert_int_eq(strncmp(ng_error_text(), "1.1.inner (Linear): ng_linear: ", 31), 0);
    ck_assert_ptr_null(strstr(ng_error_text() + 10, "(Residual)"));
    ng_clear_error();
    ng_module *alone = ng_multi_head_attention_new(4, 2);
    ck_assert_ptr_null(ng_forward(alone, tape, x));
    ck_assert_int_eq(strncmp(ng_error_text(), "MultiHeadAttention: x is (2, 3)", 31), 0);
    ng_clear_error();
    ng_module_free(alone);
    ng_fail(NG_EIO, "the cause"); /* which was before, and elsewhere */
    assert_fails(ng_forward(net, tape, x), NG_EIO, "the cause");
}

START_TEST(an_error_of_dtypes_says_how_to_convert)
{
    ng_module *net = own(ng_sequential_new(ng_relu_new(), ng_linear_new(2, 2)));
    ng_tensor *x = own(ng_ones_new(NG_F64, NG_SHAPE(1, 2))),
              *ids = own(ng_zeros_new(NG_I64, NG_SHAPE(1, 2)));
    assert_fails(ng_forward(net, tape, x), NG_EDTYPE, "ng_module_to");
    assert_ok(ng_module_to(net, NG_F64));
    assert_ok(ng_forward(net, tape, x));
    ck_assert_ptr_null(ng_forward(ng_module_child(net, 1), tape, ids));
    ck_assert_ptr_null(strstr(ng_error_text(), "ng_module_to"));
    ng_clear_error();
}

START_TEST(a_failed_child_fails_its_parents_and_leaks_nothing)
{
    assert_refused(ng_sequential_new(ng_linear_new(3, 3), ng_linear_new(0, 3),
                                     ng_residual_new(ng_layer_norm_new(3))),
                   "ng_linear_new");
    assert_refused(ng_residual_new(ng_sequential_new(ng_dropout_new(1))), "ng_dropout_new");
    assert_fails(ng_module_add_child(NULL, "child", ng_linear_new(2, 2)), NG_ENULL);
    assert_fails(ng_sequential_add(NULL, ng_linear_new(2, 2)), NG_ENULL);
}

START_TEST(a_module_has_one_parent)
{
    ng_module *layer = ng_linear_new(2, 2);
    assert_fails(ng_sequential_new(layer, ng_relu_new(), layer), NG_ESTATE, "ng_module_add_child");
    assert_all_freed();

    ng_module *shared = ng_linear_new(2, 2);
    ng_module *net = own(ng_sequential_new(shared));
    assert_fails(ng_residual_new(shared), NG_ESTATE, "ng_module_add_child");
    ng_module_free(shared); /* the net's */
    ck_assert_ptr_eq(ng_module_child(net, 0), shared);
    assert_ok(ng_module_find(net, "0.weight"));

    assert_fails(ng_sequential_add(net, net), NG_ESTATE, "ng_module_add_child");
    ng_module *inner = ng_sequential_new(ng_relu_new());
    ng_module *outer = own(ng_sequential_new(ng_residual_new(inner)));
    assert_fails(ng_sequential_add(inner, outer), NG_ESTATE, "ng_module_add_child");
    assert_refused(ng_sequential_add(shared, ng_relu_new()));
    assert_refused(ng_sequential_add(shared, net));
}

START_TEST(options_without_sense_are_refused)
{
    const int64_t sizes[] = {INT64_MAX, INT64_MAX / 3, INT64_MIN, INT64_C(1) << 49};
    for (int i = 0; i < 4; i++) {
        assert_refused(ng_linear_new(3, sizes[i]));
        assert_refused(ng_feed_forward_new(sizes[i]));
        assert_refused(ng_feed_forward_new(4, .hidden = sizes[i]));
        assert_refused(ng_multi_head_attention_new(sizes[i], 1));
        assert_refused(ng_adaptive_residual_new(ng_relu_new(), .dim = sizes[i], .condition = 1));
    }
    assert_refused(ng_linear_new(3, 2, .init = NG_INIT_NORMAL, .init_value = -1));
    assert_refused(ng_linear_new(3, 2, .init = NG_INIT_NORMAL));
    assert_refused(ng_linear_new(3, 2, .init = NG_INIT_XAVIER_NORMAL, .init_value = 1));
    assert_refused(ng_multi_head_attention_new(4, 2, .rotary_base = 50));
    assert_refused(ng_multi_head_attention_new(4, 2, .rotary = true, .rotary_base = NG_ZERO));
    assert_refused(ng_sequential_from(NULL, -1));
    assert_refused(ng_list_from(NULL, -2));
    assert_refused(ng_lstm_new(3, 4, .dropout = 0.1));
    assert_refused(ng_leaky_relu_new((double)NAN));
    assert_refused(ng_elu_new(-1));
    assert_refused(ng_prelu_new(0));
}

START_TEST(a_backward_pass_to_nothing_but_what_was_frozen_is_an_error)
{
    ng_module *net = own(ng_sequential_new(ng_linear_new(4, 4), ng_linear_new(4, 2)));
    ng_tensor *x = ng_full(tape, NG_F32, NG_SHAPE(3, 4), 1);
    ng_tensor *loss = ng_sum(tape, ng_forward(net, tape, x));
    ng_tensor *first = ng_module_find(net, "0.weight");
    ng_freeze(net);
    assert_fails(ng_backward(tape, loss), NG_EGRAD);
    ck_assert(!ng_has_grad(first));
    ng_unfreeze(ng_module_child(net, 0));
    assert_ok(ng_backward(tape, loss));
    ck_assert(ng_has_grad(first) && !ng_has_grad(ng_module_find(net, "1.weight")));
}

/* Of the two uses of the weights only that with h, which requires a gradient, is recorded: the
 * gradient through it is not that of the weights, and is not given. */
START_TEST(a_parameter_unfrozen_after_its_use_gets_no_partial_gradient)
{
    ng_module *net = own(ng_linear_new(4, 4));
    ng_tensor *x = ng_full(tape, NG_F32, NG_SHAPE(3, 4), 1),
              *weight = ng_module_find(net, "weight");
    ng_tensor *h = ng_variable(tape, x), *both[] = {weight, h}, *gradients[2];
    ng_freeze(net);
    ng_tensor *loss =
        ng_sum(tape, ng_add(tape, ng_forward(net, tape, x), ng_forward(net, tape, h)));
    ng_unfreeze(net);
    assert_ok(ng_backward(tape, loss));
    ck_assert(ng_has_grad(h) && !ng_has_grad(weight));
    assert_ok(
        ng_gradients(tape, &loss, 1, both, 2, gradients, .record = true, .allow_unused = true));
    assert_same_bits(gradients[1], ng_grad(h));
    for (int64_t i = 0; i < ng_size(weight); i++) ck_assert(ng_get(gradients[0], i) == 0);
    assert_fails(ng_gradient(tape, loss, weight), NG_EGRAD);
    assert_ok(ng_backward(tape, ng_sum(tape, ng_forward(net, tape, x))));
    ck_assert(ng_has_grad(weight));
}

/* ---- Dtype --------------------------------------------------------------------------------- */

START_TEST(float_to_double_and_back_keeps_every_bit)
{
    ng_module *net = own(small_net()), *twin = own(small_net());
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(3, 4)));
    assert_ok(ng_backward(tape, ng_sum(tape, ng_forward(net, tape, x))));
    assert_ok(ng_forward(twin, tape, x)); /* moves running statistics alike */
    ng_tensor *weight = ng_module_find(net, "0.weight");
    ck_assert(ng_has_grad(weight));
    assert_ok(ng_module_to(net, NG_F64));
    ck_assert_ptr_eq(ng_module_find(net, "0.weight"), weight);
    ck_assert(ng_dtype_of(weight) == NG_F64 && !ng_has_grad(weight) && ng_requires_grad(weight));
    ck_assert(ng_dtype_of(ng_module_find(net, "1.num_batches_tracked")) == NG_I64);
    assert_ok(ng_module_to(net, NG_F64));
    assert_ok(ng_module_to(net, NG_F32));
    assert_same_module(net, twin);
    assert_fails(ng_module_to(net, NG_I64), NG_EDTYPE);
}

/* ---- Checkpoints --------------------------------------------------------------------------- */

static const char *checkpoint_path;

static void make_checkpoint(void)
{
    set_up();
    make_test_folder();
    checkpoint_path = in_folder("checkpoint");
}

static void remove_checkpoint(void)
{
    remove_test_folder();
    tear_down();
}

START_TEST(a_saved_module_loads_bit_by_bit)
{
    ng_module *net = own(small_net()), *other = own(small_net());
    assert_ok(ng_module_init(net, 5));
    const double odd[] = {(double)NAN, (double)INFINITY, -0.0, 1e-44, 3.4e38, -1.0 / 3};
    for (int i = 0; i < 6; i++) ng_set(ng_module_find(net, "0.weight"), i, odd[i]);
    ng_fill(ng_module_find(net, "1.num_batches_tracked"), 17);
    assert_ok(ng_module_save(net, checkpoint_path));
    assert_ok(ng_module_load(other, checkpoint_path));
    assert_same_module(net, other);

    assert_ok(ng_module_to(net, NG_F64));
    ng_fill(ng_module_find(net, "4.bias"), 1.0 / 3);
    assert_ok(ng_module_save(net, checkpoint_path)); /* replaces it */
    assert_ok(ng_module_to(other, NG_F64));
    assert_ok(ng_module_load(other, checkpoint_path));
    assert_same_module(net, other);
}

START_TEST(a_loaded_module_keeps_its_weights_in_a_network)
{
    ng_module *layer = own(ng_linear_new(2, 2)), *copy = ng_linear_new(2, 2);
    assert_ok(ng_module_save(layer, checkpoint_path));
    assert_ok(ng_module_load(copy, checkpoint_path));
    ng_module *net = own(ng_sequential_new(copy));
    assert_same_bits(ng_module_find(net, "0.weight"), ng_module_find(layer, "weight"));
}

/* ---- Out of memory ------------------------------------------------------------------------- */

static ng_status convert(ng_module *net) { return ng_module_to(net, NG_F64); }
static ng_status save(ng_module *net) { return ng_module_save(net, checkpoint_path); }
static ng_status load(ng_module *net) { return ng_module_load(net, checkpoint_path); }

/* A layer that cannot be added is freed. */
static ng_status add_layer(ng_module *net)
{
    return ng_sequential_add(net, ng_residual_new(ng_linear_new(2, 2)));
}

START_TEST(a_call_that_is_refused_memory_changes_nothing)
{
    static ng_status (*const calls[])(ng_module *) = {convert, add_layer, save, load};
    ng_module *net = own(small_net()), *twin = own(small_net());
    assert_ok(ng_module_save(twin, checkpoint_path));
    for (int64_t n = 0;; n++) {
        allocations_fail_after(n);
        if (!out_of_memory(calls[_i](net) != NG_OK)) break;
        assert_same_module(net, twin);
    }
}

Suite *nn_suite(void)
{
    Suite *suite = suite_create("nn");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(
        tests, parameters_are_named_by_path_in_order_of_registration, summary_is_an_aligned_table,
        initial_weights_have_the_stated_moments, init_draws_tensors_of_any_rank,
        weights_depend_on_seed_and_path_only, weights_are_drawn_once, init_puts_buffers_back,
        train_and_eval_reach_the_whole_tree, dropout_drops_in_training_and_passes_in_eval,
        freezing_takes_parameters_out_and_unfreezing_brings_them_back,
        ng_train_does_not_unfreeze_a_frozen_batch_norm,
        without_running_statistics_eval_uses_the_batch, a_batch_that_fails_is_not_counted,
        containers_hand_the_condition_to_those_that_take_one,
        each_layer_of_a_container_takes_its_own_inputs, an_input_that_no_layer_takes_is_an_error,
        an_input_that_failed_passes_through, residual_adds_its_input,
        your_own_module_is_like_any_other, a_parameter_starts_at_its_value_and_goes_back_to_it,
        a_layer_that_is_added_keeps_its_modes, a_parameter_that_a_frozen_module_gets_is_frozen_too,
        a_constructor_that_failed_is_cleaned_up_at_its_end, a_class_needs_a_name_and_a_size,
        a_class_whose_forward_drops_inputs_is_refused,
        modules_nested_too_deep_are_an_error_and_leak_nothing, an_error_inside_a_network_says_where,
        an_error_of_dtypes_says_how_to_convert, a_failed_child_fails_its_parents_and_leaks_nothing,
        a_module_has_one_parent, options_without_sense_are_refused,
        a_backward_pass_to_nothing_but_what_was_frozen_is_an_error,
        a_parameter_unfrozen_after_its_use_gets_no_partial_gradient,
        float_to_double_and_back_keeps_every_bit);
    tests = add_case(suite, make_checkpoint, remove_checkpoint);
    add_tests(tests, a_saved_module_loads_bit_by_bit,
              a_loaded_module_keeps_its_weights_in_a_network);
    add_loops(tests, 4, a_call_that_is_refused_memory_changes_nothing);
    return suite;
}
