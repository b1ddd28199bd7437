/* Networks as functions of their parameters. */
#include "fixture.h"
#include "support.h"

static ng_tensor *normal(ng_dtype dtype, ng_shape shape, uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    return ng_require_grad(own(ng_normal_new(dtype, shape, 0.5, 1, &rng)));
}

/* ---- ng_forward_using ------------------------------------------------------------------------ */

enum { MOST = 64 };

/* Tensors that could stand for the parameters; how many. */
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

static ng_module *layer_of(const ng_case *spec)
{
    ng_module *module = spec->module();
    assert_ok(module);
    assert_ok(ng_module_to(module, NG_F64));
    if (spec->eval) ng_eval(module);
    ng_tape_seed(tape, 3);
    return module;
}

/* Output and gradients are those of a layer that has the tensors for parameters. */
START_TEST(every_layer_is_a_function_of_its_parameters)
{
    const ng_case *spec = ng_layer_case(_i);
    ng_rng rng = ng_rng_seeded(5);
    ng_tensor *values[MOST], *gradients[MOST];
    ng_tensor *x = own(ng_case_input_new(&spec->inputs[0], &rng));
    ng_tensor *c = spec->inputs[1].name ? own(ng_case_input_new(&spec->inputs[1], &rng)) : NG_NONE;

    ng_module *module = layer_of(spec);
    const int count = draw_parameters(module, values);
    ng_tensor *y = ng_forward_using(module, tape, x, values, count, .condition = c);
    assert_ok(y);
    ng_tensor *dy = normal(NG_F64, ng_shape_of(y), 9);
    if (count > 0)
        assert_ok(ng_gradients(tape, &y, 1, values, count, gradients, .cotangents = &dy));

    ng_module *same = layer_of(spec);
    ng_named_tensor p, untouched;
    for (int i = 0; ng_module_parameter(same, i, &p); i++)
        for (int64_t k = 0; k < ng_size(p.tensor); k++) ng_set(p.tensor, k, ng_get(values[i], k));
    ng_tensor *expected = ng_forward_given(same, tape, x, c);
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
    ng_module_free(module), ng_module_free(same);
}
END_TEST

/* The loss after two steps of gradient descent on other samples, as a function of where they
 * start. */
typedef struct {
    ng_module *net;
    ng_tensor *support, *query;
} task;

static ng_tensor *loss_of(ng_tape *on, const task *t, ng_tensor *x, ng_tensor *const *w, int n)
{
    ng_tensor *y = ng_forward_using(t->net, on, x, w, n);
    return ng_mean(on, ng_square(on, ng_add_scalar(on, y, -0.5)));
}

enum { META = 6 };

static ng_tensor *meta_loss(ng_tape *on, ng_tensor *const *in, void *context)
{
    const task *t = context;
    ng_tensor *w[META], *g[META];
    for (int i = 0; i < META; i++) w[i] = in[i];
    for (int step = 0; step < 2; step++) {
        ng_tensor *loss = loss_of(on, t, t->support, w, META);
        if (ng_gradients(on, &loss, 1, w, META, g, .record = true)) return NULL;
        for (int i = 0; i < META; i++) w[i] = ng_sub(on, w[i], ng_mul_scalar(on, g[i], 0.3));
    }
    return loss_of(on, t, t->query, w, META);
}

START_TEST(the_gradient_through_two_inner_steps_is_that_of_differences)
{
    ng_module *const norms[] = {ng_layer_norm_new(3), ng_batch_norm_new(3),
                                ng_group_norm_new(1, 3)};
    ng_tensor *w[META];
    for (int k = 0; k < 3; k++) {
        ng_module *net =
            ng_sequential_new(ng_linear_new(2, 3), norms[k], ng_tanh_new(), ng_linear_new(3, 2));
        assert_ok(ng_module_to(net, NG_F64));
        ck_assert_int_eq(draw_parameters(net, w), META);
        task t = {net, own(ng_copy_new(normal(NG_F64, NG_SHAPE(5, 2), 1), NG_F64)),
                  own(ng_copy_new(normal(NG_F64, NG_SHAPE(4, 2), 2), NG_F64))};
        for (int order = 1; order <= 2; order++) {
            const ng_check_report report =
                ng_check_function(meta_loss, w, META, .context = &t, .order = order);
            ck_assert_msg(report.passed, "norm %d: %s", k, report.message);
            ck_assert_int_ge(report.compared, 20);
        }
        ng_module_free(net);
    }
}
END_TEST

START_TEST(a_parameter_may_stand_for_itself)
{
    ng_module *net = ng_sequential_new(ng_linear_new(3, 4), ng_rms_norm_new(4));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 3), 1), *w[3];
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++) w[i] = p.tensor;
    ng_tensor *y = ng_forward_using(net, tape, x, w, 3);
    assert_same_bits(y, ng_forward(net, tape, x));
    assert_ok(ng_backward(tape, ng_sum(tape, y)));
    ck_assert(ng_has_grad(w[0]) && ng_has_grad(w[2]));
    ng_module_free(net);
}
END_TEST

