/* Figures from other systems: the files in tests/golden, read by test_golden.c. */
#ifndef NG_TESTS_GOLDEN_H
#define NG_TESTS_GOLDEN_H

#include "support.h"

/* Reads a file's tensors, in double; the next one's are added. golden_unload frees them all. */
void golden_load(const char *path);
void golden_unload(void);

/* By name, "case/tensor"; NULL where there is none. */
ng_tensor *golden_find(const char *name);

/* By name as printf writes it; fails the test where there is none. */
NG_PRINTF(1, 2) ng_tensor *golden(const char *format, ...);

#endif
