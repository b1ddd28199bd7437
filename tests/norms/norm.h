/* What the tests of the norms share: a suite, finite differences, PyTorch's figures. A test takes its layer in
 * double, with parameters drawn at random: a gamma of 1 would hide that it was forgotten. */
#ifndef NG_TESTS_NORM_H
#define NG_TESTS_NORM_H

#include "fixture.h"
#include "golden.h"
#include "support.h"

/* A suite of one test case, whose tests begin with an empty tape. */
Suite *norm_suite(const char *name, TCase **tests);

/* The layer in double with parameters drawn from a normal distribution; freed after the test. */
ng_module *drawn(ng_module *layer);

/* A float64 tensor of these numbers, freed after the test. */
#define DOUBLES(shape, ...) own(ng_tensor_from(NG_F64, shape, NG_VALUES(__VA_ARGS__)))

/* What is differentiated: a layer, its x, and its condition or NULL. */
typedef struct {
    ng_module *layer;
    ng_tensor *x, *condition;
} norm_call;

/* L = sum(c . y) for a fixed random c, and G = sum(u . dL/dx) for a fixed random u. */
ng_tensor *loss_of(const norm_call *call);
ng_tensor *slope_of(const norm_call *call);

/* The gradient of f to each element t of x, the condition and the parameters is
 * (f(t + h) - f(t - h)) / 2h. */
typedef ng_tensor *norm_scalar(const norm_call *call);
void expect_slopes(norm_scalar *f, const norm_call *call);

/* The layer has PyTorch's y, dx and gradients of its parameters: the figures ROW/x, ROW/y, ROW/dy, ROW/dx...
 * of tests/golden/FILE. */
void expect_pytorch(ng_module *layer, const char *file, const char *row);

/* y(x) and y(to) are equal but for rounding. */
void expect_invariant(ng_module *layer, ng_tensor *x, ng_tensor *to);

/* The suites. */
#define NORM_SUITES(X) X(layer_norm)
#define X(name) Suite *name##_suite(void);
NORM_SUITES(X)
#undef X

#endif
