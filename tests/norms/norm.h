/* What the tests of the norms share. A test takes its layer in double, with parameters drawn at
 * random: a gamma of 1 would hide that it was forgotten. One loop over tests/cases compares the
 * gradients of every layer, in each mode, with finite differences (check/test_check.c). */
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
