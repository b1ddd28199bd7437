/* The adding problem (Hochreiter & Schmidhuber 1997): of many numbers two are marked, one in each
 * half, and a network that reads them one by one is to tell their sum. Who says 1 always errs by
 * 1/6. */
#ifndef EXAMPLES_ADDING_H
#define EXAMPLES_ADDING_H

#include <normgrad.h>

/* x (batch, length, 2): numbers from [0, 1) beside their marks; sums (batch, 1) */
static inline void draw_sums(ng_tensor *x, ng_tensor *sums, ng_rng *rng)
{
    const int64_t length = ng_dim(x, 1);
    float *at = ng_data_f32(x), *sum = ng_data_f32(sums);
    if (!at || !sum) return;
    for (int64_t n = 0; n < ng_dim(x, 0); n++, at += 2 * length) {
        const int64_t first = ng_rng_below(rng, length / 2);
        const int64_t second = length / 2 + ng_rng_below(rng, length / 2);
        for (int64_t t = 0; t < length; t++) {
            at[2 * t] = (float)ng_rng_uniform(rng);
            at[2 * t + 1] = t == first || t == second;
        }
        sum[n] = at[2 * first] + at[2 * second];
    }
    ng_touch(x), ng_touch(sums);
}

#endif
