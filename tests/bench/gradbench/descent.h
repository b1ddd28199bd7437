/* Gradient descent as the benchmark's particle and saddle have it. */
#ifndef NG_BENCH_DESCENT_H
#define NG_BENCH_DESCENT_H

#include "gradbench.h"
#include <math.h>

/* A function to be made small. With `forward` its derivatives are Jacobian-vector products, else
 * the gradient. The descent of an inner one is part of another's value: it stays on the tape,
 * recorded, so that the outer derivative goes through it. */
typedef struct descent descent;
struct descent {
    ng_tensor *(*value)(ng_tape *tape, const descent *f, ng_tensor *x);
    ng_tensor *with; /* another argument, where there is one */
    bool forward, inner;
};

/* dy / dx for one number y and x (n). */
static ng_tensor *slope(ng_tape *tape, bool forward, bool record, ng_tensor *y, ng_tensor *x)
{
    if (!forward) return ng_gradient(tape, y, x, .record = record);
    const int n = (int)ng_size(x);
    ng_tensor *eye = ng_eye(tape, NG_F64, n), *along[NG_MAX_RANK];
    for (int i = 0; i < n; i++) {
        ng_tensor *axis = ng_reshape(tape, ng_slice(tape, eye, 0, i, i + 1), NG_SHAPE(n));
        along[i] = ng_jvp(tape, y, &x, 1, &axis, .record = record);
    }
    return ng_stack(tape, along, n, 0);
}

static double length(const ng_tensor *x)
{
    double sum = 0;
    for (int64_t i = 0; x && i < ng_size(x); i++) sum += ng_get(x, i) * ng_get(x, i);
    return sqrt(sum);
}

/* Lets go of all that is on the tape but x and g. */
static void keep_point(ng_tape *tape, ng_tensor **x, ng_tensor **g)
{
    double kept[2][NG_MAX_RANK];
    const int64_t n = ng_size(*x);
    for (int64_t i = 0; i < n; i++) kept[0][i] = ng_get(*x, i), kept[1][i] = ng_get(*g, i);
    ng_tape_reset(tape);
    *x = ng_variable(tape, ng_from(tape, NG_F64, NG_SHAPE(n), kept[0], n));
    *g = ng_from(tape, NG_F64, NG_SHAPE(n), kept[1], n);
}

static ng_tensor *descend(ng_tape *tape, const descent *f, ng_tensor *start)
{
    ng_tensor *x = ng_variable(tape, start), *y = f->value(tape, f, x);
    ng_tensor *g = slope(tape, f->forward, f->inner, y, x);
    double rate = 1e-5, least = ng_failed() ? 0 : ng_item(y);
    for (int steps = 0; !ng_failed() && length(g) > 1e-5;) {
        if (steps == 10) rate *= 2, steps = 0;
        ng_tensor *next = ng_combine(tape, (ng_tensor *[]){x, g}, (double[]){1, -rate}, 2);
        if (length(ng_sub(tape, x, next)) <= 1e-5) break;
        y = f->value(tape, f, next);
        if (ng_failed()) break;
        if (ng_item(y) < least) {
            least = ng_item(y), steps++;
            g = slope(tape, f->forward, f->inner, y, next), x = next;
        } else {
            rate /= 2, steps = 0;
        }
        if (!f->inner && !ng_failed()) keep_point(tape, &x, &g);
    }
    return x;
}

/* ---- The module: the solution with each mode, the outer derivative's named first ------------- */

static ng_tensor *(*solution)(ng_tape *tape, bool outer_forward, bool inner_forward);

static void rr(ng_tape *tape, ng_tensor **y) { *y = solution(tape, false, false); }
static void rf(ng_tape *tape, ng_tensor **y) { *y = solution(tape, false, true); }
static void fr(ng_tape *tape, ng_tensor **y) { *y = solution(tape, true, false); }
static void ff(ng_tape *tape, ng_tensor **y) { *y = solution(tape, true, true); }

static int descents(const char *name, void (*prepare)(const char *input),
                    ng_tensor *(*solve)(ng_tape *tape, bool outer_forward, bool inner_forward))
{
    const gradbench_module module = {.module = name,
                                     .prepare = prepare,
                                     .gradient = {{.name = "rr", .evaluate = rr},
                                                  {.name = "rf", .evaluate = rf},
                                                  {.name = "fr", .evaluate = fr},
                                                  {.name = "ff", .evaluate = ff}}};
    solution = solve;
    return gradbench(&module);
}

#endif
