/* Who computes the results that are measured: this library, formulas that are written out, and
 * other libraries in processes of their own. */
#ifndef NG_TESTS_ENGINES_H
#define NG_TESTS_ENGINES_H

#include "support/exact.h"
#include <stdio.h>

enum { NORMGRAD, PYTORCH, ONEDNN, DIFFERENCE, DOUBLE_MEAN, ENGINES };
extern const char *const engine_names[ENGINES];

/* What is computed. Its results stand in EXACT_RESULTS arrays, of these sizes. */
typedef struct {
    const char *op;
    bool single; /* in float */
    exact_rows rows;
    int64_t size[EXACT_RESULTS]; /* 0: the op has no such result */
} request;

/* Starts PyTorch and oneDNN where they are found. `folder` holds the programs. */
void start_engines(const char *folder);
void stop_engines(void);

/* Computes the results, those that the engine has; has[i] says which. */
void compute(int engine, const request *r, double *results[EXACT_RESULTS], bool has[EXACT_RESULTS]);

#endif
