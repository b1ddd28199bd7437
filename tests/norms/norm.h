/* What the tests of the norms share: a suite, finite differences, PyTorch's figures. A test takes
 * its layer in double, with parameters drawn at random: a gamma of 1 would hide that it was
 * forgotten. */
#ifndef NG_TESTS_NORM_H
#define NG_TESTS_NORM_H

#include "support/fixture.h"
#include "support/golden.h"
#include "support/support.h"

/* The layer in double with parameters drawn from a normal distribution; freed after the test. */
ng_module *drawn(ng_module *layer);

/* The layer in double, as it starts; freed after the test. */
ng_module *in_double(ng_module *layer);

/* The layer, in evaluation. */
ng_module *evaluating(ng_module *layer);

/* A float64 tensor of these numbers, freed after the test. */
#define DOUBLES(shape, ...) own(ng_tensor_from(NG_F64, shape, NG_VALUES(__VA_ARGS__)))

/* What is differentiated: a layer and its inputs. CALL(layer, x, .condition = c) */
typedef struct {
    ng_module *layer;
    ng_inputs in;
} norm_call;
#define CALL(layer, ...) (&(norm_call){layer, NG_INPUTS(__VA_ARGS__)})

/* For L = sum(c . y) with a fixed random c: dL/dt for each element t of the inputs and parameters
 * is (L(t + h) - L(t - h)) / 2h. The same for the second order: G = sum(u . dL/dx) with a fixed
 * random u, and dG/dt. And the library's checker finds both orders right. */
#define assert_gradients(call) expect_gradients(__FILE__, __LINE__, #call, call)
void expect_gradients(const char *file, int line, const char *what, const norm_call *call);

/* The library's checker finds both orders right, with what is detached held fixed. */
void expect_checked(const norm_call *call);

/* The layer has PyTorch's y, dx and gradients of its parameters, to a relative error of 1e-11: the
 * figures ROW/x, ROW/y, ROW/dy, ROW/dx... of tests/golden/FILE.txt; and after that its buffers,
 * ROW/after.NAME or ROW/NAME_after. assert_pytorch(layer, "FILE", "ROW"); or with the name of the
 * input that the figure ROW/condition is. */
typedef struct {
    const char *name, *input;
} pytorch_row;
#define assert_pytorch(layer, file, ...)                                                           \
    expect_pytorch(layer, file, (pytorch_row){.name = __VA_ARGS__})
void expect_pytorch(ng_module *layer, const char *file, pytorch_row row);

/* y does not change from x to `to`, but for rounding. */
void expect_invariant(ng_module *layer, ng_tensor *x, ng_tensor *to);

/* sum(a b) is 0, but for rounding. */
void expect_orthogonal(ng_tensor *a, ng_tensor *b);

#endif
