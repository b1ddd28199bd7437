/* Networks as functions of their parameters; copies and averages of networks; functions as layers.
 */
#include "support/fixture.h"
#include "support/folder.h"
#include "support/support.h"
#include <math.h>
#include <string.h>

/* ---- ng_forward_using ------------------------------------------------------------------------ */

enum { MOST = 64 };

/* Random tensors in the shapes of the parameters; returns how many. */
static int draw_parameters(ng_module *module, ng_tensor **values)
{
    ng_named_tensor p;
    int count = 0;
    for (; ng_module_parameter(module, count, &p); count++) {
        ck_assert_int_lt(count, MOST);
        values[count] = normal(ng_dtype_of(p.tensor), ng_shape_of(p.tensor), 20 + (uint64_t)count);
    }
    return count;
}

static ng_module *layer_of(const gradient_case *spec)
{
    ng_module *module = spec->module();
    assert_ok(ng_module_to(module, NG_F64));
    if (spec->eval) ng_eval(module);
    ng_tape_seed(tape, 3);
    return module;
}

static ng_inputs drawn_inputs(const gradient_case *spec)
{
    ng_rng rng = ng_rng_seeded(5);
    ng_tensor *inputs[CASE_INPUTS];
    for (int i = 0; i < CASE_INPUTS && spec->inputs[i].name; i++)
        inputs[i] = own(case_input_new(&spec->inputs[i], &rng));
    return case_inputs(spec, inputs);
}

/* Output and gradients are those of the layer whose parameters are the tensors. */
START_TEST(every_layer_is_a_function_of_its_parameters)
{
    const gradient_case *spec = layer_case(_i);
    ng_tensor *values[MOST], *gradients[MOST];
    const ng_inputs in = drawn_inputs(spec);

    ng_module *module = own(layer_of(spec));
    const int count = draw_parameters(module, values);
    ng_tensor *y = ng_forward_using_with(module, tape, values, count, in);
    assert_ok(y);
    ng_tensor *dy = normal(NG_F64, ng_shape_of(y), 9);
    if (count > 0)
        assert_ok(ng_gradients(tape, &y, 1, values, count, gradients, .cotangents = &dy));

    ng_module *same = own(layer_of(spec));
    ng_named_tensor p, untouched;
    for (int i = 0; ng_module_parameter(same, i, &p); i++)
        for (int64_t k = 0; k < ng_size(p.tensor); k++) ng_set(p.tensor, k, ng_get(values[i], k));
    ng_tensor *expected = ng_forward_with(same, tape, in);
    assert_same_bits(y, expected);
    if (count > 0) assert_ok(ng_backward_from(tape, expected, dy));
    for (int i = 0; ng_module_parameter(same, i, &p); i++) {
        assert_same_bits(gradients[i], ng_grad(p.tensor));
        ck_assert(ng_module_parameter(module, i, &untouched) && !ng_has_grad(untouched.tensor));
    }
    for (int i = 0; ng_module_buffer(same, i, &p); i++) {
        ck_assert(ng_module_buffer(module, i, &untouched));
        assert_same_bits(p.tensor, untouched.tensor);
    }
}

START_TEST(a_parameter_may_stand_for_itself)
{
    ng_module *net = own(ng_sequential_new(ng_linear_new(3, 4), ng_rms_norm_new(4)));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 3), 1), *w[3];
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++) w[i] = p.tensor;
    ng_tensor *y = ng_forward_using(net, tape, w, 3, x);
    assert_same_bits(y, ng_forward(net, tape, x));
    assert_ok(ng_backward(tape, ng_sum(tape, y)));
    ck_assert(ng_has_grad(w[0]) && ng_has_grad(w[2]));
}

