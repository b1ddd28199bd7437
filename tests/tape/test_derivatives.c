/* Jacobians, Hessians and their products with vectors; leaves, constants and random tensors on the
 * tape. */
#include "core/shape.h"
#include "support/fixture.h"
#include "support/support.h"
#include <float.h>

static ng_rng rng;

static ng_tensor *leaf(ng_shape shape)
{
    return ng_require_grad(own(ng_normal_new(NG_F64, shape, 0, 1, &rng)));
}

static ng_tensor *vector(ng_shape shape) { return own(ng_normal_new(NG_F64, shape, 0, 1, &rng)); }

static void begin(void)
{
    set_up();
    rng = ng_rng_seeded(11);
}

/* ---- Closed forms ---------------------------------------------------------------------------- */

enum { N = 10 };

/* sum_i 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2; Rosenbrock 1960 */
static ng_tensor *rosenbrock(ng_tensor *x)
{
    ng_tensor *first = ng_slice(tape, x, 0, 0, -1), *next = ng_slice(tape, x, 0, 1, NG_END);
    ng_tensor *valley = ng_square(tape, ng_sub(tape, next, ng_square(tape, first)));
    ng_tensor *slope = ng_square(tape, ng_scalar_sub(tape, 1, first));
    return ng_sum(tape, ng_add(tape, ng_mul_scalar(tape, valley, 100), slope));
}

static double rosenbrock_second(const ng_tensor *x, int i, int j)
{
    if (j == i + 1) return -400 * ng_get(x, i);
    if (i == j + 1) return -400 * ng_get(x, j);
    if (i != j) return 0;
    const double first = i < N - 1 ? 1200 * pow(ng_get(x, i), 2) - 400 * ng_get(x, i + 1) + 2 : 0;
    return first + (i > 0 ? 200 : 0);
}

START_TEST(the_hessian_of_ten_variables_is_its_closed_form)
{
    ng_tensor *x = leaf(NG_SHAPE(N)), *h = ng_hessian(tape, rosenbrock(x), x);
    assert_ok(h);
    ck_assert(ng_shape_equal(ng_shape_of(h), NG_SHAPE(N, N)));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            const double expected = rosenbrock_second(x, i, j);
            assert_near(ng_at(h, i, j), expected, 1e-12 * fabs(expected));
        }
}

/* f = sum x^4: the Jacobian of its Hessian is 24 x on the diagonal. */
START_TEST(a_recorded_hessian_has_a_jacobian)
{
    ng_tensor *x = leaf(NG_SHAPE(3));
    ng_tensor *f = ng_sum(tape, ng_square(tape, ng_square(tape, x)));
    ng_tensor *third = ng_jacobian(tape, ng_hessian(tape, f, x, .record = true), x);
    assert_ok(third);
    ck_assert_int_eq(ng_rank(third), 3);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                assert_near(ng_at(third, i, j, k), i == j && j == k ? 24 * ng_get(x, i) : 0, 1e-12);
}

/* y = A x: J = A, a row for each element of y. */
START_TEST(the_jacobian_of_a_product_is_its_matrix)
{
    ng_tensor *a = vector(NG_SHAPE(2, 3)), *x = leaf(NG_SHAPE(3, 4));
    ng_tensor *j = ng_jacobian(tape, ng_matmul(tape, a, x), x);
    assert_ok(j);
    ck_assert(ng_shape_equal(ng_shape_of(j), NG_SHAPE(2, 4, 3, 4)));
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 4; c++)
            for (int k = 0; k < 3; k++)
                for (int l = 0; l < 4; l++)
                    ck_assert_double_eq(ng_at(j, r, c, k, l), c == l ? ng_at(a, r, k) : 0);
}

START_TEST(of_what_is_linear_the_second_derivative_is_zero)
{
    ng_tensor *x = leaf(NG_SHAPE(2)), *v = vector(NG_SHAPE(2)), *product;
    ng_tensor *y = ng_sum(tape, ng_mul_scalar(tape, x, 3));
    assert_values(ng_hessian(tape, y, x), 0, 0, 0, 0, 0);
    assert_ok(ng_hvp(tape, y, &x, 1, &v, &product));
    assert_values(product, 0, 0, 0);
}

/* ---- Networks with each norm ----------------------------------------------------------------- */

