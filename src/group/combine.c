/* How two members' data become one. */
#include "group/combine.h"

size_t ng_combined_bytes(int32_t how, int64_t count)
{
    static const size_t size[] = {[NG_COMBINE_F32] = sizeof(float),
                                  [NG_COMBINE_F64] = sizeof(double),
                                  [NG_COMBINE_BITS] = sizeof(uint64_t),
                                  [NG_COMBINE_MOMENTS] = sizeof(ng_moments),
                                  [NG_COMBINE_LEAVE] = 0};
    return size[how] * (size_t)count;
}

/* Chan, Golub & LeVeque 1979. delta = b's mean - a's; mean = a's + delta n_b / n;
 * squares = a's + b's + delta^2 n_a n_b / n. */
static ng_moments both(const ng_moments *a, const ng_moments *b)
{
    if (a->n == 0) return *b;
    if (b->n == 0) return *a;
    const double n = a->n + b->n, delta = (b->mean - a->mean) + (b->low - a->low);
    const double shift = a->low + delta * (b->n / n), mean = a->mean + shift;
    const double part = mean - a->mean;
    return (ng_moments){.n = n,
                        .mean = mean,
                        .low = (a->mean - (mean - part)) + (shift - part),
                        .squares = a->squares + b->squares + delta * delta * (a->n * b->n / n)};
}

void ng_combine(int32_t how, int64_t count, const void *left, const void *right, void *to)
{
#define EACH(type, formula)                                                                        \
    {                                                                                              \
        const type *a = left, *b = right;                                                          \
        type *sum = to;                                                                            \
        for (int64_t i = 0; i < count; i++) sum[i] = (formula);                                    \
        return;                                                                                    \
    }
    if (how == NG_COMBINE_F32) EACH(float, a[i] + b[i])
    if (how == NG_COMBINE_F64) EACH(double, a[i] + b[i])
    if (how == NG_COMBINE_BITS) EACH(uint64_t, a[i] | b[i])
    if (how == NG_COMBINE_MOMENTS) EACH(ng_moments, both(&a[i], &b[i]))
#undef EACH
}