START_TEST(a_wrong_value_for_a_parameter_is_an_error_with_its_name)
{
    ng_module *net = own(ng_sequential_new(ng_linear_new(2, 3), ng_layer_norm_new(3)));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, 2), 1), *w[4];
    ck_assert_int_eq(draw_parameters(net, w), 4);
    assert_ok(ng_forward_using(net, tape, w, 4, x));

    for (int count = -1; count <= 5; count++) {
        if (count == 4) continue;
        assert_refused(ng_forward_using(net, tape, w, count, x));
    }
    ng_tape *other = own(ng_tape_new());
    const struct {
        ng_tensor *value;
        ng_status status;
    } wrong[] = {{NULL, NG_ENULL},
                 {NG_NONE, NG_EVALUE},
                 {w[0], NG_ESHAPE},
                 {normal(NG_F64, NG_SHAPE(3), 1), NG_EDTYPE},
                 {ng_full(other, NG_F32, NG_SHAPE(3), 1), NG_ESTATE}};
    ng_tensor *const right = w[2];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        w[2] = wrong[i].value;
        assert_fails(ng_forward_using(net, tape, w, 4, x), wrong[i].status, "1.weight");
    }
    w[2] = right;
    assert_fails(ng_forward_using(NULL, tape, w, 4, x), NG_ENULL);
    assert_fails(ng_forward_using(net, NULL, w, 4, x), NG_ENULL);
    assert_fails(ng_forward_using(net, tape, w, 4, NULL), NG_ENULL);
    assert_fails(ng_forward_using(net, tape, NULL, 4, x), NG_ENULL);
    assert_ok(ng_forward_using(net, tape, w, 4, x));
}

/* A layer that reads its parameter without ng_parameter_value. */
typedef struct {
    ng_module base;
    ng_tensor *weight;
} headstrong;

static ng_tensor *headstrong_forward(ng_module *self, ng_tape *on, ng_tensor *x)
{
    return ng_mul(on, x, ((headstrong *)self)->weight);
}

static const ng_module_class headstrong_class = {
    .name = "Headstrong", .size = sizeof(headstrong), .forward = headstrong_forward};

static ng_module *headstrong_new(void)
{
    headstrong *self = (headstrong *)ng_module_new(&headstrong_class);
    self->weight = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(3), .value = 2);
    return ng_module_built(&self->base);
}

START_TEST(a_layer_that_reads_its_parameter_itself_is_an_error)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, 3), 1), *w[1] = {normal(NG_F32, NG_SHAPE(3), 2)};
    ng_module *net = own(ng_sequential_new(headstrong_new())),
              *wrapped = own(ng_weight_norm_new(headstrong_new()));
    assert_fails(ng_forward_using(net, tape, w, 1, x), NG_ESTATE, "0 (Headstrong): ng_mul");
    assert_fails(ng_forward(wrapped, tape, x), NG_ESTATE, "ng_mul");

    assert_ok(ng_forward(net, tape, x)); /* nothing stands in for anything any more */
    ng_named_tensor p;
    ck_assert(ng_module_parameter(net, 0, &p));
    assert_ok(ng_forward_using(net, tape, &p.tensor, 1, x)); /* nor here */
}

/* ---- ng_module_copy, ng_module_average ------------------------------------------------------- */

/* With running statistics, a counter, and parameters at several depths. */
static ng_module *trained(uint64_t seed)
{
    ng_module *net =
        ng_sequential_new(ng_residual_new(ng_sequential_new(ng_linear_new(3, 3), ng_tanh_new())),
                          ng_batch_norm_new(3), ng_weight_norm_new(ng_linear_new(3, 2)));
    assert_ok(ng_module_init(net, seed));
    for (uint64_t i = 0; i < seed; i++)
        assert_ok(ng_forward(net, tape, normal(NG_F32, NG_SHAPE(5, 3), seed + i)));
    return net;
}

START_TEST(a_copied_network_gives_the_same_bits)
{
    ng_module *best = own(trained(1)), *net = own(trained(4));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(5, 3), 2);
    const int64_t made = allocations_made();
    assert_ok(ng_module_copy(best, net));
    assert_none_allocated_since(made);
    assert_same_module(best, net);
    assert_ok(ng_module_copy(net, net));
    assert_same_module(best, net);
    ng_eval(best), ng_eval(net);
    assert_same_bits(ng_forward(best, tape, x), ng_forward(net, tape, x));

    ng_module *wide = own(trained(2)), *back = own(trained(3));
    assert_ok(ng_module_to(wide, NG_F64));
    assert_ok(ng_module_copy(wide, net));
    ng_named_tensor p;
    ck_assert(ng_module_parameter(wide, 0, &p) && ng_dtype_of(p.tensor) == NG_F64);
    assert_ok(ng_module_copy(back, wide));
    assert_same_module(back, net);
}

