/* particle and saddle: derivatives through gradient descent. Of the four functions the first letter
 * says how the outer derivative is taken, the second how the inner one: "r" is the gradient, "f" a
 * Jacobian-vector product for each element. */
#include "gradbench.h"
#include <math.h>

/* A function of x to be made small, with another argument where there is one. */
typedef ng_tensor *function(ng_tape *tape, ng_tensor *with, ng_tensor *x);

/* dy / dx for one number y and x (n). An inner derivative is recorded. */
static ng_tensor *slope(ng_tape *tape, bool inner, ng_tensor *y, ng_tensor *x)
{
    if (asked[inner] == 'r') return ng_gradient(tape, y, x, .record = inner);
    const int n = (int)ng_size(x);
    ng_tensor *eye = ng_eye(tape, NG_F64, n), *along[NG_MAX_RANK];
    for (int i = 0; i < n; i++) {
        ng_tensor *axis = ng_reshape(tape, ng_slice(tape, eye, 0, i, i + 1), NG_SHAPE(n));
        along[i] = ng_jvp(tape, y, &x, 1, &axis, .record = inner);
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

/* Where the value is least. An inner descent is part of another's value: it stays on the tape,
 * recorded, so that the outer derivative goes through it. */
static ng_tensor *descend(ng_tape *tape, bool inner, function *value, ng_tensor *with,
                          ng_tensor *start)
{
    ng_tensor *x = ng_variable(tape, start), *y = value(tape, with, x);
    ng_tensor *g = slope(tape, inner, y, x);
    double rate = 1e-5, least = ng_failed() ? 0 : ng_item(y);
    for (int steps = 0; !ng_failed() && length(g) > 1e-5;) {
        if (steps == 10) rate *= 2, steps = 0;
        ng_tensor *next = ng_combine(tape, (ng_tensor *[]){x, g}, (double[]){1, -rate}, 2);
        if (length(ng_sub(tape, x, next)) <= 1e-5) break;
        y = value(tape, with, next);
        if (ng_failed()) break;
        if (ng_item(y) < least) {
            least = ng_item(y), steps++;
            g = slope(tape, inner, y, next), x = next;
        } else {
            rate /= 2, steps = 0;
        }
        if (!inner && !ng_failed()) keep_point(tape, &x, &g);
    }
    return x;
}

/* ---- particle --------------------------------------------------------------------------------
 *
 * The place w of a charge for which another one's path, by Euler's method in the field of
 * two, meets the origin: the least square of where it crosses the axis, by gradient descent. The
 * field is a gradient too, so that the outer derivative is one of derivatives. */

static ng_tensor *w0;

static void prepare_particle(const char *input)
{
    w0 = held_zeros(NG_F64, NG_SHAPE(1));
    if (w0) ng_set(w0, 0, input_number(input, "w"));
}

static ng_tensor *pair(ng_tape *tape, double x, double y)
{
    return ng_from(tape, NG_F64, NG_SHAPE(2), NG_VALUES(x, y));
}

/* The potential at x of charges in rows. */
static ng_tensor *potential(ng_tape *tape, ng_tensor *charges, ng_tensor *x)
{
    ng_tensor *offset = ng_sub(tape, x, charges);
    ng_tensor *distance = ng_sqrt(tape, ng_sum_squares(tape, offset, .axes = NG_AXES(1)));
    return ng_sum(tape, ng_scalar_div(tape, 1, distance));
}

/* Where x is on the axis, if it goes on with speed v. */
static ng_tensor *crossing(ng_tape *tape, ng_tensor *x, ng_tensor *v)
{
    ng_tensor *height = ng_slice(tape, x, 0, 1, 2), *fall = ng_slice(tape, v, 0, 1, 2);
    ng_tensor *way = ng_mul(tape, ng_div(tape, height, fall), ng_slice(tape, v, 0, 0, 1));
    return ng_sub(tape, ng_slice(tape, x, 0, 0, 1), way);
}

static ng_tensor *miss(ng_tape *tape, ng_tensor *with, ng_tensor *w)
{
    const double step = 0.1;
    ng_tensor *x = ng_variable(tape, pair(tape, 0, 8)), *v = pair(tape, 0.75, 0);
    ng_tensor *free = ng_add(tape, pair(tape, 10, 10), ng_mul(tape, pair(tape, 0, -1), w));
    ng_tensor *charges = ng_stack(tape, NG_TENSORS(pair(tape, 10, 0), free), 0);
    (void)with;
    while (!ng_failed()) {
        ng_tensor *next = ng_combine(tape, (ng_tensor *[]){x, v}, (double[]){1, step}, 2);
        if (ng_get(next, 1) <= 0) break;
        ng_tensor *force = slope(tape, true, potential(tape, charges, x), x);
        v = ng_combine(tape, (ng_tensor *[]){v, force}, (double[]){1, -step}, 2);
        x = next;
    }
    return ng_sum_squares(tape, crossing(tape, x, v));
}

static void particle(ng_tape *tape)
{
    answer(NULL, ng_reshape(tape, descend(tape, false, miss, NULL, w0), NG_SCALAR));
}

const gradbench_eval eval_particle = {NULL, "rr rf fr ff", prepare_particle, NULL, particle};

/* ---- saddle ----------------------------------------------------------------------------------
 *
 * The x and then the y of min_x max_y |x|^2 - |y|^2 in two dimensions, each by gradient descent:
 * the derivative of the maximum goes through the descent that finds it. */

static ng_tensor *start;

static void prepare_saddle(const char *input) { start = input_tensor(input, "start"); }

static ng_tensor *f(ng_tape *tape, ng_tensor *x, ng_tensor *y)
{
    return ng_sub(tape, ng_sum_squares(tape, x), ng_sum_squares(tape, y));
}

static ng_tensor *minus_f(ng_tape *tape, ng_tensor *x, ng_tensor *y)
{
    return ng_neg(tape, f(tape, x, y));
}

static ng_tensor *most(ng_tape *tape, ng_tensor *with, ng_tensor *x)
{
    (void)with;
    return f(tape, x, descend(tape, true, minus_f, x, start));
}

static void saddle(ng_tape *tape)
{
    ng_tensor *x = descend(tape, false, most, NULL, start);
    answer(NULL, ng_concat(tape, NG_TENSORS(x, descend(tape, true, minus_f, x, start)), 0));
}

const gradbench_eval eval_saddle = {NULL, "rr rf fr ff", prepare_saddle, NULL, saddle};
