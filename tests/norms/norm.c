#include "norms/norm.h"

ng_module *in_double(ng_module *layer)
{
    assert_ok(ng_module_to(own(layer), NG_F64));
    return layer;
}

ng_module *drawn(ng_module *layer)
{
    ng_rng rng = ng_rng_seeded(7);
    ng_named_tensor parameter;
    in_double(layer);
    for (int i = 0; ng_module_parameter(layer, i, &parameter); i++)
        assert_ok(ng_fill_normal(parameter.tensor, 0.5, 1, &rng));
    return layer;
}

ng_module *evaluating(ng_module *layer)
{
    ng_eval(layer);
    return layer;
}

/* ---- Finite differences ---------------------------------------------------------------------- */

/* The inputs of a call by name, x first. */
enum { INPUTS = 4 };
static const char *const input_names[INPUTS] = {"x", "condition", "style", "gate"};
static ng_tensor **input_of(norm_call *call, int i)
{
    ng_tensor **const inputs[] = {&call->in.x, &call->in.condition, &call->in.style,
                                  &call->in.gate};
    return inputs[i];
}

static ng_tensor *output_of(const norm_call *call)
{
    return ng_forward_with(call->layer, tape, call->in);
}

/* Fixed random numbers in the shape of y. */
static ng_tensor *numbers_like(const ng_tensor *y, uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    return ng_tape_own(tape, ng_normal_new(NG_F64, ng_shape_of(y), 0, 1, &rng));
}

static ng_tensor *loss_of(const norm_call *call)
{
    ng_tensor *y = output_of(call);
    return ng_sum(tape, ng_mul(tape, y, numbers_like(y, 11)));
}

static ng_tensor *slope_of(const norm_call *call)
{
    ng_tensor *dx = ng_gradient(tape, loss_of(call), call->in.x, .record = true);
    return ng_sum(tape, ng_mul(tape, dx, numbers_like(dx, 12)));
}

typedef ng_tensor *norm_scalar(const norm_call *call);

static double value_of(norm_scalar *f, const norm_call *call)
{
    const double value = ng_item(f(call));
    ng_tape_reset(tape);
    return value;
}

/* df/dt beside its central difference, whose error is about h^2, for each element; 0 where there is
 * no gradient, because f does not depend on t. */
static void expect_slopes(norm_scalar *f, const norm_call *call, const char *what, const char *name,
                          ng_tensor *t)
{
    const double h = 1e-5;
    const ng_tensor *gradient = ng_has_grad(t) ? ng_grad(t) : NULL;
    for (int64_t i = 0; i < ng_size(t); i++) {
        const double at = ng_get(t, i);
        assert_ok(ng_set(t, i, at + h));
        const double above = value_of(f, call);
        assert_ok(ng_set(t, i, at - h));
        const double below = value_of(f, call);
        assert_ok(ng_set(t, i, at));
        const double numeric = (above - below) / (2 * h),
                     analytic = gradient ? ng_get(gradient, i) : 0;
        ck_assert_msg(fabs(analytic - numeric) <= 1e-6 * (1 + fabs(numeric)),
                      "%s: d%s[%d] of order %d is %.12g, finite differences give %.12g", what, name,
                      (int)i, f == loss_of ? 1 : 2, analytic, numeric);
    }
}

void expect_gradients(const char *file, int line, const char *what, const norm_call *given)
{
    norm_scalar *const orders[] = {loss_of, slope_of};
    norm_call call = *given;
    ng_named_tensor parameter;
    _mark_point(file, line);
    for (int order = 0; order < 2; order++) {
        ng_zero_grads(call.layer);
        for (int i = 0; i < INPUTS; i++)
            if (*input_of(&call, i)) ng_zero_grad(ng_require_grad(*input_of(&call, i)));
        assert_ok(ng_backward(tape, orders[order](&call)));
        ng_tape_reset(tape);
        for (int i = 0; i < INPUTS; i++)
            if (*input_of(&call, i))
                expect_slopes(orders[order], &call, what, input_names[i], *input_of(&call, i));
        for (int i = 0; ng_module_parameter(call.layer, i, &parameter); i++)
            expect_slopes(orders[order], &call, what, parameter.name, parameter.tensor);
        assert_ok(!ng_failed());
    }
    expect_checked(&call);
}