/* For every layer, in training and evaluation: output, gradients and buffers have the same bits,
 * and the two share no tensor. By ng_module_copy, and by a file. */
START_TEST(every_copied_layer_gives_the_same_bits)
{
    const gradient_case *spec = layer_case(_i / 2);
    const ng_inputs in = drawn_inputs(spec);
    ng_module *module = layer_of(spec);
    assert_ok(ng_module_init(module, 6));
    ng_module *twin = own(layer_of(spec));
    if (_i % 2) {
        make_test_folder();
        assert_ok(ng_module_save(module, in_folder("layer")));
        assert_ok(ng_module_load(twin, in_folder("layer"), .verify = true));
        remove_test_folder();
    } else {
        assert_ok(ng_module_copy(twin, module));
    }

    ng_tape_seed(tape, 3);
    ng_tensor *y = ng_forward_with(module, tape, in);
    if (ng_requires_grad(y)) assert_ok(ng_backward(tape, ng_dot(tape, y, y)));
    ng_tensor *first = own(ng_copy_new(y, ng_dtype_of(y)));
    ng_named_tensor p, q;
    for (int i = 0; ng_module_parameter(twin, i, &p); i++) ck_assert(!ng_has_grad(p.tensor));
    ng_tape_seed(tape, 3);
    ng_tensor *again = ng_forward_with(twin, tape, in);
    if (ng_requires_grad(again)) assert_ok(ng_backward(tape, ng_dot(tape, again, again)));
    assert_same_bits(first, again);
    for (int i = 0; ng_module_parameter(module, i, &p); i++) {
        ck_assert(ng_module_parameter(twin, i, &q) && p.tensor != q.tensor);
        ck_assert_str_eq(p.name, q.name);
        assert_same_bits(ng_grad(p.tensor), ng_grad(q.tensor));
    }
    for (int i = 0; ng_module_buffer(module, i, &p); i++) {
        ck_assert(ng_module_buffer(twin, i, &q) && p.tensor != q.tensor);
        assert_same_bits(p.tensor, q.tensor);
    }
    ng_tape_reset(tape);
    ng_module_free(module); /* the other lives on */
    ng_tape_seed(tape, 3);
    assert_ok(ng_forward_with(twin, tape, in));
    ng_tape_reset(tape);
}

START_TEST(a_list_is_called_one_by_one)
{
    ng_module *list = own(ng_list_new(ng_linear_new(2, 3), ng_linear_new(2, 4)));
    assert_ok(ng_list_add(list, ng_layer_norm_new(2)));
    ck_assert_ptr_nonnull(ng_module_find(list, "2.weight"));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(5, 2), 3);
    const int64_t widths[] = {3, 4, 2};
    for (int i = 0; ng_module_child(list, i); i++)
        ck_assert_int_eq(ng_dim(ng_forward(ng_module_child(list, i), tape, x), 1), widths[i]);
    assert_fails(ng_forward(list, tape, x), NG_ESTATE);
    ng_module *sequential = own(ng_sequential_new(ng_relu_new()));
    assert_refused(ng_list_add(sequential, ng_relu_new()));
}

START_TEST(a_graph_notices_that_its_network_was_copied_into)
{
    ng_module *net = own(ng_linear_new(3, 2)), *other = own(ng_linear_new(3, 2));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(5, 3), 2);
    ng_tensor *loss = ng_sum(tape, ng_forward(net, tape, x));
    assert_ok(ng_module_copy(net, other));
    assert_fails(ng_backward(tape, loss), NG_ESTATE);
}

