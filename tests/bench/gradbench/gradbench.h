/* What the evals of this folder share: the protocol of GradBench (github.com/gradbench/gradbench,
 * CONTRIBUTING.md), spoken on standard input and output.
 *
 * A message is a line of JSON. It asks for an evaluation of a function of the module:
 *     {"id": 2, "kind": "evaluate", "module": "lse", "function": "primal",
 *      "input": {"x": [0.5, 0.25], "min_runs": 1, "min_seconds": 1}}
 * The answer has the output and the time of each run:
 *     {"id": 2, "success": true, "output": 1.0759, "timings": [{"name": "evaluate",
 *      "nanoseconds": 1200}]}
 * An error stays on the library's record, and is the answer. */
#ifndef NG_BENCH_GRADBENCH_H
#define NG_BENCH_GRADBENCH_H

#include <normgrad.h>

/* A module. Reading the input is not timed, the rest is. The tape was reset. */
typedef struct {
    const char *primal, *gradient; /* functions' names in messages, several with a blank between */
    void (*prepare)(const char *input);
    /* The primal, without recording. What it returns is the output, unless it calls `answer`. */
    ng_tensor *(*value)(ng_tape *tape);
    /* Calls `answer`. NULL: the gradient of the value's last element with respect to the leaves. */
    void (*derive)(ng_tape *tape);
} gradbench_eval;

#define GRADBENCH_EVALS(X)                                                                         \
    X(hello) X(gmm) X(lstm) X(kmeans) X(ba) X(det) X(llsq) X(lse) X(ode) X(ht) X(particle) X(saddle)
#define X(name) extern const gradbench_eval eval_##name;
GRADBENCH_EVALS(X)
#undef X

extern char asked[16]; /* the function's name in the message */

/* Adds text and a tensor, either may be NULL, to the output. */
void answer(const char *text, ng_tensor *x);

/* A member of an object in JSON; NULL if there is none. */
const char *input_member(const char *object, const char *name);

/* A member of the input: a number; a whole number; nested arrays of numbers as a tensor in double,
 * which is freed after the message; the same as a leaf. A name of NULL is the input itself. If
 * there is no such member it is an error, and the result NAN, -1 or NULL. */
double input_number(const char *input, const char *name);
int64_t input_count(const char *input, const char *name);
ng_tensor *input_tensor(const char *input, const char *name);
ng_tensor *input_leaf(const char *input, const char *name);

/* Zeros that are freed after the message; of int64, with their elements, NULL on failure. */
ng_tensor *held_zeros(ng_dtype dtype, ng_shape shape);
int64_t *held_index(ng_tensor **to, ng_shape shape);

/* Copies x, double or int64 as `to` is, to the elements of `to` from `at` on. */
void copy_elements(ng_tensor *to, int64_t at, const ng_tensor *x);

/* Rows from .. to of x. */
ng_tensor *rows_of(ng_tape *tape, ng_tensor *x, int64_t from, int64_t to);

#endif