void expect_checked(const norm_call *given)
{
    norm_call call = *given;
    ng_tensor *inputs[INPUTS];
    const char *names[INPUTS];
    int n = 0;
    for (int i = 0; i < INPUTS; i++)
        if (*input_of(&call, i)) names[n] = input_names[i], inputs[n++] = *input_of(&call, i);
    const ng_check_report report =
        ng_check_module(call.layer, inputs, n, .order = 2, .names = names);
    ck_assert_msg(report.passed, "%s", report.message);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

/* The figure ROW/PREFIXnameSUFFIX of a tensor of the layer, under its name or the papers'; NULL:
 * none. */
static ng_tensor *figure_of(const char *row, const char *prefix, const char *name,
                            const char *suffix)
{
    static const char *const other[][2] = {{"weight", "gamma"},
                                           {"bias", "beta"},
                                           {"running_mean", "mean"},
                                           {"running_var", "var"},
                                           {"running_deviation", "deviation"},
                                           {"inner.weight", "v"},
                                           {"inner.bias", "bias"}};
    char path[128];
    snprintf(path, sizeof path, "%s/%s%s%s", row, prefix, name, suffix);
    ng_tensor *found = golden_find(path);
    for (char *dot = path; !found && (dot = strchr(dot, '.'));)
        *dot = '_', found = golden_find(path);
    for (int i = 0; i < 7 && !found; i++) {
        if (strcmp(name, other[i][0])) continue;
        snprintf(path, sizeof path, "%s/%s%s%s", row, prefix, other[i][1], suffix);
        found = golden_find(path);
    }
    return found;
}

static const double tolerance = 1e-11;

void expect_pytorch(ng_module *layer, const char *file, pytorch_row figures)
{
    char path[64];
    const char *row = figures.name, *named = figures.input;
    snprintf(path, sizeof path, "tests/golden/%s.txt", file);
    golden_load(path);
    const char *inputs[] = {"x", named ? "condition" : NULL, NULL};
    ng_tensor *in[GOLDEN_INPUTS];
    ng_named_tensor t;
    in_double(layer);
    golden_inputs(row, inputs, in);
    for (int i = 0; ng_module_parameter(layer, i, &t); i++)
        assert_ok(ng_copy_values(t.tensor, figure_of(row, "", t.name, "")));
    for (int i = 0; ng_module_buffer(layer, i, &t); i++)
        if (figure_of(row, "", t.name, ""))
            assert_ok(ng_copy_values(t.tensor, figure_of(row, "", t.name, "")));
    norm_call call = *CALL(layer, in[0]);
    for (int i = 1; i < INPUTS && named; i++)
        if (strcmp(named, input_names[i]) == 0) *input_of(&call, i) = in[1], call.in.named = 1;
    assert_golden_gradients(row, output_of(&call), tolerance, inputs, in);
    for (int i = 0; ng_module_parameter(layer, i, &t); i++)
        assert_tensors_close(ng_grad(t.tensor), figure_of(row, "d", t.name, ""), tolerance);
    for (int i = 0; ng_module_buffer(layer, i, &t); i++) {
        const ng_tensor *after = figure_of(row, "after.", t.name, "");
        if (!after) after = figure_of(row, "", t.name, "_after");
        if (after) assert_tensors_close(t.tensor, after, tolerance);
    }
    golden_unload();
}

/* ---- Relations ------------------------------------------------------------------------------- */

void expect_invariant(ng_module *layer, ng_tensor *x, ng_tensor *to)
{
    assert_tensors_close(ng_forward(layer, tape, x), ng_forward(layer, tape, to), 1e-9);
}

void expect_orthogonal(ng_tensor *a, ng_tensor *b)
{
    assert_near(ng_item(ng_sum(tape, ng_mul(tape, a, b))), 0, 1e-13);
}