START_TEST(an_average_moves_parameters_by_its_formula_and_copies_buffers)
{
    const double decays[] = {0, 0.25, 0.999, 1};
    for (int k = 0; k < 8; k++) {
        const double decay = decays[k / 2];
        ng_module *slow = own(trained(1)), *before = own(trained(1)), *net = own(trained(4));
        if (k % 2) {
            assert_ok(ng_module_to(slow, NG_F64));
            assert_ok(ng_module_to(before, NG_F64));
        }
        const int64_t made = allocations_made();
        assert_ok(ng_module_average(slow, net, decay));
        assert_none_allocated_since(made);
        ng_named_tensor x, y, was;
        for (int i = 0; ng_module_parameter(slow, i, &x); i++) {
            ck_assert(ng_module_parameter(net, i, &y) && ng_module_parameter(before, i, &was));
            for (int64_t j = 0; j < ng_size(x.tensor); j++)
                assert_near(ng_get(x.tensor, j),
                            decay * ng_get(was.tensor, j) + (1 - decay) * ng_get(y.tensor, j),
                            k % 2 ? 1e-15 : 1e-7);
        }
        for (int i = 0; ng_module_buffer(slow, i, &x); i++) {
            ck_assert(ng_module_buffer(net, i, &y));
            assert_tensors_close(x.tensor, y.tensor, 0);
        }
    }
}

/* ---- ng_batch_norm_recompute ----------------------------------------------------------------- */

enum { SAMPLES = 23 };

static ng_module *with_batch_norms(ng_dtype dtype)
{
    ng_module *net = own(ng_sequential_new(
        ng_batch_norm_new(3), ng_conv2d_new(3, 4, 2), ng_batch_norm_new(4, .cumulative = true),
        ng_residual_new(ng_sequential_new(ng_relu_new(), ng_batch_norm_new(4))),
        ng_dropout_new(0.5), ng_flatten_new(), ng_linear_new(16, 5),
        ng_batch_norm_new(5, .ghost = 4), ng_tanh_new(), ng_batch_norm_new(5, .frozen = true),
        ng_batch_renorm_new(5)));
    assert_ok(ng_module_to(net, dtype));
    return net;
}

static ng_dataset *images(ng_dtype dtype)
{
    ng_rng rng = ng_rng_seeded(4);
    ng_tensor *x = ng_normal_new(dtype, NG_SHAPE(SAMPLES, 3, 3, 3), 5, 2, &rng);
    ng_dataset *data = ng_dataset_from(x, NG_NONE);
    ng_tensor_free(x);
    return data;
}

/* The statistics of x (N, C, ...), by their definition. */
static void assert_statistics_of(ng_module *norm, const ng_tensor *x, double tolerance)
{
    const int64_t channels = ng_dim(x, 1), inner = ng_size(x) / ng_dim(x, 0) / channels;
    for (int64_t c = 0; c < channels; c++) {
        long double sum = 0, squares = 0;
        const long double n = (long double)(ng_dim(x, 0) * inner);
        for (int64_t i = 0; i < ng_size(x); i++)
            if (i / inner % channels == c) sum += (long double)ng_get(x, i);
        for (int64_t i = 0; i < ng_size(x); i++)
            if (i / inner % channels == c) squares += powl((long double)ng_get(x, i) - sum / n, 2);
        assert_close(ng_get(ng_module_find(norm, "running_mean"), c), (double)(sum / n), tolerance);
        assert_close(ng_get(ng_module_find(norm, "running_var"), c), (double)(squares / (n - 1)),
                     tolerance);
    }
}

START_TEST(recomputed_statistics_are_those_of_all_data)
{
    static const int64_t sizes[] = {1, 7, SAMPLES, 100};
    for (int k = 0; k < 8; k++) {
        const ng_dtype dtype = k / 4 ? NG_F32 : NG_F64;
        const double tolerance = k / 4 ? 1e-4 : 1e-12;
        ng_module *net = with_batch_norms(dtype);
        ng_dataset *data = images(dtype);
        assert_ok(ng_batch_norm_recompute(net, data, sizes[k % 4]));
        ck_assert(net->training && ng_module_child(net, 4)->training);
        assert_values(ng_module_find(net, "9.running_var"), 0, 1, 1, 1, 1, 1);
        assert_values(ng_module_find(net, "10.running_deviation"), 0, 1, 1, 1, 1, 1);
        ck_assert(ng_item(ng_module_find(net, "2.num_batches_tracked")) ==
                  ceil((double)SAMPLES / (double)sizes[k % 4]));

        ng_eval(net);
        ng_tensor *x = ng_dataset_x(data);
        for (int i = 0; i <= 7; i++) {
            ng_module *child = ng_module_child(net, i);
            if (i == 0 || i == 2 || i == 7) assert_statistics_of(child, x, tolerance);
            if (i == 3) {
                ng_module *inside = ng_module_child(ng_module_child(child, 0), 1);
                assert_statistics_of(inside, ng_relu(tape, x), tolerance);
            }
            assert_ok(x = ng_forward(child, tape, x));
        }
        ng_tape_reset(tape), ng_dataset_free(data);
    }
}

