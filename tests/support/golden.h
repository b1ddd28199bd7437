/* Figures from other systems (tests/golden), as tensors of double. */
#ifndef NG_TESTS_GOLDEN_H
#define NG_TESTS_GOLDEN_H

#include "support.h"

/* Reads a file from the project's folder; frees all that was read. */
void golden_load(const char *path);
void golden_unload(void);

/* The end of a fixture that began with set_up (fixture.h) and golden_load. */
void golden_tear_down(void);

/* By name: NULL where there is none, or a failed test. */
ng_tensor *golden_find(const char *name);
ng_tensor *golden(const char *format, ...) NG_PRINTF(1, 2);

/* Every figure's name begins with that of a row and '/', or with one of `besides`, which commas
 * separate. A row is a struct of so many bytes whose first member is its name. */
void golden_expect_rows(const void *rows, size_t count, size_t bytes, const char *besides);

/* Copies of the figures ROW/NAME in double, of "labels" in int64; those with a figure ROW/dNAME
 * require a gradient. The names end at NULL or GOLDEN_INPUTS. */
enum { GOLDEN_INPUTS = 6 };
void golden_inputs(const char *row, const char *const *names, ng_tensor **in);

/* Tensors of a module, and the figures ROW/FIGURE that they are set to. */
typedef struct {
    const char *tensor, *figure;
} golden_pair;
void golden_set(ng_module *module, const char *row, const golden_pair *pairs, int count);

/* y is ROW/y, and for the cotangent ROW/dy gradients are ROW/dNAME, or ROW/dFIGURE. */
#define assert_golden_gradients(row, y, relative, names, in)                                       \
    expect_golden_gradients(__FILE__, __LINE__, row, y, relative, names, in)
void expect_golden_gradients(const char *file, int line, const char *row, ng_tensor *y,
                             double relative, const char *const *names, ng_tensor *const *in);

/* x is the figure of this name, to a relative error (assert_tensors_close). */
#define assert_golden(x, relative, ...)                                                            \
    expect_golden_of(__FILE__, __LINE__, x, relative, __VA_ARGS__)
void expect_golden_of(const char *file, int line, const ng_tensor *x, double relative,
                      const char *format, ...) NG_PRINTF(5, 6);

#endif
