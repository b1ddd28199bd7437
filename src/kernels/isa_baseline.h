/* Any processor of this architecture, in the compiler's own vectors.
 * lanes.h includes it, and explains each name. */

#define NG_VECTOR 16
#define NG_FUSES 0
#define NG_GEMM_TILE 6

typedef double f64vec __attribute__((vector_size(16)));
typedef float f32vec __attribute__((vector_size(16)));

NG_INLINE f64vec load_f32(const float *x)
{
    typedef float narrow __attribute__((vector_size(8)));
    narrow v;
    memcpy(&v, x, sizeof v);
    return __builtin_convertvector(v, f64vec);
}
NG_INLINE void store_f32(float *x, f64vec v)
{
    typedef float narrow __attribute__((vector_size(8)));
    const narrow narrowed = __builtin_convertvector(v, narrow);
    memcpy(x, &narrowed, sizeof narrowed);
}

NG_INLINE f64vec low_half(f32vec v) { return (f64vec){(double)v[0], (double)v[1]}; }
NG_INLINE f64vec high_half(f32vec v) { return (f64vec){(double)v[2], (double)v[3]}; }

NG_INLINE void stream_vector(void *x, f64vec v) { memcpy(x, &v, sizeof v); }
NG_INLINE void stream_end(void) {}

NG_INLINE f32vec fused_f32vec(f32vec a, f32vec b, f32vec c) { return a * b + c; }
NG_INLINE f64vec fused_f64vec(f64vec a, f64vec b, f64vec c) { return a * b + c; }

NG_INLINE double sum_f64vec(f64vec v) { return v[0] + v[1]; }