START_TEST(statistics_that_cannot_be_recomputed_stay)
{
    ng_module *net = with_batch_norms(NG_F64);
    ng_dataset *data = own(images(NG_F64)), *single = own(images(NG_F32));
    ng_fill(ng_module_find(net, "7.running_mean"), 3);
    assert_fails(ng_batch_norm_recompute(net, single, 8), NG_EDTYPE, "ng_batch_norm");
    assert_refused(ng_batch_norm_recompute(net, data, 0));
    for (int64_t n = 0;; n++) {
        allocations_fail_after(n);
        if (!out_of_memory(ng_batch_norm_recompute(net, data, 8) != NG_OK)) break;
        ck_assert(net->training);
        assert_values(ng_module_find(net, "7.running_mean"), 0, 3, 3, 3, 3, 3);
        assert_values(ng_module_find(net, "0.running_mean"), 0, 0, 0, 0);
        ck_assert(ng_item(ng_module_find(net, "0.num_batches_tracked")) == 0);
    }
    ck_assert(ng_get(ng_module_find(net, "7.running_mean"), 0) != 3);

    const int64_t first = 0;
    ng_dataset *one = own(ng_dataset_subset_new(data, &first, 1));
    assert_fails(ng_batch_norm_recompute(net, one, 8), NG_ESHAPE);
    ng_freeze(net);
    assert_refused(ng_batch_norm_recompute(net, data, 8));
}

/* ---- ng_module_copy, ng_module_average, of values -------------------------------------------- */

/* Infinities and NaNs stay as they are. */
START_TEST(a_value_beyond_float_is_not_converted)
{
    ng_module *wide = own(ng_sequential_new(ng_linear_new(2, 2))),
              *narrow = own(ng_sequential_new(ng_linear_new(2, 2)));
    assert_ok(ng_module_to(wide, NG_F64));
    ng_tensor *bias = ng_module_find(wide, "0.bias"), *kept = ng_module_find(narrow, "0.bias");
    const double before = ng_get(kept, 0);
    ng_set(bias, 1, 1e300);
    assert_refused(ng_module_copy(narrow, wide));
    assert_refused(ng_module_average(narrow, wide, 0.5));
    ck_assert(ng_get(kept, 0) == before);
    assert_refused(ng_module_to(wide, NG_F32));
    ck_assert_int_eq(ng_dtype_of(ng_module_find(wide, "0.weight")), NG_F64);
    ng_set(bias, 1, (double)INFINITY);
    assert_ok(ng_module_copy(narrow, wide));
    ck_assert(isinf(ng_get(kept, 1)));
    assert_ok(ng_module_to(wide, NG_F32));
}

START_TEST(networks_that_differ_are_an_error_and_unchanged)
{
    ng_module *net = own(ng_sequential_new(ng_linear_new(3, 4), ng_layer_norm_new(4)));
    ng_module *twin = own(ng_sequential_new(ng_linear_new(3, 4), ng_layer_norm_new(4)));
    assert_ok(ng_module_init(net, 1));
    assert_ok(ng_module_copy(twin, net));
    const struct {
        ng_module *from;
        ng_status status;
    } wrong[] = {{NULL, NG_ENULL},
                 {ng_linear_new(3, 4), NG_EVALUE},
                 {ng_sequential_new(ng_linear_new(3, 4), ng_layer_norm_new(5)), NG_ESHAPE},
                 {ng_sequential_new(ng_linear_new(3, 4), ng_rms_norm_new(4)), NG_EVALUE},
                 {ng_sequential_new(ng_linear_new(3, 4), ng_batch_norm_new(4)), NG_EVALUE}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_fails(ng_module_copy(net, wrong[i].from), wrong[i].status);
        assert_fails(ng_module_average(net, wrong[i].from, 0.5), wrong[i].status);
        ng_module_free(wrong[i].from);
    }
    const double decays[] = {-0.1, 1.1, (double)NAN};
    for (int i = 0; i < 3; i++) assert_refused(ng_module_average(net, twin, decays[i]));
    assert_fails(ng_module_copy(NULL, net), NG_ENULL);
    assert_same_module(net, twin);
}

