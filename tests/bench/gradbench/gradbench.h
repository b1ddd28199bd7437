/* What the programs of this folder share: the protocol of GradBench
 * (github.com/gradbench/gradbench, CONTRIBUTING.md), spoken on standard input and output.
 *
 * A message is a line of JSON. It asks for an evaluation of a function of the module:
 *     {"id": 2, "kind": "evaluate", "module": "lse", "function": "primal",
 *      "input": {"x": [0.5, 0.25], "min_runs": 1, "min_seconds": 1}}
 * The answer has the output and the time of each run:
 *     {"id": 2, "success": true, "output": 1.0759, "timings": [{"name": "evaluate",
 *      "nanoseconds": 1200}]} */
#ifndef NG_BENCH_GRADBENCH_H
#define NG_BENCH_GRADBENCH_H

#include <normgrad.h>

enum { MOST_RESULTS = 4, MOST_GRADIENTS = 4 };

/* A function of the module, under its name in messages. */
typedef struct {
    const char *name;
    /* The timed part: sets results[0] and so on to tensors of the tape, which was reset before. A
     * failure stays on the library's record. */
    void (*evaluate)(ng_tape *tape, ng_tensor **results);
    const char *members[MOST_RESULTS]; /* of the output: the results' names; none: results[0] */
    void (*print)(void);               /* writes another output */
} gradbench_function;

typedef struct {
    const char *module;
    void (*prepare)(const char *input); /* reads the input, before the timed part */
    gradbench_function primal;          /* evaluated without recording; or none */
    gradbench_function gradient[MOST_GRADIENTS];
} gradbench_module;

/* Answers messages until the input ends; the program's exit status. */
int gradbench(const gradbench_module *module);

/* A member of an object in JSON; NULL if there is none. */
const char *input_member(const char *object, const char *name);

/* A member of the input: a number; a whole number; nested arrays of numbers as a tensor in double,
 * which is freed after the message. A name of NULL is the input itself. NAN, -1 and NULL with
 * NG_EPARSE on record if there is no such member. */
double input_number(const char *input, const char *name);
int64_t input_count(const char *input, const char *name);
ng_tensor *input_tensor(const char *input, const char *name);

/* Hands a tensor to the message, at whose end it is freed, and returns it; zeros, so handed. */
ng_tensor *held_tensor(ng_tensor *x);
ng_tensor *held_zeros(ng_dtype dtype, ng_shape shape);

#endif
