/* What the .inc files share whatever their dtype: vectors, and the math that vectorizes. */
#ifndef NG_KERNELS_LANES_H
#define NG_KERNELS_LANES_H

#include "kernels/kernels.h"
#include "kernels/parallel.h"
#include "kernels/walk.h"
#include <math.h>
#include <string.h>

#if defined(__AVX512F__)
#define NG_VECTOR 64 /* bytes */
#elif defined(__AVX2__)
#define NG_VECTOR 32
#else
#define NG_VECTOR 16
#endif

#define NG_INLINE static inline __attribute__((always_inline))

/* Sums run in `LANES` doubles side by side, whose order of addition is fixed by the source. */
#define LANES ((int)(NG_VECTOR / sizeof(double)))
typedef double wide __attribute__((vector_size(NG_VECTOR)));

NG_INLINE double wide_sum(wide v)
{
    double sum = 0;
    for (int i = 0; i < LANES; i++) sum += v[i];
    return sum;
}

/* glibc has vector versions of these in libmvec; told so, gcc calls them from plain loops. They
 * are good to 4 ulp, so that only float uses them. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define NG_SIMD __attribute__((simd("notinbranch")))
NG_SIMD float expf(float);
NG_SIMD float logf(float);
NG_SIMD float sinf(float);
NG_SIMD float cosf(float);
NG_SIMD float powf(float, float);
#if __GLIBC_PREREQ(2, 35)
NG_SIMD float tanhf(float);
NG_SIMD float erff(float);
NG_SIMD float erfcf(float);
NG_SIMD float log1pf(float);
#endif
#endif

#endif