/* ---- Functions as layers -------------------------------------------------------------------- */

START_TEST(a_layer_of_a_function_is_the_function_with_its_settings)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 4, 6), 2);
    ng_tensor *slopes = ng_full(tape, NG_F64, NG_SHAPE(4), -0.5);
    const struct {
        ng_module *layer;
        ng_tensor *expected;
    } row[] = {
        {ng_glu_new(), ng_glu(tape, x)},
        {ng_leaky_relu_new(0.2), ng_leaky_relu(tape, x, 0.2)},
        {ng_elu_new(0.3), ng_elu(tape, x, 0.3)},
        {ng_celu_new(0.4), ng_celu(tape, x, 0.4)},
        {ng_prelu_new(1), ng_leaky_relu(tape, x, 0.25)},
        {ng_prelu_new(4, .slope = -0.5), ng_prelu(tape, x, slopes)},
        {ng_prelu_new(1, .slope = NG_ZERO), ng_relu(tape, x)},
        {ng_local_response_norm_new(3), ng_local_response_norm(tape, x, 3)},
        {ng_local_response_norm_new(3, .alpha = 2, .beta = NG_ZERO, .k = NG_ZERO), x},
        {ng_local_response_norm_new(2, .alpha = 0.5, .beta = 0.6, .k = 3),
         ng_local_response_norm(tape, x, 2, .alpha = 0.5, .beta = 0.6, .k = 3)},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        ck_assert(!ng_module_to(row[i].layer, NG_F64));
        assert_tensors_close(ng_forward(row[i].layer, tape, x), row[i].expected, 0);
        ng_module_free(row[i].layer);
    }
}

START_TEST(a_function_is_a_layer_that_shows_its_name)
{
    char name[] = "my sine";
    ng_module *net = ng_sequential_new(ng_linear_new(3, 2), ng_function_new(name, ng_sin));
    name[0] = 'x'; /* a copy was taken */
    ng_tensor *x = normal(NG_F32, NG_SHAPE(5, 3), 2);
    assert_same_bits(ng_forward(net, tape, x),
                     ng_sin(tape, ng_forward(ng_module_child(net, 0), tape, x)));
    char *text = summary_of(net);
    ck_assert_ptr_nonnull(strstr(text, "Function(my sine)"));
    free(text), ng_module_free(net);

    assert_fails(ng_function_new(NULL, ng_sin), NG_ENULL);
    assert_fails(ng_function_new("none", NULL), NG_ENULL);
    assert_refused(ng_function_new("a name of as many characters as nobody would read", ng_sin));
}

Suite *networks_suite(void)
{
    Suite *suite = suite_create("networks");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(
        tests, a_parameter_may_stand_for_itself,
        a_wrong_value_for_a_parameter_is_an_error_with_its_name,
        a_layer_that_reads_its_parameter_itself_is_an_error, a_copied_network_gives_the_same_bits,
        a_list_is_called_one_by_one, a_graph_notices_that_its_network_was_copied_into,
        an_average_moves_parameters_by_its_formula_and_copies_buffers,
        recomputed_statistics_are_those_of_all_data, statistics_that_cannot_be_recomputed_stay,
        a_value_beyond_float_is_not_converted, networks_that_differ_are_an_error_and_unchanged,
        a_layer_of_a_function_is_the_function_with_its_settings,
        a_function_is_a_layer_that_shows_its_name);
    add_loops(tests, case_count(layer_case), every_layer_is_a_function_of_its_parameters);
    add_loops(tests, 2 * case_count(layer_case), every_copied_layer_gives_the_same_bits);
    return suite;
}
