/* How far the elementwise functions are from the exact values, in ulp (units in the last place):
 * float against double for every one of the 2^32 floats, double against long double for random
 * numbers. Fails if an error is larger than elementwise.h says.
 *
 *     build/release/tests/accuracy/accuracy [STRIDE]   every STRIDE-th float; 1 takes minutes */
#include "core/tensor.h"
#include "kernels/kernels.h"
#include "kernels/walk.h"
#include <float.h>
#include <math.h>
#include <normgrad/elementwise.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static long double sigmoid_l(long double x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
static double silu(double x) { return x * sigmoid(x); }
static long double silu_l(long double x) { return x * sigmoid_l(x); }
static double softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }
static long double softplus_l(long double x) { return fmaxl(x, 0) + log1pl(expl(-fabsl(x))); }
static double gelu(double x) { return x * (0.5 * erfc(-x * M_SQRT1_2)); }
static long double gelu_l(long double x)
{
    return x * (0.5L * erfcl(-x * 0.707106781186547524400844362104849039L));
}
static const double gelu_scale = 1.59576912160573071176, gelu_cubic = 0.044715;
static double gelu_tanh(double x) { return x * sigmoid(gelu_scale * (x + gelu_cubic * x * x * x)); }
static long double gelu_tanh_l(long double x)
{
    const long double scale = 1.595769121605730711759784869140L; /* 2 sqrt(2 / pi) */
    return x * sigmoid_l(scale * (x + 0.044715L * x * x * x));
}
static double mish(double x) { return x * tanh(softplus(x)); }
static long double mish_l(long double x) { return x * tanhl(softplus_l(x)); }
static double softsign(double x) { return isinf(x) ? copysign(1, x) : x / (1 + fabs(x)); }
static long double softsign_l(long double x)
{
    return isinf(x) ? copysignl(1, x) : x / (1 + fabsl(x));
}
static double elu(double x) { return x > 0 ? x : expm1(x); }
static long double elu_l(long double x) { return x > 0 ? x : expm1l(x); }
static ng_tensor *elu_of_one(ng_tape *tape, ng_tensor *x) { return ng_elu(tape, x, 1); }
static double selu(double x)
{
    return 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * expm1(x));
}
static long double selu_l(long double x)
{
    return 1.0507009873554804934193349852946L *
           (x > 0 ? x : 1.6732632423543772848170429916717L * expm1l(x));
}

/* A function, the errors that elementwise.h states, and the arguments from which on they hold. */
typedef struct {
    const char *name;
    ng_tensor *(*op)(ng_tape *tape, ng_tensor *x);
    double (*exact)(double);
    long double (*exact_l)(long double);
    double in_float, in_double, from_float, from_double;
} measured;

#define ALL -HUGE_VAL, -HUGE_VAL
static const measured functions[] = {
    {"exp", ng_exp, exp, expl, 1.1, 1.1, ALL},
    {"log", ng_log, log, logl, 1.1, 1, ALL},
    {"log1p", ng_log1p, log1p, log1pl, 1.6, 1.5, ALL},
    {"expm1", ng_expm1, expm1, expm1l, 1.5, 2.4, ALL},
    {"sin", ng_sin, sin, sinl, 1.6, 1.6, ALL},
    {"cos", ng_cos, cos, cosl, 1.6, 1.6, ALL},
    {"atan", ng_atan, atan, atanl, 2, 2.4, ALL},
    {"tanh", ng_tanh, tanh, tanhl, 1.5, 2.8, ALL},
    {"erf", ng_erf, erf, erfl, 1.2, 2.8, ALL},
    {"erfc", ng_erfc, erfc, erfcl, 2, 6.5, ALL},
    {"sigmoid", ng_sigmoid, sigmoid, sigmoid_l, 2.6, 2.6, ALL},
    {"softplus", ng_softplus, softplus, softplus_l, 2, 2, ALL},
    {"softsign", ng_softsign, softsign, softsign_l, 1.5, 1.5, ALL},
    {"elu", elu_of_one, elu, elu_l, 1.5, 2.4, ALL},
    {"selu", ng_selu, selu, selu_l, 3, 4, ALL},
    {"gelu", ng_gelu, gelu, gelu_l, 6, 8, ALL},
    {"mish", ng_mish, mish, mish_l, 5, 5, ALL},
    {"silu", ng_silu, silu, silu_l, 4, 4, ALL},
    {"gelu_tanh", ng_gelu_tanh, gelu_tanh, gelu_tanh_l, 8, 8, -1.8, -1.8},
    {"gelu_tanh", ng_gelu_tanh, gelu_tanh, gelu_tanh_l, 250, 2000, ALL},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions, CHUNK = 4096 };

