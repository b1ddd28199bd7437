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
    ng_inputs given = NG_INPUTS(in[0]);
    if (named && strcmp(named, "condition") == 0) given = NG_INPUTS(in[0], .condition = in[1]);
    if (named && strcmp(named, "style") == 0) given = NG_INPUTS(in[0], .style = in[1]);
    if (named && strcmp(named, "gate") == 0) given = NG_INPUTS(in[0], .gate = in[1]);
    ng_tensor *y = ng_forward_with(layer, tape, given);
    assert_golden_gradients(row, y, tolerance, inputs, in);
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
