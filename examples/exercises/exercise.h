/* What the exercises share. EXERCISE makes an op of a forward and a backward pass, and a program in
 * which the checker says whether the gradient is right. */
#ifndef EXERCISE_H
#define EXERCISE_H

#include <normgrad.h>
#include <stdio.h>
#include <string.h>

/* An input: normal numbers of this shape, or with .classes labels from 0 to classes - 1. */
typedef struct {
    const char *name;
    ng_shape shape;
    int64_t classes;
} exercise_input;

/* Computes y from the inputs, with ops that are not recorded. */
typedef ng_tensor *exercise_forward(ng_tape *tape, ng_tensor *const *in);

typedef struct {
    const char *title;
    ng_op op;
    exercise_forward *forward;
    const exercise_input *inputs;
    int n;
} exercise;

/* Sums and means over each row of (rows, n): (rows, 1); over each column: (n). */
#define row_sum(tape, x) ng_sum(tape, x, .axes = NG_AXES(-1), .keepdim = true)
#define row_mean(tape, x) ng_mean(tape, x, .axes = NG_AXES(-1), .keepdim = true)
#define column_sum(tape, x) ng_sum(tape, x, .axes = NG_AXES(0))
#define column_mean(tape, x) ng_mean(tape, x, .axes = NG_AXES(0))

/* 1 / sqrt(square + eps), the reciprocal deviation of a variance or of a mean square. */
#define EPS 1e-5
#define reciprocal_root(tape, square) ng_rsqrt(tape, ng_add_scalar(tape, square, EPS))

static inline ng_tensor *exercise_call(ng_tape *tape, ng_tensor *const *in, void *context)
{
    const exercise *e = context;
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *y = e->forward(tape, in);
    ng_tape_set_recording(tape, was);
    return ng_record(tape, &e->op, y, in, e->n, NULL, 0);
}

/* Returns whether every gradient is proportional to dy, as the chain rule says: three times dy
 * gives three times dx. A term without dy is not. */
static inline bool exercise_has_dy(exercise *e, ng_tensor *const *x)
{
    enum { MOST = 8 };
    bool has = true;
    ng_tensor *in[MOST] = {NULL};
    ng_tape *tape = ng_tape_new();
    for (int i = 0; i < e->n; i++)
        in[i] = e->inputs[i].classes > 0 ? x[i] : ng_variable(tape, x[i]);
    ng_tensor *y = exercise_call(tape, in, e);
    ng_tensor *sum = ng_sum(tape, ng_mul(tape, y, ng_normal(tape, NG_F64, ng_shape_of(y), 0, 1)));
    for (int i = 0; i < e->n && !ng_failed(); i++) {
        if (e->inputs[i].classes > 0) continue;
        ng_tensor *once = ng_gradient(tape, sum, in[i]);
        ng_tensor *thrice = ng_gradient(tape, ng_mul_scalar(tape, sum, 3), in[i]);
        ng_tensor *off = ng_sub(tape, thrice, ng_mul_scalar(tape, once, 3));
        const double most = ng_item(ng_max(tape, ng_abs(tape, off)));
        has = has && !(most > 1e-9 * ng_item(ng_max(tape, ng_abs(tape, thrice))));
    }
    ng_tape_free(tape);
    ng_clear_error(); /* the checker has said what fails */
    return has;
}

/* Checks the op at both orders. Returns main's value: 0 where it is right. */
static inline int exercise_check(exercise *e)
{
    enum { MOST = 8 };
    ng_tensor *x[MOST] = {NULL};
    const char *names[MOST] = {NULL};
    ng_rng rng = ng_rng_seeded(1);
    for (int i = 0; i < e->n; i++) {
        const exercise_input *input = &e->inputs[i];
        names[i] = input->name;
        x[i] = input->classes > 0
                   ? ng_uniform_new(NG_I64, input->shape, 0, (double)input->classes, &rng)
                   : ng_normal_new(NG_F64, input->shape, 0, 1, &rng);
    }
    const ng_check_report r =
        ng_check_function(exercise_call, x, e->n, .order = 2, .names = names, .context = e);
    if (r.passed)
        printf("%s: right at both orders (%lld derivatives)\n", e->title, (long long)r.compared);
    else
        printf("%s: not yet right\n    %s\n", e->title, r.message);
    if (!r.passed && *r.worst_name)
        printf("    %s[%lld] at order %d: yours %.6g, finite differences %.6g\n    %s\n",
               r.worst_name, (long long)r.worst_index, r.order, r.analytic, r.numeric, r.counts);
    if (!r.passed && !ng_failed() && !exercise_has_dy(e, x))
        printf("    hint: a term of dx has no dy in it: dx is to grow as dy grows\n");
    else if (!r.passed && *r.hint)
        printf("    hint: %s\n", r.hint);
    else if (!r.passed && !*r.worst_name && strstr(r.message, "no gradient"))
        printf("    hint: NG_NONE in dx says that the gradient is 0; set dx to yours\n");
    else if (!r.passed && *r.worst_name && r.order == 2)
        printf("    hint: right at order 1. Has a value been kept that depends on an input?\n");
    if (ng_failed()) printf("    %s\n", ng_error_text());
    for (int i = 0; i < e->n; i++) ng_tensor_free(x[i]);
    return r.passed ? 0 : 1;
}

/* A solution is checked in place of the exercise's backward pass. */
#ifndef SOLUTION
#define SOLUTION backward
#endif

#define EXERCISE(title, ...)                                                                       \
    int main(void)                                                                                 \
    {                                                                                              \
        (void)backward;                                                                            \
        const exercise_input inputs[] = {__VA_ARGS__};                                             \
        return exercise_check(&(exercise){title,                                                   \
                                          {.name = title, .gradient = SOLUTION},                   \
                                          forward,                                                 \
                                          inputs,                                                  \
                                          (int)(sizeof inputs / sizeof *inputs)});                 \
    }

#endif