/* Numbers to which an error belongs, and the largest so far. */
typedef struct {
    double ulp, x, y;
} worst;

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state) { return (double)(next(state) >> 11) * 0x1p-53; }

/* |y - exact| in ulp, 1/2 where y is the nearest number, Inf for a wrong NaN, sign or infinity.
 * `nearest` is `exact`, rounded. */
static double error_of(double y, long double exact, double nearest, bool single)
{
    if (y == nearest && signbit(y) == signbit(nearest)) return 0.5;
    if (isnan(y) && isnan(nearest)) return 0;
    const double most = single ? (double)FLT_MAX : DBL_MAX;
    if (isinf(y) && fabs(nearest) == most) return 1;
    if (isinf(nearest) && fabs(y) == most) return 1;
    if (!isfinite(y) || !isfinite(nearest) || signbit(y) != signbit(nearest)) return HUGE_VAL;
    const int digits = single ? FLT_MANT_DIG : DBL_MANT_DIG,
              least = single ? FLT_MIN_EXP : DBL_MIN_EXP;
    int exponent;
    frexp(nearest, &exponent);
    return (double)ldexpl(fabsl((long double)y - exact),
                          digits - (exponent < least ? least : exponent));
}

static void note(worst *w, double ulp, double x, double y)
{
    if (ulp > w->ulp) *w = (worst){ulp, x, y};
}

typedef struct {
    int function, thread, threads; /* of powers: 1 in float, 0 in double */
    uint64_t stride;
    worst worst;
} job;

static void *measure_floats(void *argument)
{
    job *j = argument;
    const measured *f = &functions[j->function];
    const uint64_t all = (uint64_t)1 << 32, step = CHUNK * j->stride;
    ng_tensor *in = ng_zeros_new(NG_F32, NG_SHAPE(CHUNK));
    ng_tape *tape = ng_tape_new();
    if (!in || !tape) exit(1);
    float *x = in->data;
    for (uint64_t first = step * (uint64_t)j->thread; first < all;
         first += step * (uint64_t)j->threads) {
        for (uint64_t i = 0; i < CHUNK; i++) {
            const uint32_t bits = (uint32_t)(first + i * j->stride);
            memcpy(&x[i], &bits, sizeof bits);
        }
        ng_tape_reset(tape);
        const float *y = f->op(tape, in)->data;
        for (int i = 0; i < CHUNK; i++) {
            const double at = (double)x[i], exact = f->exact(at);
            if (at < f->from_float) continue;
            note(&j->worst, error_of((double)y[i], (long double)exact, (double)(float)exact, true),
                 at, 0);
        }
    }
    ng_tape_free(tape);
    ng_tensor_free(in);
    return NULL;
}

/* Of any size, from -1 to 1, from -40 to 40, next to one of the seams between two formulas. */
static double random_argument(uint64_t *state)
{
    static const double seams[] = {
        M_LN2 / 2, M_SQRT1_2,           M_SQRT2,           M_PI_4, M_PI_2, M_PI,  0.7,
        28,        0.41421356237309503, 2.414213562373095, 22,     1,      0.625, 0x1p20};
    const uint64_t kind = next(state);
    const double u = uniform(state), sign = kind & 8 ? -1 : 1;
    double any;
    const uint64_t bits = next(state);
    memcpy(&any, &bits, sizeof any);
    switch (kind % 8) {
    case 0: return any;
    case 1: return sign * ldexp(1 + u, (int)(next(state) % 32) - 20);
    case 2: return sign * 750 * u;
    case 3: return sign * 40 * u;
    case 4:
        return sign * seams[next(state) % (sizeof seams / sizeof *seams)] *
               (1 + ldexp(u - 0.5, -(int)(next(state) % 30)));
    default: return sign * 2 * u;
    }
}

static void *measure_doubles(void *argument)
{
    job *j = argument;
    const measured *f = &functions[j->function];
    uint64_t state = (uint64_t)j->thread * 1000003;
    ng_tensor *in = ng_zeros_new(NG_F64, NG_SHAPE(CHUNK));
    ng_tape *tape = ng_tape_new();
    if (!in || !tape) exit(1);
    double *x = in->data;
    for (uint64_t done = 0; done < ((uint64_t)1 << 27) / j->stride / (uint64_t)j->threads;
         done += CHUNK) {
        for (int i = 0; i < CHUNK; i++) x[i] = random_argument(&state);
        ng_tape_reset(tape);
        const double *y = f->op(tape, in)->data;
        for (int i = 0; i < CHUNK; i++) {
            if (x[i] < f->from_double) continue;
            const long double exact = f->exact_l((long double)x[i]);
            note(&j->worst, error_of(y[i], exact, (double)exact, false), x[i], 0);
        }
    }
    ng_tape_free(tape);
    ng_tensor_free(in);
    return NULL;
}

