/* The adding problem (Hochreiter & Schmidhuber 1997): a network reads a sequence of numbers, two of
 * which are marked, and predicts the sum of the marked two. Always answering 1 gives a mean squared
 * error of 1/6. */
#ifndef EXAMPLES_ADDING_H
#define EXAMPLES_ADDING_H

#include <normgrad.h>

/* Fills x (batch, length, 2) with numbers from [0, 1) and their marks, one mark in each half, and
 * sums (batch, 1) with the answers. */
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
