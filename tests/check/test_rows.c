/* What the checker finds beside wrong derivatives: rows that depend on each other, shapes for which
 * a layer is wrong, a backward pass that is not linear. */
#include "support/support.h"

static void expect_passed(ng_check_report report, const char *what)
{
    ck_assert_msg(report.passed, "%s: %s", what, report.message);
}

static void expect_says(ng_check_report report, const char *part)
{
    ck_assert(!report.passed);
    ck_assert_msg(strstr(report.message, part), "\"%s\" is not in \"%s\"", part, report.message);
}

static ng_tensor *normal(uint64_t seed, ng_shape shape)
{
    ng_rng rng = ng_rng_seeded(seed);
    return own(ng_normal_new(NG_F64, shape, 0, 1, &rng));
}

/* ---- Every layer ----------------------------------------------------------------------------- */

START_TEST(each_sample_is_computed_as_if_it_were_alone_unless_the_layer_says_otherwise)
{
    const gradient_case *spec = layer_case(_i);
    const ng_check_report report = check_case(
        spec, (ng_check_options){.mode = NG_CHECK_FAST, .directions = 1, .independent = 1});
    if (!spec->inputs[0].batch)
        expect_passed(report, spec->name);
    else
        expect_says(report, "without the other");
}

/* The tolerance leaves room for derivatives of 1e-6 in transformers. */
START_TEST(each_layer_is_right_for_every_shape_that_it_takes)
{
    const gradient_case *spec = layer_case(_i);
    const ng_check_report report = check_case(
        spec, (ng_check_options){
                  .mode = NG_CHECK_FAST, .directions = 1, .shapes = true, .tolerance = 1e-4});
    expect_passed(report, spec->name);
    if (!spec->inputs[1].name) ck_assert_int_gt(report.shapes, 0);
}

START_TEST(norms_take_the_shapes_that_they_document)
{
    const struct {
        ng_module *layer;
        int shapes;
    } rows[] = {
        {own(ng_layer_norm_new(5)), 8},    {own(ng_rms_norm_new(5)), 8},
        {own(ng_group_norm_new(1, 5)), 9}, {own(ng_batch_norm_new(5)), 5},
        {own(ng_gelu_new()), 13},
    };
    ng_tensor *x = normal(1, NG_SHAPE(3, 5));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ng_check_report report =
            ng_check_module(rows[i].layer, &x, 1, .mode = NG_CHECK_FAST, .shapes = true);
        expect_passed(report, "a layer");
        ck_assert_msg(report.shapes == rows[i].shapes, "layer %d takes %d shapes", (int)i,
                      report.shapes);
    }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

#define CALL(name, expression)                                                                     \
    static ng_tensor *name(ng_tape *tape, ng_tensor *const *in, void *context)                     \
    {                                                                                              \
        (void)context;                                                                             \
        return expression;                                                                         \
    }
CALL(causal, ng_self_attention(tape, in[0], NG_NONE, .heads = 1, .causal = true))
CALL(not_causal, ng_self_attention(tape, in[0], NG_NONE, .heads = 1))
CALL(of_the_batch, ng_add(tape, in[0], ng_mean(tape, ng_square(tape, in[0]))))
CALL(mean_of_rows, ng_mean(tape, in[0], .axes = NG_AXES(0)))
CALL(masked, ng_mul(tape, in[0], ng_unsqueeze(tape, in[1], 2)))
CALL(masked_along_the_wrong_axis,
     ng_mul(tape, in[0], ng_unsqueeze(tape, ng_transpose(tape, in[1], 0, 1), 2)))

/* RMSNorm whose sum runs in another order where the batch has eight rows or more, as a kernel does
 * that gives each row fewer threads in a large batch. */
static ng_tensor *sum_of_squares_definition(ng_tape *tape, const ng_node *node)
{
    return ng_rms_norm(tape, node->inputs[0], NG_NONE, .eps = 1e-6);
}

static ng_tensor *in_two_orders(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "in two orders", .definition = sum_of_squares_definition};
    const int64_t rows = ng_dim(in[0], 0), n = ng_dim(in[0], 1), parts = rows < 8 ? 2 : 1;
    ng_tensor *y = ng_result(tape, NG_F64, ng_shape_of(in[0]));
    (void)context;
    for (int64_t r = 0; y && r < rows; r++) {
        const double *x = ng_data_f64(in[0]) + r * n;
        double sum = 0;
        for (int64_t part = 0; part < parts; part++) {
            double sum_of_part = 0;
            for (int64_t i = part; i < n; i += parts) sum_of_part += x[i] * x[i];
            sum += sum_of_part;
        }
        for (int64_t i = 0; i < n; i++)
            ng_data_f64(y)[r * n + i] = x[i] / sqrt(sum / (double)n + 1e-6);
    }
    return y ? ng_record(tape, &op, y, in, 1, NULL, 0) : NULL;
}

