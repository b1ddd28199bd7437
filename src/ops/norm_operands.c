/* What the norm families share: checks of operands, and how a tensor per channel meets x. */
#include "ops/op.h"
#include <math.h>

bool ng_norm_given(const char *function, const char *name, const ng_tensor *operand)
{
    if (!operand && !ng_failed())
        ng_fail(NG_ENULL, "%s: %s is NULL; NG_NONE leaves it out", function, name);
    return operand != NULL;
}

bool ng_norm_eps_ok(const char *function, double eps)
{
    if (eps >= 0 && isfinite(eps)) return true;
    ng_fail(NG_EVALUE, "%s: eps = %g, expected a finite number of at least 0", function, eps);
    return false;
}

bool ng_channels_fit(const char *function, const char *name, const ng_tensor *c, const ng_tensor *x)
{
    const ng_shape expected = NG_SHAPE(x->shape.dim[1]);
    if (ng_is_none(c) || ng_shape_equal(c->shape, expected)) return true;
    ng_fail(NG_ESHAPE, "%s: %s of shape %s, expected %s for x of shape %s", function, name,
            ng_shape_print(c->shape).text, ng_shape_print(expected).text,
            ng_shape_print(x->shape).text);
    return false;
}

ng_tensor *ng_per_channel(ng_tape *tape, ng_tensor *c, const ng_tensor *x)
{
    ng_shape shape = {.rank = x->shape.rank - 1, .dim = {x->shape.dim[1], 1, 1, 1, 1, 1, 1}};
    return ng_reshape(tape, c, shape);
}
