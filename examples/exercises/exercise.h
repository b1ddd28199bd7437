/* What the exercises share. EXERCISE makes an op of a forward and a backward pass, and a program in
 * which the checker says whether the gradient is right. */
#ifndef EXERCISE_H
#define EXERCISE_H

#include <normgrad.h>
#include <stdio.h>
#include <string.h>

/* An input: normal numbers of this shape, with .high uniform ones from .low to .high, or with
 * .classes labels from 0 to classes - 1. */
typedef struct {
    const char *name;
    ng_shape shape;
    double low, high;
    int64_t classes;
} exercise_input;

/* Computes y from the inputs, with ops that are not recorded. */
typedef ng_tensor *exercise_forward(ng_tape *tape, ng_tensor *const *in);

typedef void exercise_backward(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx);

typedef struct {
    const char *title;
    exercise_backward *backward;
    exercise_forward *forward;
    const exercise_input *inputs;
    int n;
} exercise;

enum { EXERCISE_INPUTS = 8 }; /* the most an exercise may have */

/* What was wrong with dx before any number was compared: the first such thing; and the inputs whose
 * dx is NG_NONE. */
typedef struct {
    char text[96];
    bool none[EXERCISE_INPUTS];
} exercise_hint;

/* Sums and means over each row of (rows, n): (rows, 1); over each column: (n). */
#define row_sum(tape, x) ng_sum(tape, x, .axes = NG_AXES(-1), .keepdim = true)
#define row_mean(tape, x) ng_mean(tape, x, .axes = NG_AXES(-1), .keepdim = true)
#define column_sum(tape, x) ng_sum(tape, x, .axes = NG_AXES(0))
#define column_mean(tape, x) ng_mean(tape, x, .axes = NG_AXES(0))

/* 1 / sqrt(square + eps), the reciprocal deviation of a variance or of a mean square. */
#define EPS 1e-5
#define reciprocal_root(tape, square) ng_rsqrt(tape, ng_add_scalar(tape, square, EPS))

static inline bool exercise_same_shape(const ng_tensor *a, const ng_tensor *b)
{
    bool same = ng_rank(a) == ng_rank(b);
    for (int i = 0; same && i < ng_rank(a); i++) same = ng_dim(a, i) == ng_dim(b, i);
    return same;
}

/* The op's gradient rule: the backward pass, and a look at what it gave. */
static exercise *exercise_now;
static exercise_hint exercise_found;
static inline void exercise_rule(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    bool wanted[EXERCISE_INPUTS];
    for (int i = 0; i < node->n_inputs; i++) wanted[i] = dx[i] == NULL;
    exercise_now->backward(tape, node, dy, dx);
    for (int i = 0; i < node->n_inputs && !ng_failed(); i++) {
        if (!wanted[i]) continue;
        exercise_found.none[i] = dx[i] == NG_NONE;
        if (*exercise_found.text || dx[i] == NG_NONE) continue;
        if (!dx[i] || !exercise_same_shape(dx[i], node->inputs[i]))
            snprintf(exercise_found.text, sizeof exercise_found.text, "dx[%d] %s of %s", i,
                     dx[i] ? "must have the shape" : "is not set, the gradient",
                     exercise_now->inputs[i].name);
    }
}

static inline ng_tensor *exercise_call(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static ng_op op = {.gradient = exercise_rule};
    exercise_now = context;
    op.name = exercise_now->title;
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *y = exercise_now->forward(tape, in);
    ng_tape_set_recording(tape, was);
    return ng_record(tape, &op, y, in, exercise_now->n, NULL, 0);
}

/* Returns whether every gradient is proportional to dy, as the chain rule says: three times dy
 * gives three times dx. A term without dy is not. */
static inline bool exercise_has_dy(exercise *e, ng_tensor *const *x)
{
    bool has = true;
    ng_tensor *in[EXERCISE_INPUTS] = {NULL};
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

/* The hint for a check that has not passed, or "". */
static inline const char *exercise_hint_for(exercise *e, const ng_check_report *r,
                                            ng_tensor *const *x)
{
    static char text[160];
    if (*exercise_found.text) return exercise_found.text;
    for (int i = 0; i < e->n; i++) {
        if (!exercise_found.none[i] || (*r->worst_name && strcmp(r->worst_name, e->inputs[i].name)))
            continue;
        snprintf(text, sizeof text,
                 "dx[%d], of %s, is NG_NONE, which says that the gradient is 0: set it to yours", i,
                 e->inputs[i].name);
        return text;
    }
    if (!exercise_has_dy(e, x)) return "a term of dx has no dy in it: dx is to grow as dy grows";
    if (*r->hint || !*r->worst_name || r->order < 2) return strcpy(text, r->hint);
    return "right at order 1. Has a value been kept that depends on an input?";
}

/* Checks the op at both orders. Returns main's value: 0 where it is right. */
static inline int exercise_check(exercise *e)
{
    ng_tensor *x[EXERCISE_INPUTS] = {NULL};
    const char *names[EXERCISE_INPUTS] = {NULL};
    ng_rng rng = ng_rng_seeded(1);
    for (int i = 0; i < e->n; i++) {
        const exercise_input *input = &e->inputs[i];
        names[i] = input->name;
        x[i] = input->classes > 0
                   ? ng_uniform_new(NG_I64, input->shape, 0, (double)input->classes, &rng)
               : input->high > 0
                   ? ng_uniform_new(NG_F64, input->shape, input->low, input->high, &rng)
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
    const char *hint = r.passed || ng_failed() ? "" : exercise_hint_for(e, &r, x);
    if (*hint) printf("    hint: %s\n", hint);
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
        return exercise_check(                                                                     \
            &(exercise){title, SOLUTION, forward, inputs, (int)(sizeof inputs / sizeof *inputs)}); \
    }

#endif
