/* particle: the place w of a charge for which another one's path, by Euler's method in the field of
 * two, meets the origin: the least square of where it crosses the axis, by gradient descent. The
 * field is a gradient too, so that the outer derivative is one of derivatives. */
#include "descent.h"

static ng_tensor *w0;
static bool inner_forward;

static void prepare(const char *input)
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

static ng_tensor *miss(ng_tape *tape, const descent *f, ng_tensor *w)
{
    const double step = 0.1;
    ng_tensor *x = ng_variable(tape, pair(tape, 0, 8)), *v = pair(tape, 0.75, 0);
    ng_tensor *free = ng_add(tape, pair(tape, 10, 10), ng_mul(tape, pair(tape, 0, -1), w));
    ng_tensor *charges = ng_stack(tape, NG_TENSORS(pair(tape, 10, 0), free), 0);
    (void)f;
    while (!ng_failed()) {
        ng_tensor *next = ng_combine(tape, (ng_tensor *[]){x, v}, (double[]){1, step}, 2);
        if (ng_get(next, 1) <= 0) break;
        ng_tensor *force = slope(tape, inner_forward, true, potential(tape, charges, x), x);
        v = ng_combine(tape, (ng_tensor *[]){v, force}, (double[]){1, -step}, 2);
        x = next;
    }
    return ng_sum_squares(tape, crossing(tape, x, v));
}

static ng_tensor *particle(ng_tape *tape, bool outer, bool inner)
{
    inner_forward = inner;
    ng_tensor *w = descend(tape, &(descent){.value = miss, .forward = outer}, w0);
    return ng_reshape(tape, w, NG_SCALAR);
}

int main(void) { return descents("particle", prepare, particle); }