/* x^y of random pairs whose power is in range, mostly. */
static void *measure_powers(void *argument)
{
    job *j = argument;
    const bool single = j->function == 1;
    const ng_kernels *kernels = ng_kernels_for(single ? NG_F32 : NG_F64);
    uint64_t state = (uint64_t)j->thread * 1000003;
    static _Thread_local double x[CHUNK], y[CHUNK], p[CHUNK];
    static _Thread_local float x32[CHUNK], y32[CHUNK], p32[CHUNK];
    const ng_walk walk = ng_walk_broadcast(NG_SHAPE(CHUNK), NG_SHAPE(CHUNK), NG_SHAPE(CHUNK));
    const double most = single ? 150 : 1080;
    for (uint64_t done = 0; done < ((uint64_t)1 << 27) / j->stride / (uint64_t)j->threads;
         done += CHUNK) {
        for (int i = 0; i < CHUNK; i++) {
            const uint64_t kind = next(&state);
            const double u = uniform(&state),
                         size = ldexp(2 * uniform(&state) - 1, -(int)(next(&state) % 20));
            x[i] = kind & 1 ? 1 + 0.5 * size : ldexp(1 + u, (int)(next(&state) % 200) - 100);
            y[i] = (2 * uniform(&state) - 1) * most / fabs(log2(x[i]));
            if (kind % 8 == 3) y[i] = rint(y[i]), x[i] = -x[i];
            if (kind % 64 == 5) y[i] = random_argument(&state);
            if (single)
                x[i] = (double)(x32[i] = (float)x[i]), y[i] = (double)(y32[i] = (float)y[i]);
        }
        if (single)
            kernels->binary(NG_BINARY_POW, &walk, x32, y32, p32);
        else
            kernels->binary(NG_BINARY_POW, &walk, x, y, p);
        for (int i = 0; i < CHUNK; i++) {
            const long double exact = powl((long double)x[i], (long double)y[i]);
            const double power = single ? (double)p32[i] : p[i];
            const double nearest = single ? (double)(float)exact : (double)exact;
            note(&j->worst, error_of(power, exact, nearest, single), x[i], y[i]);
        }
    }
    return NULL;
}

/* The worst of all threads. */
static worst measure(void *(*run)(void *), int function, uint64_t stride)
{
    enum { MOST = 64 };
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = processors < 1 ? 1 : processors > MOST ? MOST : (int)processors;
    job jobs[MOST];
    pthread_t ids[MOST];
    for (int i = 0; i < threads; i++) {
        jobs[i] = (job){.function = function, .thread = i, .threads = threads, .stride = stride};
        if (pthread_create(&ids[i], NULL, run, &jobs[i]) != 0) exit(1);
    }
    worst most = {0};
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        note(&most, jobs[i].worst.ulp, jobs[i].worst.x, jobs[i].worst.y);
    }
    return most;
}

static bool print(const char *name, bool single, worst w, double stated)
{
    const bool wrong = w.ulp > stated;
    printf("%-9s %-8s %8.3f %5.1f  %.17g", name, single ? "float32" : "float64", w.ulp, stated,
           w.x);
    if (w.y != 0) printf(" %.17g", w.y);
    puts(wrong ? "  TOO LARGE" : "");
    fflush(stdout);
    return wrong;
}

int main(int count, char **arguments)
{
    const uint64_t stride = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    const char *isa = ng_kernels_for(NG_F32)->isa;
    /* Without fused multiply-add. */
    const double more = strcmp(isa, "baseline") == 0 ? 1 : 0;
    const bool wide = LDBL_MANT_DIG >= 64;
    bool wrong = stride < 1;
    printf("# %s: function, dtype, largest error in ulp, the stated one, where\n", isa);
    for (int i = 0; i < FUNCTIONS && stride > 0; i++) {
        const measured *f = &functions[i];
        wrong |= print(f->name, true, measure(measure_floats, i, stride), f->in_float + more);
        if (wide) wrong |= print(f->name, false, measure(measure_doubles, i, stride), f->in_double);
    }
    for (int single = 1; single >= 0 && wide && stride > 0; single--)
        wrong |= print("pow", single, measure(measure_powers, single, stride), single ? 0.7 : 1);
    return wrong;
}