static ng_module *group_norm(int64_t dim) { return ng_group_norm_new(1, dim); }
static ng_module *detach_norm(int64_t dim) { return ng_detach_norm_new(dim); }
static ng_module *projected(int64_t dim) { return ng_adaptive_layer_norm_new(dim); }
static ng_module *renorm(int64_t dim) { return ng_batch_renorm_new(dim); }
static ng_module *weight_norm(int64_t dim) { return ng_weight_norm_new(ng_linear_new(dim, dim)); }

static ng_norm_maker *const norms[] = {
    ng_norm_layer, ng_norm_rms, ng_norm_batch, ng_norm_scale, ng_norm_dynamic_tanh, ng_norm_derf,
    group_norm,    detach_norm, projected,     renorm,        weight_norm,
};

static ng_module *network(ng_norm_maker *norm)
{
    ng_module *net =
        ng_sequential_new(ng_linear_new(3, 4), norm(4), ng_tanh_new(), ng_linear_new(4, 1));
    assert_ok(net);
    assert_ok(ng_module_to(net, NG_F64));
    return net;
}

enum { MOST = 16 };

/* Slices of `flat` in the shapes of the parameters; returns how many. */
static int parts_of(ng_module *net, ng_tensor *flat, ng_tensor **parts)
{
    ng_named_tensor p;
    int n = 0;
    for (int64_t at = 0; ng_module_parameter(net, n, &p); at += ng_size(p.tensor), n++)
        parts[n] = ng_reshape(tape, ng_slice(tape, flat, 0, at, at + ng_size(p.tensor)),
                              ng_shape_of(p.tensor));
    return n;
}

static ng_tensor *loss_of(ng_module *net, ng_tensor *const *w, int n)
{
    ng_tensor *x = ng_normal(tape, NG_F64, NG_SHAPE(5, 3), 0, 1);
    return ng_mean(tape, ng_square(tape, ng_forward_using(net, tape, w, n, x)));
}

START_TEST(a_product_with_the_hessian_of_a_network_is_that_of_its_rows)
{
    ng_module *net = own(network(norms[_i]));
    const int64_t size = ng_parameter_count(net);
    ng_tensor *theta = leaf(NG_SHAPE(size)), *v = vector(NG_SHAPE(size));
    ng_tensor *w[MOST], *vectors[MOST], *products[MOST];
    const int n = parts_of(net, theta, w);
    parts_of(net, v, vectors);
    ng_tensor *loss = loss_of(net, w, n);
    ng_tensor *h = ng_hessian(tape, loss, theta);
    assert_ok(ng_hvp(tape, loss, w, n, vectors, products));

    /* d (g . v) / dx: rows of the Hessian, the weights in v; it need not be symmetric where a
     * value was detached. */
    ng_tensor *expected = ng_matmul(tape, ng_reshape(tape, v, NG_SHAPE(1, size)), h);
    for (int i = 0; i < n; i++) products[i] = ng_reshape(tape, products[i], NG_SHAPE(1, -1));
    assert_tensors_close(ng_concat(tape, products, n, 1), expected, 1e-9);
}

static ng_tensor *moved(ng_module *net, ng_tensor *x, ng_tensor *v, double h)
{
    return ng_forward(net, tape, ng_add(tape, x, ng_mul_scalar(tape, v, h)));
}