START_TEST(rows_that_depend_on_others_are_found)
{
    const struct {
        ng_check_call *call;
        ng_tensor *in[2];
        int n, independent;
        bool causal;
        const char *says;
    } rows[] = {
        {causal, {normal(1, NG_SHAPE(2, 4, 6))}, 1, 1, false, NULL},
        {causal, {normal(1, NG_SHAPE(2, 4, 6))}, 1, 2, true, NULL},
        {causal, {normal(1, NG_SHAPE(2, 4, 6))}, 1, 2, false, "without the other rows"},
        {not_causal, {normal(1, NG_SHAPE(2, 4, 6))}, 1, 1, false, NULL},
        {not_causal, {normal(1, NG_SHAPE(2, 4, 6))}, 1, 2, true, "without later rows"},
        {of_the_batch, {normal(1, NG_SHAPE(3, 4))}, 1, 1, false, "row 0 of the result is"},
        {mean_of_rows, {normal(1, NG_SHAPE(3, 4))}, 1, 1, false, "do not share 1 dimensions"},
        {masked, {normal(1, NG_SHAPE(3, 3, 2)), normal(2, NG_SHAPE(3, 3))}, 2, 1, false, NULL},
        {masked, {normal(1, NG_SHAPE(3, 3, 2)), normal(2, NG_SHAPE(3, 3))}, 2, 2, false, NULL},
        {masked_along_the_wrong_axis,
         {normal(1, NG_SHAPE(3, 3, 2)), normal(2, NG_SHAPE(3, 3))},
         2,
         1,
         false,
         "row 0 without the others: "},
        {in_two_orders, {normal(1, NG_SHAPE(7, 19))}, 1, 1, false, NULL},
        {in_two_orders, {normal(1, NG_SHAPE(9, 19))}, 1, 1, false, "without the other rows"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ng_check_report report = ng_check_function(
            rows[i].call, rows[i].in, rows[i].n, .independent = rows[i].independent,
            .causal = rows[i].causal, .mode = NG_CHECK_FAST);
        if (rows[i].says)
            expect_says(report, rows[i].says);
        else
            expect_passed(report, "independent rows");
        expect_passed(
            ng_check_function(rows[i].call, rows[i].in, rows[i].n, .order = 2, .tolerance = 1e-8),
            "the derivatives");
    }
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* LayerNorm whose gradient takes all but the first dimension for a row:
 * dx = r (dy - mean(dy) - y mean(dy y)). */
static ng_tensor *mean_of_each(ng_tape *tape, ng_tensor *x)
{
    return ng_mean(tape, x, .axes = NG_AXES(1), .keepdim = true);
}

static void gradient_of_rank_2(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const ng_shape whole = ng_shape_of(dy);
    const ng_shape flat = NG_SHAPE(whole.dim[0], ng_size(dy) / (whole.dim[0] ? whole.dim[0] : 1));
    ng_tensor *x = ng_reshape(tape, node->inputs[0], flat), *y = node->output;
    ng_tensor *variance = ng_variance(tape, x, .axes = NG_AXES(1), .keepdim = true);
    ng_tensor *r = ng_rsqrt(tape, ng_add_scalar(tape, variance, 1e-5));
    y = ng_reshape(tape, y, flat), dy = ng_reshape(tape, dy, flat);
    ng_tensor *off = ng_sub(tape, dy, mean_of_each(tape, dy));
    off = ng_sub(tape, off, ng_mul(tape, y, mean_of_each(tape, ng_mul(tape, dy, y))));
    dx[0] = ng_reshape(tape, ng_mul(tape, r, off), whole);
}

static ng_tensor *right_at_rank_2(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "right at rank 2", .gradient = gradient_of_rank_2};
    (void)context;
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *y = ng_layer_norm(tape, in[0], NG_NONE, NG_NONE, .eps = 1e-5);
    ng_tape_set_recording(tape, was);
    return y ? ng_record(tape, &op, y, in, 1, NULL, 0) : NULL;
}

/* y = x gamma, whose gradient of gamma is a mean times the number of rows: NaN if there is none. */
static void gradient_by_means(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const double rows = (double)ng_dim(dy, 0);
    ng_tensor *sum = ng_sum(tape, ng_mul(tape, dy, node->inputs[0]), .axes = NG_AXES(0));
    dx[0] = ng_mul(tape, dy, node->inputs[1]);
    dx[1] = ng_mul_scalar(tape, sum, rows / rows);
}

static ng_tensor *scaled_columns(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "by means", .gradient = gradient_by_means};
    (void)context;
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *y = ng_mul(tape, in[0], in[1]);
    ng_tape_set_recording(tape, was);
    if (y && ng_shape_of(y).rank > 2) ng_fail(NG_ESHAPE, "two dimensions were expected"), y = NULL;
    return y ? ng_record(tape, &op, y, in, 2, NULL, 0) : NULL;
}

