/* Any processor of this architecture, in the compiler's own vectors.
 * lanes.h includes it, and says what each word means. */

#define NG_VECTOR 16
#define NG_FUSES 0
#define GEMM_ROWS 6

typedef double wide __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));

NG_INLINE wide load_f32(const float *x)
{
    typedef float narrow __attribute__((vector_size(8)));
    narrow v;
    memcpy(&v, x, sizeof v);
    return __builtin_convertvector(v, wide);
}
NG_INLINE void store_f32(float *x, wide v)
{
    typedef float narrow __attribute__((vector_size(8)));
    const narrow narrowed = __builtin_convertvector(v, narrow);
    memcpy(x, &narrowed, sizeof narrowed);
}

NG_INLINE wide low_half(floats v) { return (wide){(double)v[0], (double)v[1]}; }
NG_INLINE wide high_half(floats v) { return (wide){(double)v[2], (double)v[3]}; }

NG_INLINE void stream_f32(float *x, wide v) { store_f32(x, v); }
NG_INLINE void stream_vector(void *x, wide v) { memcpy(x, &v, sizeof v); }
NG_INLINE void stream_end(void) {}

NG_INLINE floats fused_floats(floats a, floats b, floats c) { return a * b + c; }
NG_INLINE wide fused_wide(wide a, wide b, wide c) { return a * b + c; }

NG_INLINE double wide_sum(wide v) { return v[0] + v[1]; }