START_TEST(a_forward_derivative_is_that_of_differences)
{
    ng_module *net = own(network(norms[_i]));
    if (norms[_i] == detach_norm || norms[_i] == renorm) ng_eval(net);
    ng_tensor *x = leaf(NG_SHAPE(5, 3)), *v = vector(NG_SHAPE(5, 3));
    ng_tensor *forward = ng_jvp(tape, ng_forward(net, tape, x), &x, 1, &v);
    assert_ok(forward);
    const double h = 1e-4;
    ng_tensor *near = ng_sub(tape, moved(net, x, v, h), moved(net, x, v, -h));
    ng_tensor *far = ng_sub(tape, moved(net, x, v, 2 * h), moved(net, x, v, -2 * h));
    ng_tensor *numeric =
        ng_mul_scalar(tape, ng_sub(tape, ng_mul_scalar(tape, near, 8), far), 1 / (12 * h));
    if (norms[_i] != detach_norm) assert_tensors_close(forward, numeric, 1e-8);
    ng_tensor *jacobian = ng_jacobian(tape, ng_forward(net, tape, x), x);
    ng_tensor *flat = ng_reshape(tape, jacobian, NG_SHAPE(5, 15));
    ng_tensor *product = ng_matmul(tape, flat, ng_reshape(tape, v, NG_SHAPE(15, 1)));
    assert_tensors_close(ng_reshape(tape, forward, NG_SHAPE(5, 1)), product, 1e-12);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

START_TEST(what_lacks_a_gradient_is_an_error)
{
    ng_tensor *x = leaf(NG_SHAPE(3)), *other = leaf(NG_SHAPE(3)), *found = NULL;
    ng_tensor *plain = own(ng_ones_new(NG_F64, NG_SHAPE(3)));
    ng_tensor *y = ng_sum(tape, ng_exp(tape, x)), *g = ng_gradient(tape, y, x); /* not recorded */
    assert_fails(ng_hessian(tape, y, plain), NG_EGRAD);
    assert_fails(ng_jacobian(tape, y, other), NG_EGRAD);
    assert_fails(ng_hessian(tape, y, other), NG_EGRAD);
    assert_fails(ng_jacobian(tape, g, x), NG_EGRAD);
    assert_fails(ng_gradient(tape, ng_sum(tape, g), x), NG_EGRAD);
    assert_fails(ng_backward(tape, ng_sum(tape, g)), NG_EGRAD);
    assert_fails(ng_hessian(tape, y, g), NG_EGRAD);
    assert_fails(ng_hvp(tape, ng_sum(tape, g), &x, 1, &g, &found), NG_EGRAD);
    assert_fails(ng_jvp(tape, g, &x, 1, &g), NG_EGRAD);
    assert_values(ng_jacobian(tape, g, x, .allow_unused = true), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

START_TEST(shapes_and_dtypes_that_do_not_fit_are_errors)
{
    ng_tensor *x = leaf(NG_SHAPE(3)), *v = vector(NG_SHAPE(2)), *found = NULL;
    ng_tensor *y = ng_exp(tape, x), *sum = ng_sum(tape, y);
    ng_tensor *floats = own(ng_ones_new(NG_F32, NG_SHAPE(3)));
    assert_fails(ng_hessian(tape, y, x), NG_ESHAPE);
    assert_fails(ng_hvp(tape, sum, &x, 1, &v, &found), NG_ESHAPE);
    assert_fails(ng_hvp(tape, sum, &x, 1, &floats, &found), NG_EDTYPE);
    assert_fails(ng_jvp(tape, y, &x, 1, &floats), NG_EDTYPE);
    assert_refused(ng_hvp(tape, sum, &x, 0, &v, &found));
    ck_assert_ptr_null(found);
    ng_tensor *deep = ng_reshape(tape, y, NG_SHAPE(1, 1, 1, 1, 1, 1, 1, 3));
    assert_fails(ng_jacobian(tape, deep, x), NG_ESHAPE);
}

/* Every allocation is refused in turn. */
START_TEST(without_memory_there_is_an_error)
{
    for (int64_t n = 0, refused = 1; refused; n = next_to_refuse(n)) {
        ng_tape *fresh = ng_tape_new();
        ng_tensor *x = leaf(NG_SHAPE(40, 40)), *v = vector(NG_SHAPE(40, 40)), *found = NULL;
        allocations_fail_after(n);
        ng_tensor *y = ng_sum(fresh, ng_tanh(fresh, ng_matmul(fresh, x, x)));
        const bool done = y && ng_hvp(fresh, y, &x, 1, &v, &found) == NG_OK &&
                          ng_jvp(fresh, y, &x, 1, &v) != NULL;
        refused = out_of_memory(!done);
        ng_tape_free(fresh);
    }
}

/* ---- Leaves on the tape -------------------------------------------------------------------- */

START_TEST(a_variable_is_a_leaf_of_the_value_of_an_intermediate)
{
    ng_tensor *x = leaf(NG_SHAPE(3)), *h = ng_square(tape, x), *v = ng_variable(tape, h);
    ck_assert(ng_requires_grad(v) && !ng_node_of(v) && !ng_has_grad(v));
    assert_same_bits(v, h);
    ng_tensor *y = ng_sum(tape, ng_mul(tape, v, v));
    ng_tensor *dv = ng_gradient(tape, y, v);
    for (int i = 0; i < 3; i++) ck_assert_double_eq(ng_get(dv, i), 2 * ng_get(h, i));
    assert_fails(ng_gradient(tape, y, x), NG_EGRAD);

    assert_ok(ng_backward(tape, y));
    assert_same_bits(ng_grad(v), dv);
    assert_ok(ng_backward(tape, y));
    for (int i = 0; i < 3; i++) ck_assert_double_eq(ng_get(ng_grad(v), i), 4 * ng_get(h, i));
    ck_assert(!ng_has_grad(x));
}

/* ---- Constants on the tape ----------------------------------------------------------------- */

START_TEST(constants_are_what_their_names_say)
{
    assert_values(ng_from(tape, NG_F32, NG_SHAPE(2, 2), NG_VALUES(1, 2, 3, 4)), 0, 1, 2, 3, 4);
    assert_values(ng_eye(tape, NG_F32, 2), 0, 1, 0, 0, 1);
    assert_values(ng_arange(tape, NG_I64, 2, 7, 2), 0, 2, 4, 6);
    assert_values(ng_arange(tape, NG_F64, 1, 0, -0.25), 0, 1, 0.75, 0.5, 0.25);
    ck_assert_int_eq(ng_size(ng_arange(tape, NG_F64, 0, 5, -1)), 0);
    assert_values(ng_arange(tape, NG_F64, 1, 1.3, 0.1), 1e-15, 1, 1.1, 1.2); /* 1 + 3 * 0.1 is to */
    assert_values(ng_arange(tape, NG_F64, -1, -1.3, -0.1), 1e-15, -1, -1.1, -1.2);
    ng_tensor *labels = ng_from(tape, NG_I64, NG_SHAPE(2), NG_VALUES(2, 0));
    ng_tensor *hot = ng_one_hot(tape, NG_F64, labels, 3);
    ck_assert(ng_shape_equal(ng_shape_of(hot), NG_SHAPE(2, 3)));
    assert_values(hot, 0, 0, 0, 1, 1, 0, 0);
    ck_assert(!ng_requires_grad(hot));
}

START_TEST(impossible_constants_are_errors)
{
    assert_fails(ng_from(tape, NG_F32, NG_SHAPE(3), NG_VALUES(1, 2)), NG_ESHAPE);
    assert_refused(ng_normal(tape, NG_F32, NG_SHAPE(3), 0, -1));
    assert_refused(ng_uniform(tape, NG_F32, NG_SHAPE(3), 1, 0));
    assert_refused(ng_uniform(tape, NG_F64, NG_SHAPE(3), -DBL_MAX, DBL_MAX));
    assert_refused(ng_arange(tape, NG_F32, 0, 1, 0));
    assert_refused(ng_arange(tape, NG_F32, 0, 1e18, 1));
    assert_fails(ng_eye(tape, NG_F32, -1), NG_ESHAPE);
    ng_tensor *labels = ng_from(tape, NG_I64, NG_SHAPE(2), NG_VALUES(2, 3));
    assert_refused(ng_one_hot(tape, NG_F64, labels, 3));
    assert_refused(ng_one_hot(tape, NG_F64, labels, 0));
    assert_refused(ng_one_hot(tape, NG_F64, labels, -1));
}

/* In float [1000, 1001) has 16,384 numbers; a draw rounded to the nearest would be 1001 in 3 of
 * 100,000. */
START_TEST(a_uniform_draw_is_never_the_end_of_its_range)
{
    const int64_t n = 300000;
    ng_tensor *one = ng_uniform(tape, NG_F32, NG_SHAPE(n), 1000, 1001);
    ck_assert_double_lt(ng_item(ng_max(tape, one)), 1001);
    ck_assert_double_ge(ng_item(ng_min(tape, one)), 1000);

    ng_tensor *digits = ng_uniform(tape, NG_I64, NG_SHAPE(n), 0, 10);
    ng_tensor *counts = ng_sum(tape, ng_one_hot(tape, NG_F64, digits, 10), .axes = NG_AXES(0));
    for (int i = 0; i < 10; i++)
        assert_near(ng_get(counts, i), (double)n / 10, 5 * sqrt((double)n * 0.09));

    ng_tensor *halves = ng_uniform(tape, NG_I64, NG_SHAPE(100), 0.5, 2.5);
    for (int i = 0; i < 100; i++) ck_assert(ng_get(halves, i) == 1 || ng_get(halves, i) == 2);
    ck_assert_double_eq(ng_item(ng_uniform(tape, NG_F32, NG_SHAPE(1), 3, 3)), 3);
    ck_assert_double_eq(ng_item(ng_uniform(tape, NG_I64, NG_SHAPE(1), 3, 3)), 3);
}

/* A range of int64 without a whole number is an error. */
START_TEST(a_whole_number_is_drawn_only_where_there_is_one)
{
    ng_tensor *x = own(ng_zeros_new(NG_I64, NG_SHAPE(3)));
    assert_refused(ng_uniform(tape, NG_I64, NG_SHAPE(3), 0.5, 1));
    assert_refused(ng_uniform(tape, NG_I64, NG_SHAPE(3), -0.5, -0.5));
    assert_refused(ng_uniform_new(NG_I64, NG_SHAPE(3), 1.2, 1.8, &rng));
    assert_refused(ng_fill_uniform(x, 1.2, 1.8, &rng));
    assert_values(x, 0, 0, 0, 0);
}

/* The same draws for the same seed, and others in the next call. */
START_TEST(what_is_drawn_on_a_tape_follows_its_seed)
{
    ng_tape_seed(tape, 4);
    ng_tensor *one = ng_normal(tape, NG_F64, NG_SHAPE(1000), 3, 2);
    ng_tensor *two = ng_uniform(tape, NG_F64, NG_SHAPE(1000), -1, 1);
    ng_tape_seed(tape, 4);
    assert_same_bits(one, ng_normal(tape, NG_F64, NG_SHAPE(1000), 3, 2));
    assert_same_bits(two, ng_uniform(tape, NG_F64, NG_SHAPE(1000), -1, 1));
    ck_assert_double_ne(ng_get(one, 0), ng_get(ng_normal(tape, NG_F64, NG_SHAPE(1), 3, 2), 0));
    assert_near(ng_item(ng_mean(tape, one)), 3, 5 * 2 / sqrt(1000));
    assert_near(sqrt(ng_item(ng_variance(tape, one))), 2, 5 * 2 / sqrt(2000));
    assert_near(ng_item(ng_mean(tape, two)), 0, 5 * sqrt(1.0 / 3 / 1000));
    ck_assert_double_ge(
        ng_item(ng_sum(tape, ng_greater_equal(tape, two, ng_full(tape, NG_F64, NG_SCALAR, -1)))),
        1000);
}

/* ---- ng_set_grad --------------------------------------------------------------------------- */

START_TEST(a_gradient_that_is_set_moves_the_parameter)
{
    ng_module *net = own(ng_linear_new(2, 1, .no_bias = true));
    ng_optimizer *sgd = own(ng_sgd_new(net, .lr = 0.5));
    ng_tensor *w = ng_module_find(net, "weight");
    const double before = ng_get(w, 0);
    assert_ok(ng_set_grad(w, own(ng_tensor_from(NG_F32, NG_SHAPE(1, 2), NG_VALUES(2, -4)))));
    assert_values(ng_grad(w), 0, 2, -4);
    assert_ok(ng_optimizer_step(sgd));
    assert_near(ng_get(w, 0), before - 1, 1e-6);
    assert_fails(ng_optimizer_step(sgd), NG_ESTATE); /* it is spent */

    assert_fails(ng_set_grad(w, own(ng_zeros_new(NG_F32, NG_SHAPE(2)))), NG_ESHAPE);
    assert_fails(ng_set_grad(w, own(ng_zeros_new(NG_F64, NG_SHAPE(1, 2)))), NG_EDTYPE);
    ng_tensor *y = ng_square(tape, w);
    assert_fails(ng_set_grad(y, y), NG_EGRAD);
    ng_tape_reset(tape);
}

Suite *derivatives_suite(void)
{
    Suite *suite = suite_create("derivatives");
    TCase *tests = add_case(suite, begin, tear_down);
    add_tests(tests, the_hessian_of_ten_variables_is_its_closed_form,
              a_recorded_hessian_has_a_jacobian, the_jacobian_of_a_product_is_its_matrix,
              of_what_is_linear_the_second_derivative_is_zero, what_lacks_a_gradient_is_an_error,
              shapes_and_dtypes_that_do_not_fit_are_errors, without_memory_there_is_an_error,
              a_variable_is_a_leaf_of_the_value_of_an_intermediate,
              constants_are_what_their_names_say, impossible_constants_are_errors,
              a_uniform_draw_is_never_the_end_of_its_range,
              a_whole_number_is_drawn_only_where_there_is_one,
              what_is_drawn_on_a_tape_follows_its_seed, a_gradient_that_is_set_moves_the_parameter);
    add_loops(tests, (int)(sizeof norms / sizeof *norms),
              a_product_with_the_hessian_of_a_network_is_that_of_its_rows,
              a_forward_derivative_is_that_of_differences);
    return suite;
}
