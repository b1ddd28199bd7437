/* dropout: y = x * mask, where each element of mask is 0 with probability p, else 1 / (1 - p).
 * Srivastava et al. 2014. The mask is a constant; the gradients are those of the product. */
#include "ops/op.h"

ng_tensor *ng_dropout(ng_tape *tape, ng_tensor *x, double p)
{
    if (!ng_accepts("ng_dropout", tape, 1, &x)) return NULL;
    if (!ng_option_range("ng_dropout", "p", p, 0, 1)) return NULL;
    if (p == 0) return x;
    ng_tensor *mask = ng_result(tape, x->dtype, x->shape);
    if (!mask) return NULL;
    ng_rng rng = tape->rng; /* a call that fails takes nothing from the stream */
    ng_tensor_draw_mask(mask, p, &rng);
    ng_tensor *y = ng_mul(tape, x, mask);
    if (y) tape->rng = rng;
    return y;
}
