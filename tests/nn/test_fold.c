/* Folding: a network without its norms gives what it gave with them. */
#include "norms/norm.h"
#include <string.h>

/* With running statistics and a gamma and beta that are not 0 and 1. */
static ng_module *seen(ng_module *net)
{
    ng_rng rng = ng_rng_seeded(3);
    ng_named_tensor t;
    own(net);
    for (int i = 0; ng_module_parameter(net, i, &t); i++)
        assert_ok(ng_fill_normal(t.tensor, 0.3, 1, &rng));
    for (int i = 0; ng_module_buffer(net, i, &t); i++)
        if (ng_dtype_of(t.tensor) != NG_I64) assert_ok(ng_fill_uniform(t.tensor, 0.5, 2, &rng));
    return evaluating(net);
}

/* ---- Outputs --------------------------------------------------------------------------------- */

static ng_module *linear_batch(void)
{
    return ng_sequential_new(ng_linear_new(40, 9), ng_batch_norm_new(9), ng_relu_new());
}
static ng_module *linear_batch_without(void)
{
    return ng_sequential_new(ng_linear_new(40, 9, .no_bias = true),
                             ng_batch_norm_new(9, .no_affine = true));
}
static ng_module *convolutions(void)
{
    return ng_sequential_new(
        ng_residual_new(ng_sequential_new(ng_conv2d_new(4, 4, 3, .padding = 1, .no_bias = true),
                                          ng_batch_norm_new(4), ng_relu_new())),
        ng_conv2d_new(4, 6, 3, .groups = 2), ng_batch_norm_new(6));
}
static ng_module *lines(void)
{
    return ng_sequential_new(ng_conv1d_new(4, 5, 3), ng_batch_norm_new(5, .frozen = true));
}
static ng_module *layer_linear(void)
{
    return ng_sequential_new(ng_layer_norm_new(40), ng_linear_new(40, 9, .no_bias = true));
}
static ng_module *rms_linear(void)
{
    return ng_sequential_new(ng_rms_norm_new(40), ng_linear_new(40, 9));
}
static ng_module *between(void)
{
    return ng_sequential_new(ng_layer_norm_new(40), ng_linear_new(40, 9), ng_batch_norm_new(9),
                             ng_tanh_new(), ng_rms_norm_new(9), ng_linear_new(9, 3));
}

static const struct {
    ng_module *(*make)(void);
    ng_shape shape;
    int fewer; /* parameters */
} nets[] = {{linear_batch, {2, {5, 40}}, 18},        {linear_batch_without, {2, {5, 40}}, -9},
            {convolutions, {4, {2, 4, 5, 6}}, 16},   {lines, {3, {2, 4, 7}}, 10},
            {layer_linear, {3, {2, 5, 40}}, 80 - 9}, {rms_linear, {2, {5, 40}}, 40},
            {between, {2, {5, 40}}, 80 + 18 + 9}};
enum { NETS = sizeof nets / sizeof *nets };

START_TEST(a_folded_network_gives_the_same_with_fewer_parameters)
{
    ng_module *net = in_double(nets[_i].make());
    evaluating(net);
    ng_rng rng = ng_rng_seeded(3);
    ng_named_tensor t;
    for (int i = 0; ng_module_parameter(net, i, &t); i++)
        assert_ok(ng_fill_normal(t.tensor, 0.3, 1, &rng));
    for (int i = 0; ng_module_buffer(net, i, &t); i++)
        if (ng_dtype_of(t.tensor) != NG_I64) assert_ok(ng_fill_uniform(t.tensor, 0.5, 2, &rng));
    ng_tensor *x = normal(NG_F64, nets[_i].shape, 1);
    ng_tensor *before = own(ng_copy_new(ng_forward(net, tape, x), NG_F64));
    const int64_t count = ng_parameter_count(net);
    ng_tape_reset(tape);
    assert_ok(ng_module_fold(net));
    assert_tensors_close(ng_forward(net, tape, x), before, 1e-13);
    ck_assert_int_eq(count - ng_parameter_count(net), nets[_i].fewer);
    assert_ok(ng_module_fold(net)); /* nothing is left to fold */
}