START_TEST(a_shape_for_which_the_gradient_is_wrong_is_named)
{
    ng_tensor *x = normal(1, NG_SHAPE(3, 5)), *line = normal(1, NG_SHAPE(5));
    expect_passed(ng_check_function(right_at_rank_2, &x, 1), "rank 2");
    ng_check_report report = ng_check_function(right_at_rank_2, &x, 1, .shapes = true);
    expect_says(report, "first input (2, 3, 5): ");
    ck_assert_int_eq(report.shapes, 4); /* (1, 5), (17, 5) and (0, 5) before it */
    ng_tensor *in[] = {x, line};
    report = ng_check_function(scaled_columns, in, 2, .shapes = true);
    expect_says(report, "first input (0, 5): ");
    expect_says(ng_check_function(of_the_batch, &line, 1, .shapes = true), "two dimensions");
}

/* ---- Linear in the cotangent ----------------------------------------------------------------- */

/* y = x^2 with dx = 2 x dy, where dy is cut off at 100 or left out below 1e-6. */
static void bent_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const bool clipped = *(const bool *)node->attributes;
    ng_tensor *small = ng_full(tape, NG_F64, NG_SCALAR, 1e-6);
    ng_tensor *kept = clipped ? ng_clamp(tape, dy, -100, 100)
                              : ng_mul(tape, dy, ng_greater(tape, ng_abs(tape, dy), small));
    dx[0] = ng_mul(tape, kept, ng_mul_scalar(tape, node->inputs[0], 2));
}

static ng_tensor *bent_square(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "bent", .gradient = bent_gradient};
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *y = ng_square(tape, in[0]);
    ng_tape_set_recording(tape, was);
    return y ? ng_record(tape, &op, y, in, 1, context, sizeof(bool)) : NULL;
}

START_TEST(a_backward_pass_that_is_not_linear_in_the_cotangent_is_found)
{
    ng_tensor *x = normal(1, NG_SHAPE(3, 5));
    for (int i = 0; i < 2; i++) {
        bool clipped = i;
        expect_says(ng_check_function(bent_square, &x, 1, .context = &clipped), "not linear");
    }
}

/* ---- Out of memory --------------------------------------------------------------------------- */

START_TEST(an_allocation_that_fails_fails_the_check)
{
    ng_module *layer = own(ng_layer_norm_new(3));
    ng_tensor *x = normal(1, NG_SHAPE(2, 3));
    bool refused = true;
    int64_t tried = 0;
    for (int64_t allowed = 0; refused; allowed = 1 + allowed * 5 / 4, tried++) {
        const int64_t live = allocations_live();
        allocations_fail_after(allowed);
        const ng_check_report report =
            ng_check_module(layer, &x, 1, .mode = NG_CHECK_FAST, .directions = 1, .order = 3,
                            .independent = 1, .shapes = true);
        refused = allocations_refused();
        allocations_succeed();
        ng_clear_error();
        ck_assert_int_eq(allocations_live(), live);
        ck_assert_int_eq(report.passed, !refused);
        ck_assert_int_eq(report.message[0] != '\0', refused);
    }
    ck_assert_int_gt(tried, 10);
}

Suite *rows_suite(void)
{
    Suite *suite = suite_create("rows");
    TCase *tests = add_case(suite, NULL, NULL);
    add_loops(tests, case_count(layer_case),
              each_sample_is_computed_as_if_it_were_alone_unless_the_layer_says_otherwise,
              each_layer_is_right_for_every_shape_that_it_takes);
    add_tests(tests, norms_take_the_shapes_that_they_document, rows_that_depend_on_others_are_found,
              a_shape_for_which_the_gradient_is_wrong_is_named,
              a_backward_pass_that_is_not_linear_in_the_cotangent_is_found,
              an_allocation_that_fails_fails_the_check);
    return suite;
}