START_TEST(what_cannot_stand_for_a_parameter_is_told_by_its_name)
{
    ng_module *net = ng_sequential_new(ng_linear_new(2, 3), ng_layer_norm_new(3));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, 2), 1), *w[4];
    ck_assert_int_eq(draw_parameters(net, w), 4);
    assert_ok(ng_forward_using(net, tape, x, w, 4));

    for (int count = -1; count <= 5; count++) {
        if (count == 4) continue;
        ck_assert_ptr_null(ng_forward_using(net, tape, x, w, count));
        assert_error(NG_EVALUE, "tensors for a Sequential of 4 parameters");
    }
    ng_tape *other = ng_tape_new();
    const struct {
        ng_tensor *value;
        ng_status status;
        const char *says;
    } wrong[] = {
        {NULL, NG_ENULL, "ng_forward_using: the tensor for 1.weight is NULL"},
        {NG_NONE, NG_EVALUE, "the tensor for 1.weight is NG_NONE"},
        {w[0], NG_ESHAPE, "the tensor for 1.weight is (3, 2), expected (3,)"},
        {normal(NG_F64, NG_SHAPE(3), 1), NG_EDTYPE,
         "the tensor for 1.weight is float64, expected float32"},
        {ng_full(other, NG_F32, NG_SHAPE(3), 1), NG_ESTATE,
         "the tensor for 1.weight lives on another tape"},
    };
    ng_tensor *const right = w[2];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        w[2] = wrong[i].value;
        ck_assert_ptr_null(ng_forward_using(net, tape, x, w, 4));
        assert_error(wrong[i].status, wrong[i].says);
    }
    w[2] = right;
    ck_assert_ptr_null(ng_forward_using(NULL, tape, x, w, 4));
    assert_error(NG_ENULL, "ng_forward_using: module is NULL");
    ck_assert_ptr_null(ng_forward_using(net, NULL, x, w, 4));
    assert_error(NG_ENULL, "ng_forward_using: tape is NULL");
    ck_assert_ptr_null(ng_forward_using(net, tape, NULL, w, 4));
    assert_error(NG_ENULL, "ng_forward_using: x is NULL");
    ck_assert_ptr_null(ng_forward_using(net, tape, x, NULL, 4));
    assert_error(NG_ENULL, "ng_forward_using: the list of parameters is NULL");
    assert_ok(ng_forward_using(net, tape, x, w, 4));
    ng_tape_free(other), ng_module_free(net);
}
END_TEST

/* A layer that reads its weight itself. */
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

START_TEST(a_layer_that_reads_its_parameter_itself_is_told_so)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, 3), 1), *w[1] = {normal(NG_F32, NG_SHAPE(3), 2)};
    ng_module *net = ng_sequential_new(headstrong_new()),
              *wrapped = ng_weight_norm_new(headstrong_new());
    ck_assert_ptr_null(ng_forward_using(net, tape, x, w, 1));
    assert_error(NG_ESTATE, "0 (Headstrong): ng_mul: operand 2 is a parameter that another tensor "
                            "stands for: read it with ng_stand_in");
    ck_assert_ptr_null(ng_forward(wrapped, tape, x));
    assert_error(NG_ESTATE, "read it with ng_stand_in");

    assert_ok(ng_forward(net, tape, x)); /* nothing stands in for anything any more */
    ng_named_tensor p;
    ck_assert(ng_module_parameter(net, 0, &p));
    assert_ok(ng_forward_using(net, tape, x, &p.tensor, 1)); /* nor here */
    ng_module_free(net), ng_module_free(wrapped);
}
END_TEST

START_TEST(weight_norm_takes_a_norm)
{
    ng_module *layer = ng_weight_norm_new(ng_layer_norm_new(3), .whole = true);
    assert_ok(ng_module_to(layer, NG_F64));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(4, 3), 1);
    const ng_check_report report = ng_check_module(layer, &x, 1, .order = 2);
    ck_assert_msg(report.passed, "%s", report.message);
    ng_module_free(layer);
}
END_TEST

Suite *networks_suite(void)
{
    Suite *suite = suite_create("networks");
    TCase *using = add_group(suite, "as functions");
    tcase_add_loop_test(using, every_layer_is_a_function_of_its_parameters, 0,
                        case_count(ng_layer_case));
    tcase_add_test(using, the_gradient_through_two_inner_steps_is_that_of_differences);
    tcase_add_test(using, a_parameter_may_stand_for_itself);
    tcase_add_test(using, what_cannot_stand_for_a_parameter_is_told_by_its_name);
    tcase_add_test(using, a_layer_that_reads_its_parameter_itself_is_told_so);
    tcase_add_test(using, weight_norm_takes_a_norm);
    return suite;
}
