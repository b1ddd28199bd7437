/* dropout: y = x * mask, where each element of mask is 0 with probability p, else 1 / (1 - p).
 * Srivastava et al. 2014. The mask is a constant; the gradients are those of the product. */
#include "kernels/parallel.h"
#include "ops/op.h"
#include <math.h>

/* An element is 0 where a uniform number, 53 bits of a draw, is below p. */
static void draw_mask(ng_tensor *mask, double p, ng_rng *rng)
{
    enum { TOGETHER = 256 };
    const double kept = 1 / (1 - p);
    const uint64_t limit = (uint64_t)ceil(p * 0x1p53);
    uint64_t bits[TOGETHER];
    for (int64_t i = 0, count; i < mask->size; i += count) {
        count = ng_least(TOGETHER, mask->size - i);
        ng_rng_draw(rng, bits, count);
        float *singles = (float *)mask->data + i;
        double *doubles = (double *)mask->data + i;
        for (int64_t j = 0; j < count && mask->dtype == NG_F32; j++)
            singles[j] = bits[j] >> 11 < limit ? 0 : (float)kept;
        for (int64_t j = 0; j < count && mask->dtype == NG_F64; j++)
            doubles[j] = bits[j] >> 11 < limit ? 0 : kept;
    }
}

ng_tensor *ng_dropout(ng_tape *tape, ng_tensor *x, double p)
{
    if (!ng_accepts("ng_dropout", tape, 1, &x)) return NULL;
    if (!ng_option_range("ng_dropout", "p", p, 0, 1)) return NULL;
    if (p == 0) return x;
    ng_tensor *mask = ng_result(tape, x->dtype, x->shape);
    if (!mask) return NULL;
    ng_rng rng = tape->rng; /* a call that fails takes nothing from the stream */
    draw_mask(mask, p, &rng);
    ng_tensor *y = ng_mul(tape, x, mask);
    if (y) tape->rng = rng;
    return y;
}