/* Of a Linear and a BatchNorm: |g| (sum |w x| + |b| + |mean|) + |beta|. */
START_TEST(outputs_are_within_four_units_of_the_terms)
{
    ng_module *net = seen(linear_batch());
    ng_tensor *x = normal(NG_F32, NG_SHAPE(50, 40), 1);
    ng_tensor *before = own(ng_copy_new(ng_forward(net, tape, x), NG_F64));
    static const char *const names[] = {"0.weight", "0.bias",         "1.weight",
                                        "1.bias",   "1.running_mean", "1.running_var"};
    ng_tensor *p[6];
    for (int i = 0; i < 6; i++) p[i] = own(ng_copy_new(ng_module_find(net, names[i]), NG_F64));
    ng_tape_reset(tape);
    assert_ok(ng_module_fold(net));
    ng_tensor *after = ng_forward(net, tape, x);
    double worst = 0;
    for (int n = 0; n < 50; n++)
        for (int o = 0; o < 9; o++) {
            double sum = fabs(ng_get(p[1], o)) + fabs(ng_get(p[4], o));
            for (int i = 0; i < 40; i++) sum += fabs(ng_at(p[0], o, i) * ng_at(x, n, i));
            sum =
                sum * fabs(ng_get(p[2], o)) / sqrt(ng_get(p[5], o) + 1e-5) + fabs(ng_get(p[3], o));
            worst = fmax(worst, fabs(ng_at(after, n, o) - ng_at(before, n, o)) / sum);
        }
    ck_assert_double_le(worst, ldexp(4, -23));
    ck_assert_double_gt(worst, 0);
}

/* ---- What it leaves -------------------------------------------------------------------------- */

START_TEST(a_network_made_without_the_norm_loads_the_file)
{
    ng_module *net = seen(linear_batch()),
              *other = own(ng_sequential_new(ng_linear_new(40, 9), ng_norm_none(9), ng_relu_new()));
    assert_ok(ng_module_fold(net));
    assert_ok(ng_module_copy(other, net));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(5, 40), 1);
    assert_same_bits(ng_forward(other, tape, x), ng_forward(net, tape, x));
}

START_TEST(a_folded_network_trains)
{
    ng_module *net = seen(between());
    assert_ok(ng_module_fold(net));
    ng_train(net);
    ng_optimizer *sgd = own(ng_sgd_new(net, .lr = 0.01));
    ng_tensor *y = ng_forward(net, tape, normal(NG_F32, NG_SHAPE(5, 40), 1));
    assert_ok(ng_backward(tape, ng_sum(tape, ng_square(tape, y))));
    assert_ok(ng_optimizer_step(sgd));
}

/* ---- What cannot be folded ------------------------------------------------------------------- */

static void expect_refused(ng_module *net, const char *name)
{
    ng_named_tensor t;
    ng_module *before = own(net);
    const int64_t count = ng_parameter_count(net);
    ng_tensor *first = NULL;
    assert_ok(ng_module_parameter(net, 0, &t));
    first = own(ng_copy_new(t.tensor, NG_F32));
    ck_assert_int_eq(ng_module_fold(net), NG_EVALUE);
    ck_assert_msg(strstr(ng_error_text(), name), "\"%s\" is not in \"%s\"", name, ng_error_text());
    ng_clear_error();
    ck_assert_int_eq(ng_parameter_count(before), count);
    assert_same_bits(ng_module_find(net, t.name), first);
}

/* The first layer could be folded: it must not have changed, nor have a bias. */
#define AFTER(...)                                                                                 \
    evaluating(ng_sequential_new(ng_linear_new(4, 4, .no_bias = true), ng_batch_norm_new(4),       \
                                 __VA_ARGS__))

START_TEST(what_cannot_be_folded_is_refused_by_name_and_nothing_changes)
{
    expect_refused(AFTER(ng_relu_new(), ng_batch_norm_new(4)), "3, a BatchNorm");
    expect_refused(AFTER(ng_layer_norm_new(4)), "2, a LayerNorm");
    expect_refused(AFTER(ng_layer_norm_new(4), ng_relu_new(), ng_linear_new(4, 2)),
                   "2, a LayerNorm");
    expect_refused(AFTER(ng_rms_norm_new(4, .unit_offset = true), ng_linear_new(4, 2)),
                   "2, a RMSNorm");
    expect_refused(AFTER(ng_linear_new(4, 3), ng_batch_norm_new(3, .no_running_stats = true)),
                   "3, a BatchNorm");
    expect_refused(AFTER(ng_residual_new(ng_layer_norm_new(4))), "2.inner, a LayerNorm");
    expect_refused(ng_sequential_new(ng_linear_new(4, 3), ng_batch_norm_new(3)), "in training");
    ng_module *tied = AFTER(ng_linear_new(4, 4), ng_layer_norm_new(4), ng_linear_new(4, 4));
    assert_ok(ng_module_tie(tied, "4.weight", "2.weight"));
    expect_refused(tied, "3, a LayerNorm");
}

Suite *fold_suite(void)
{
    Suite *suite = suite_create("fold");
    TCase *tests = add_case(suite, set_up, tear_down);
    tcase_add_loop_test(tests, a_folded_network_gives_the_same_with_fewer_parameters, 0, NETS);
    add_tests(tests, outputs_are_within_four_units_of_the_terms,
              a_network_made_without_the_norm_loads_the_file, a_folded_network_trains,
              what_cannot_be_folded_is_refused_by_name_and_nothing_changes);
    return suite;
}
