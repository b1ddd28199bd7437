/* Figures from other systems: the files in tests/golden, read into tensors of double. */
#ifndef NG_TESTS_GOLDEN_H
#define NG_TESTS_GOLDEN_H

#include "support.h"

/* Reads a file, in the project's folder; gives all that was read back. */
void golden_load(const char *path);
void golden_unload(void);

/* The tests that follow have the figures of a file beside the fixture of fixture.h. */
#define GOLDEN_FIXTURE(path)                                                                       \
    static void begin_golden(void) { set_up(), golden_load(path); }                                \
    static void end_golden(void) { golden_unload(), tear_down(); }                                 \
    FIXTURE(begin_golden, end_golden)

/* By name: NULL where there is none, or a failed test; and all names, until NULL. */
ng_tensor *golden_find(const char *name);
ng_tensor *golden(const char *format, ...) NG_PRINTF(1, 2);
const char *golden_name(int index);

/* x is the figure of this name, to a relative error (assert_tensors_close). */
#define assert_golden(x, relative, ...)                                                            \
    expect_golden_of(__FILE__, __LINE__, x, relative, __VA_ARGS__)
void expect_golden_of(const char *file, int line, const ng_tensor *x, double relative,
                      const char *format, ...) NG_PRINTF(5, 6);

#endif
