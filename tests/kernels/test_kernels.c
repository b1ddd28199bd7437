/* Every kernel of kernels.def against plain long-double loops, in every table (instruction set and
 * dtype); tables of processors with fused multiply-add agree to the bit. Hard cases of each. */
#include "kernels/parallel.h"
#include "table.h"
#include <setjmp.h>

/* ---- Pointwise ---------------------------------------------------------------------------- */

static long double sigmoid(long double x) { return 1 / (1 + expl(-x)); }
static long double phi(long double x) { return expl(-x * x / 2) * 0.39894228040143267794L; }
static long double cdf(long double x) { return erfcl(-x * 0.70710678118654752440L) / 2; }
static long double softplus(long double x) { return log1pl(expl(x)); }
static long double squared(long double x) { return x * x; }
static long double gelu_share(long double x)
{
    return sigmoid(1.59576912160573071176L * (x + 0.044715L * x * x * x));
}

/* X(map, f(x; a, b), its slope, or NONE where the kernels have no fast one) */
#define NONE (long double)NAN
#define MAPS(X)                                                                                    \
    X(NEG, -x, NONE)                                                                               \
    X(ABS, fabsl(x), (x > 0) - (x < 0))                                                            \
    X(SIGN, (x > 0) - (x < 0), NONE)                                                               \
    X(SQUARE, x *x, 2 * x)                                                                         \
    X(RECIPROCAL, 1 / x, NONE)                                                                     \
    X(EXP, expl(x), expl(x))                                                                       \
    X(LOG, logl(x), 1 / x)                                                                         \
    X(SQRT, sqrtl(x), 0.5L / sqrtl(x))                                                             \
    X(RSQRT, 1 / sqrtl(x), NONE)                                                                   \
    X(SIN, sinl(x), NONE)                                                                          \
    X(COS, cosl(x), NONE)                                                                          \
    X(ERF, erfl(x), NONE)                                                                          \
    X(ERFC, erfcl(x), NONE)                                                                        \
    X(AFFINE, a *x + b, NONE)                                                                      \
    X(POW, powl(x, a), NONE)                                                                       \
    X(CLAMP, fminl(fmaxl(x, a), b), x >= a && x <= b)                                              \
    X(TANH, tanhl(x), 1 - squared(tanhl(x)))                                                       \
    X(SIGMOID, sigmoid(x), sigmoid(x) * (1 - sigmoid(x)))                                          \
    X(RELU, fmaxl(x, 0), x > 0)                                                                    \
    X(LEAKY_RELU, x > 0 ? x : a * x, x > 0 ? 1 : a)                                                \
    X(GELU, x *cdf(x), cdf(x) + x * phi(x))                                                        \
    X(GELU_TANH, x *gelu_share(x),                                                                 \
      gelu_share(x) + x * gelu_share(x) * (1 - gelu_share(x)) * 1.59576912160573071176L *          \
                          (1 + 0.134145L * x * x))                                                 \
    X(SILU, x *sigmoid(x), sigmoid(x) + x * sigmoid(x) * (1 - sigmoid(x)))                         \
    X(SOFTPLUS, softplus(x), sigmoid(x))                                                           \
    X(FLOOR, floorl(x), NONE)                                                                      \
    X(LOG1P, log1pl(x), 1 / (1 + x))                                                               \
    X(EXPM1, expm1l(x), expl(x))                                                                   \
    X(ATAN, atanl(x), NONE)                                                                        \
    X(ELU, x > 0 ? x : a * expm1l(b * x), x > 0 ? 1 : a * b * expl(b * x))                         \
    X(MISH, x *tanhl(softplus(x)),                                                                 \
      tanhl(softplus(x)) + x * (1 - squared(tanhl(softplus(x)))) * sigmoid(x))                     \
    X(HARDSWISH, x *fminl(fmaxl(x + 3, 0), 6) / 6, x < -3 ? 0 : x > 3 ? 1 : x / 3 + 0.5L)

static long double map_value(int map, long double x, long double a, long double b)
{
    switch (map) {
#define X(name, value, slope)                                                                      \
    case NG_MAP_##name: return value;
        MAPS(X)
#undef X
    default: return NONE;
    }
}

static long double map_slope(int map, long double x, long double a, long double b)
{
    (void)b;
    switch (map) {
#define X(name, value, slope)                                                                      \
    case NG_MAP_##name: return slope;
        MAPS(X)
#undef X
    default: return NONE;
    }
}

static bool has_slope(int map) { return !isnan(map_slope(map, 0.5L, 1, 1)); }

static bool only_positive(int map)
{
    return map == NG_MAP_LOG || map == NG_MAP_SQRT || map == NG_MAP_RSQRT || map == NG_MAP_POW ||
           map == NG_MAP_LOG1P;
}

/* Each function is good to 2 ulp; their compositions here multiply that by the condition of erfc,
 * 2 (x / sqrt 2)^2 < 40, in the tails; a slope near a zero of its own cancels. */
static void compare_maps(void)
{
    const double a = 0.5, b = 2.25;
    const long double la = 0.5L, lb = 2.25L;
    for (int map = 0; map < NG_MAP_COUNT; map++)
        for (int s = 0; s < SIZES; s++) {
            const int64_t n = sizes[s];
            const char *x = uniform(n, only_positive(map) ? 0.01 : -6, 6), *dy = uniform(n, -1, 1);
            char *y = make(n), *dx = make(n), *sum = constant(n, 3);
            const ng_mapping f = {(ng_map)map, a, b};
            k->map(f, x, y, n);
            for (int64_t i = 0; i < n; i++) {
                const double floor = map == NG_MAP_AFFINE ? 1 : 0;
                expect("map", y, i, map_value(map, get(x, i), la, lb), 100, floor);
            }
            if (has_slope(map)) {
                k->map_backward(f, x, y, dy, dx, n, false);
                k->map_backward(f, x, y, dy, sum, n, true);
                for (int64_t i = 0; i < n; i++) {
                    const long double slope = map_slope(map, get(x, i), la, lb) * get(dy, i);
                    expect("slope", dx, i, slope, 200, 0.01);
                    expect("accumulated slope", sum, i, 3 + slope, 200, 1);
                }
            }
            release();
        }
}

/* Elements first .. first + count - 1 computed alone have the bits that they have among all. */
static void expect_alone(const char *what, const char *all, const char *alone, int64_t first,
                         int64_t count)
{
    expect_bits(what, all + (size_t)first * ng_dtype_bytes(dtype), alone, count);
}

/* At any place in a run and for any length: the bits of an element depend on its value only. */
START_TEST(an_element_has_the_same_bits_in_any_place)
{
    enum { N = 70, PLACES = 20, LENGTHS = 36 };
    if (!use_table(_i)) return;
    const size_t bytes = ng_dtype_bytes(dtype);
    const char *x = uniform(N, 0.1, 1.9), *b = uniform(N, 0.1, 0.9), *dy = uniform(N, -1, 1);
    char *y = make(N), *dx = make(N), *alone = make(N);
    for (int op = 0; op < NG_MAP_COUNT; op++) {
        const ng_mapping f = {(ng_map)op, 0.3, 2.1};
        k->map(f, x, y, N);
        if (has_slope(op)) k->map_backward(f, x, y, dy, dx, N, false);
        for (int64_t first = 0; first < PLACES; first++)
            for (int64_t count = 1; count <= LENGTHS; count++) {
                const size_t at = (size_t)first * bytes;
                k->map(f, x + at, alone, count);
                expect_alone("map", y, alone, first, count);
                if (!has_slope(op)) continue;
                k->map_backward(f, x + at, y + at, dy + at, alone, count, false);
                expect_alone("slope", dx, alone, first, count);
            }
    }
    for (int i = 0; i < 3 * NG_BINARY_COUNT; i++) {
        const ng_binary op = (ng_binary)(i / 3);
        const bool a_once = i % 3 == 1, b_once = i % 3 == 2;
        const ng_shape one = NG_SCALAR, many = NG_SHAPE(N);
        ng_walk walk = ng_walk_broadcast(many, a_once ? one : many, b_once ? one : many);
        k->binary(op, &walk, x, b, y);
        for (int64_t first = 0; first < PLACES; first++)
            for (int64_t count = 1; count <= LENGTHS; count++) {
                const size_t at = (size_t)first * bytes;
                const ng_shape few = NG_SHAPE(count);
                walk = ng_walk_broadcast(few, a_once ? one : few, b_once ? one : few);
                k->binary(op, &walk, x + (a_once ? 0 : at), b + (b_once ? 0 : at), alone);
                expect_alone("binary", y, alone, first, count);
            }
    }
    release();
}

/* The library's own functions are right to the last digits, in the left tail too. */
typedef struct {
    int map;
    double low, high, units;
} accurate_range;

/* Units of what is less are as large as its own. */
static double least_normal(void) { return dtype == NG_F32 ? (double)FLT_MIN : DBL_MIN; }

static void expect_accurate(accurate_range range)
{
    const int64_t n = 10007;
    const char *x = uniform(n, range.low, range.high);
    char *y = make(n);
    k->map((ng_mapping){.kind = (ng_map)range.map}, x, y, n);
    for (int64_t i = 0; i < n; i++)
        expect("value", y, i, map_value(range.map, get(x, i), 0, 0), range.units, least_normal());
    release();
}

static void compare_functions(void)
{
    static const accurate_range of_float[] = {
        {NG_MAP_EXP, -87, 88, 2},   {NG_MAP_EXPM1, -30, 88, 2},  {NG_MAP_EXPM1, -1, 1, 2},
        {NG_MAP_TANH, -10, 10, 2},  {NG_MAP_MISH, -110, 80, 6},  {NG_MAP_GELU, -15, 13, 6},
        {NG_MAP_LOG, 0, 3e38, 2},   {NG_MAP_LOG, 0.5, 2, 2},     {NG_MAP_LOG1P, -1, 1, 2},
        {NG_MAP_SIN, -9, 9, 2},     {NG_MAP_SIN, -1e30, 1e4, 2}, {NG_MAP_COS, -9, 9, 2},
        {NG_MAP_COS, -1e4, 1e4, 2}, {NG_MAP_ERF, -4, 4, 2},      {NG_MAP_ERFC, -4, 9, 2.5},
        {NG_MAP_ATAN, -3, 3, 2},    {NG_MAP_SILU, -110, 40, 4},
    };
    static const accurate_range of_double[] = {
        {NG_MAP_EXP, -708, 709, 1},    {NG_MAP_EXP, -1, 1, 1},
        {NG_MAP_EXPM1, -40, 709, 2},   {NG_MAP_EXPM1, -1, 1, 2},
        {NG_MAP_TANH, -23, 23, 3},     {NG_MAP_TANH, -1, 1, 3},
        {NG_MAP_LOG, 0.4, 2.5, 1},     {NG_MAP_LOG, 0, 1e300, 1},
        {NG_MAP_LOG1P, -1, 1, 1},      {NG_MAP_LOG1P, 0, 1e20, 1},
        {NG_MAP_SIN, -9, 9, 2},        {NG_MAP_SIN, -1e6, 1e6, 2},
        {NG_MAP_COS, -9, 9, 2},        {NG_MAP_COS, -1e6, 1e6, 2},
        {NG_MAP_ERF, -1, 1, 3},        {NG_MAP_ERF, -7, 7, 3},
        {NG_MAP_ERFC, -1, 1, 6},       {NG_MAP_ERFC, -7, 26, 6},
        {NG_MAP_SIGMOID, -700, 40, 4}, {NG_MAP_SOFTPLUS, -700, 9, 4},
        {NG_MAP_MISH, -760, 80, 6},    {NG_MAP_GELU, -40, 13, 8},
        {NG_MAP_GELU, -2, 2, 8},       {NG_MAP_GELU_TANH, -1.5, 9, 8},
        {NG_MAP_SILU, -760, 40, 4},
    };
    const size_t count = in_float ? sizeof of_float : sizeof of_double;
    for (size_t c = 0; c < count / sizeof(accurate_range); c++)
        expect_accurate(in_float ? of_float[c] : of_double[c]);
}

/* The maps that are functions of the C library in double, and how far ours are from the exact value
 * when that is rounded. */
static const struct {
    int map;
    double (*of_libm)(double);
    double units;
} library_functions[] = {{NG_MAP_EXP, exp, 1},  {NG_MAP_EXPM1, expm1, 2}, {NG_MAP_TANH, tanh, 3},
                         {NG_MAP_LOG, log, 1},  {NG_MAP_SIN, sin, 2},     {NG_MAP_LOG1P, log1p, 1},
                         {NG_MAP_COS, cos, 2},  {NG_MAP_ERF, erf, 3},     {NG_MAP_ERFC, erfc, 6},
                         {NG_MAP_ATAN, atan, 2}};
enum { LIBRARY = sizeof library_functions / sizeof *library_functions };

#define PI 3.14159265358979323846

/* Both kinds of zero, infinities, NaN, numbers below the normal ones, overflow and underflow, sines
 * of huge numbers. */
START_TEST(functions_in_double_have_the_edges_of_the_c_library)
{
    static const double edges[] = {
        0,       -0.0,    inf,       -inf,     nan_value, 0x1p-1074, -0x1p-1074, 1e-310,
        -1e-310, -1,      -2,        1,        709.78,    709.79,    710,        -708.5,
        -744.5,  -745.2,  -800,      800,      1e4,       -1e4,      27.2,       28.1,
        -6,      -28.1,   1e6,       -1e6,     1.1e6,     -1.1e6,    1e22,       -1e300,
        1e308,   -1e308,  0x1p-60,   -0x1p-60, 0x1p53,    0x1p1023,  1.3e308,    DBL_MAX,
        -0.9999, 0x1p-26, 0x1p-1022, PI,       PI / 2,    -PI};
    enum { N = sizeof edges / sizeof *edges };
    if (!use_table(_i) || in_float) return;
    for (int f = 0; f < LIBRARY; f++) {
        double y[N];
        k->map((ng_mapping){.kind = (ng_map)library_functions[f].map}, edges, y, N);
        for (int i = 0; i < N; i++) {
            const double expected = library_functions[f].of_libm(edges[i]);
            const double smallest = 0x1p-1022 * ulp, allowed = library_functions[f].units + 1;
            const double error = fmax(allowed * ulp * fabs(expected), smallest);
            const bool sign = isnan(expected) || signbit(y[i]) == signbit(expected);
            ck_assert_msg((y[i] == expected || fabs(y[i] - expected) <= error ||
                           (isnan(y[i]) && isnan(expected))) &&
                              sign,
                          "%s map %d of %.17g: %.17g, expected %.17g", k->isa,
                          library_functions[f].map, edges[i], y[i], expected);
        }
    }
}

/* x^y in both dtypes, for all pairs of numbers at the edges of a rule or a range. */
START_TEST(powers_have_the_edges_of_the_c_library)
{
    static const double edges[] = {
        0,      -0.0,        1,    -1,        0.5,      -0.5,      2,       -2,       3,
        -3,     inf,         -inf, nan_value, 0x1p-149, -0x1p-149, 0x1p127, -0x1p127, 0x1p23,
        0x1p24, -0x1p23 - 1, 1.5,  -1.5,      127,      128,       -149.5,  -150,     -0.25};
    enum { EDGES = sizeof edges / sizeof *edges, N = EDGES * EDGES };
    if (!use_table(_i)) return;
    char *x = make(N), *y = make(N), *power = make(N);
    for (int i = 0; i < N; i++) put(x, i, edges[i / EDGES]), put(y, i, edges[i % EDGES]);
    const ng_walk walk = ng_walk_broadcast(NG_SHAPE(N), NG_SHAPE(N), NG_SHAPE(N));
    k->binary(NG_BINARY_POW, &walk, x, y, power);
    for (int i = 0; i < N; i++) {
        const double exact = pow((double)get(x, i), (double)get(y, i)), got = (double)get(power, i);
        const double expected = in_float ? (double)(float)exact : exact;
        const bool close = fabs(got - expected) <= ulp * fabs(expected);
        ck_assert_msg((isnan(got) && isnan(expected)) ||
                          ((got == expected || close) && signbit(got) == signbit(expected)),
                      "%s %s %g^%g: %g, expected %g", k->isa, ng_dtype_name(dtype),
                      (double)get(x, i), (double)get(y, i), got, expected);
    }
    release();
}

static long double binary_value(int op, long double a, long double b)
{
    switch (op) {
    case NG_BINARY_ADD: return a + b;
    case NG_BINARY_SUB: return a - b;
    case NG_BINARY_MUL: return a * b;
    case NG_BINARY_DIV: return a / b;
    case NG_BINARY_POW: return powl(a, b);
    case NG_BINARY_MAXIMUM: return a > b ? a : b;
    case NG_BINARY_MINIMUM: return a < b ? a : b;
    case NG_BINARY_GREATER: return a > b;
    case NG_BINARY_GREATER_EQUAL: return a >= b;
    case NG_BINARY_LESS: return a < b;
    case NG_BINARY_LOGISTIC: return log1pl(expl(a)) - a * b;
    case NG_BINARY_LOGISTIC_SLOPE: return 1 / (1 + expl(-a)) - b;
    default: return a == b;
    }
}

/* Offset of the operand's element for the result's flat index. */
static int64_t broadcast_offset(ng_shape result, ng_shape operand, int64_t index)
{
    int64_t offset = 0, stride = 1;
    for (int d = result.rank - 1; d >= 0; d--) {
        const int o = d - (result.rank - operand.rank);
        const int64_t at = index % result.dim[d];
        index /= result.dim[d];
        if (o < 0) continue;
        if (operand.dim[o] > 1) offset += at * stride;
        stride *= operand.dim[o];
    }
    return offset;
}

static int64_t size_of(ng_shape shape)
{
    int64_t size = 1;
    for (int d = 0; d < shape.rank; d++) size *= shape.dim[d];
    return size;
}

static void compare_binary(void)
{
    const struct {
        ng_shape result, a, b;
    } cases[] = {
        {NG_SCALAR, NG_SCALAR, NG_SCALAR},
        {NG_SHAPE(17), NG_SHAPE(17), NG_SHAPE(17)},
        {NG_SHAPE(33), NG_SHAPE(1), NG_SHAPE(33)},
        {NG_SHAPE(33), NG_SHAPE(33), NG_SCALAR},
        {NG_SHAPE(5, 7), NG_SHAPE(5, 7), NG_SHAPE(7)},
        {NG_SHAPE(5, 7), NG_SHAPE(5, 1), NG_SHAPE(1, 7)},
        {NG_SHAPE(3, 4, 5), NG_SHAPE(4, 1), NG_SHAPE(3, 1, 5)},
        {NG_SHAPE(3, 1, 5), NG_SHAPE(3, 1, 5), NG_SHAPE(3, 1, 1)},
        {NG_SHAPE(2, 3, 2, 3, 5), NG_SHAPE(2, 1, 2, 1, 5), NG_SHAPE(3, 1, 3, 1)},
        {NG_SHAPE(2, 9000), NG_SHAPE(2, 9000), NG_SHAPE(9000)},
        {NG_SHAPE(0, 3), NG_SHAPE(0, 3), NG_SHAPE(3)},
        {NG_SHAPE(7, 37, 401), NG_SHAPE(7, 37, 401), NG_SHAPE(37, 1)}, /* shared by threads */
    };
    ng_set_threads(3);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int op = 0; op < NG_BINARY_COUNT; op++) {
            const int64_t n = size_of(cases[c].result);
            const char *a = uniform(size_of(cases[c].a), 0.5, 2);
            const char *b = uniform(size_of(cases[c].b), 0.5, 2);
            char *y = make(n);
            const ng_walk walk = ng_walk_broadcast(cases[c].result, cases[c].a, cases[c].b);
            ck_assert_int_eq(walk.size, n);
            k->binary((ng_binary)op, &walk, a, b, y);
            for (int64_t i = 0; i < n; i++)
                expect("binary", y, i,
                       binary_value(op, get(a, broadcast_offset(cases[c].result, cases[c].a, i)),
                                    get(b, broadcast_offset(cases[c].result, cases[c].b, i))),
                       8, op == NG_BINARY_SUB || op >= NG_BINARY_LOGISTIC ? 2 : 0);
            release();
        }
    ng_set_threads(0);
}

static void compare_small_pointwise(void)
{
    for (int s = 0; s < SIZES; s++) {
        const int64_t n = sizes[s];
        const char *x = uniform(n, -1, 1), *z = uniform(n, -1, 1), *c = constant(n, 0);
        for (int64_t i = 0; i < n; i += 3) put((char *)c, i, -2);
        char *where = make(n), *fill = make(n), *add = copy(z, n), *axpy = make(n);
        char *axpy_to = copy(z, n), *clamped = copy(x, n);
        k->where(c, x, z, where, n);
        k->fill(fill, n, 0.1);
        k->add_to(x, add, n);
        k->axpy(-3, x, axpy, n, false);
        k->axpy(-3, x, axpy_to, n, true);
        const double weights[] = {2, -0.5, 3};
        char *combined = make(n), *alone = make(n);
        k->weighted_sum((const void *const[]){x, z, c}, weights, 3, combined, n);
        k->weighted_sum((const void *const[]){x}, weights, 1, alone, n);
        put(clamped, 0, nan_value);
        k->map((ng_mapping){NG_MAP_CLAMP, -0.25, 0.5}, clamped, clamped, n);
        long double dot = 0;
        for (int64_t i = 0; i < n; i++) {
            const long double p = get(x, i), q = get(z, i);
            expect("where", where, i, i % 3 ? q : p, 0, 0);
            expect("fill", fill, i, 0.1L, 1, 0);
            expect("add_to", add, i, p + q, 1, 1);
            expect("axpy", axpy, i, -3 * p, 1, 0);
            expect("axpy onto", axpy_to, i, q - 3 * p, 2, 3);
            expect("weighted_sum", combined, i, 2 * p - q / 2 + 3 * get(c, i), 2, 6);
            expect("weighted_sum of one", alone, i, 2 * p, 0, 0);
            expect("clamp", clamped, i, i ? fminl(fmaxl(p, -0.25L), 0.5L) : (long double)nan_value,
                   0, 0);
            dot += p * q;
        }
        assert_near(k->dot(x, z, n), (double)dot, 1e-15 * (double)n);
        release();
    }
}

/* ---- Reductions --------------------------------------------------------------------------- */

/* Calls check with the sizes as outer, n and inner. */
static void for_each_split(void (*check)(int64_t outer, int64_t n, int64_t inner))
{
    for (int s = 0; s < SIZES; s++) {
        check(1, sizes[s], 1);
        check(29, sizes[s], 1);
        check(1, sizes[s], 3);
        check(3, 7, sizes[s]);
    }
    check(1, 10000, 1);
}

static void check_reductions(int64_t outer, int64_t n, int64_t inner)
{
    const char *x = uniform(outer * n * inner, -1, 1);
    char *sum = make(outer * inner), *onto = constant(outer * inner, 2), *max = make(outer * inner);
    int64_t *argmax = keep(outer * inner, sizeof *argmax);
    k->sum(x, sum, outer, n, inner, 0.5, false);
    k->sum(x, onto, outer, n, inner, 0.5, true);
    double *exact = keep(outer * inner, sizeof *exact);
    double *squares = keep(outer * inner, sizeof *squares);
    k->sum_to_f64(x, exact, outer, n, inner, false);
    k->sum_to_f64(x, squares, outer, n, inner, true);
    k->max(x, max, outer, n, inner);
    k->argmax(x, argmax, outer, n, inner);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            long double total = 0, square = 0;
            int64_t best = 0;
            for (int64_t j = 0; j < n; j++) {
                total += get(x, (o * n + j) * inner + i);
                square += get(x, (o * n + j) * inner + i) * get(x, (o * n + j) * inner + i);
                if (get(x, (o * n + j) * inner + i) > get(x, (o * n + best) * inner + i)) best = j;
            }
            expect("sum", sum, o * inner + i, total / 2, 1, in_float ? 1e-6 : (double)n);
            ck_assert_double_eq_tol(exact[o * inner + i], (double)total, 1e-15 * (double)n);
            ck_assert_double_eq_tol(squares[o * inner + i], (double)square, 1e-15 * (double)n);
            expect("sum onto", onto, o * inner + i, 2 + total / 2, 1, (double)n);
            expect("max", max, o * inner + i, get(x, (o * n + best) * inner + i), 0, 0);
            ck_assert_int_eq(argmax[o * inner + i], best);
        }
    release();
}

/* Pieces of columns that threads take need not end where a kernel's blocks do. */
START_TEST(sums_of_columns_are_added_once_for_any_number_of_threads)
{
    if (!use_table(_i)) return;
    const int64_t rows = 20, n = 9001;
    const char *x = constant(rows * n, 0.5);
    for (int threads = 1; threads <= 16; threads *= 2) {
        ng_set_threads(threads);
        char *onto = constant(n, 3);
        k->sum(x, onto, 1, rows, n, 2, true);
        for (int64_t i = 0; i < n; i++) expect("sum onto", onto, i, 3 + rows, 0, 0);
    }
    ng_set_threads(0);
    release();
}

static void check_running_sums(int64_t outer, int64_t n, int64_t inner)
{
    const char *x = uniform(outer * n * inner, -1, 1);
    char *forth = make(outer * n * inner), *back = make(outer * n * inner);
    k->cumsum(x, forth, outer, n, inner, false);
    k->cumsum(x, back, outer, n, inner, true);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            long double before = 0, behind = 0;
            for (int64_t j = 0; j < n; j++) {
                const int64_t at = (o * n + j) * inner + i, end = (o * n + n - 1 - j) * inner + i;
                before += get(x, at), behind += get(x, end);
                expect("cumsum", forth, at, before, 2, in_float ? 1 : (double)n);
                expect("cumsum back", back, end, behind, 2, in_float ? 1 : (double)n);
            }
        }
    release();
}

/* The first element outside is at each place in turn, with others behind it. */
static void check_range(int64_t n)
{
    char *x = uniform(n, -1, 1);
    for (int64_t i = 0; i < n; i += 1 + i / 7) {
        char *spoiled = copy(x, n);
        if (i > 0) put(spoiled, i / 2, nan_value);
        put(spoiled, n - 1, -inf);
        put(spoiled, i, i % 2 ? 1.5 : -1.5);
        ck_assert_int_eq(k->first_outside(spoiled, n, -1, 1), i);
    }
    ck_assert_int_eq(k->first_outside(x, n, -1, 1), -1);
    release();
}

static void compare_reductions(void)
{
    for (int s = 0; s < SIZES; s++) check_range(sizes[s]);
    for_each_split(check_reductions);
    for_each_split(check_running_sums);
}

START_TEST(max_and_argmax_find_a_nan_and_the_first_of_equals)
{
    if (!use_table(_i)) return;
    for (int s = 0; s < SIZES; s++) {
        const int64_t n = sizes[s];
        int64_t argmax;
        char *x = constant(n, 1), *y = make(1);
        k->argmax(x, &argmax, 1, n, 1);
        ck_assert_int_eq(argmax, 0);
        put(x, n / 2, nan_value);
        put(x, n - 1, n > 1 ? 7 : nan_value);
        k->max(x, y, 1, n, 1);
        k->argmax(x, &argmax, 1, n, 1);
        if (n > 2) {
            ck_assert(isnan(get(y, 0)));
            ck_assert_int_eq(argmax, n / 2);
        }
        release();
    }
}

/* ---- Rows --------------------------------------------------------------------------------- */

static void compare_gather_and_scatter(void)
{
    const int64_t index[] = {2, 0, 2, 2, 1, 0};
    for (int s = 0; s < SIZES; s++) {
        const int64_t n = sizes[s];
        const char *table = uniform(3 * n, -1, 1), *x = uniform(6 * n, -1, 1);
        char *rows = make(6 * n), *sums = constant(3 * n, 1), *fresh = make(3 * n);
        k->gather_rows(table, index, rows, 6, n);
        const ng_scatter_shape shape = {6, 3, n};
        int64_t *scratch = keep(ng_scatter_scratch(&shape), sizeof *scratch);
        k->scatter_add_rows(&shape, x, index, sums, true, scratch);
        k->scatter_add_rows(&shape, x, index, fresh, false, scratch);
        for (int64_t i = 0; i < 6 * n; i++)
            expect("gather", rows, i, get(table, index[i / n] * n + i % n), 0, 0);
        for (int64_t i = 0; i < 3 * n; i++) {
            long double sum = 1;
            for (int r = 0; r < 6; r++)
                if (index[r] == i / n) sum += get(x, r * n + i % n);
            expect("scatter", sums, i, sum, 1, 4);
            expect("scatter", fresh, i, sum - 1, 1, 4);
        }
        release();
    }
}

START_TEST(softmax_takes_huge_logits_and_passes_nan_on_in_its_row)
{
    if (!use_table(_i)) return;
    char *x = constant(3 * 19, 1e4), *y = make(3 * 19);
    put(x, 19 + 4, nan_value);
    put(x, 2 * 19, -inf);
    k->softmax(x, y, 3, 19, 1);
    for (int i = 0; i < 19; i++) {
        expect("softmax", y, i, 1 / 19.0L, 2, 0);
        ck_assert(isnan(get(y, 19 + i)));
        expect("softmax", y, 38 + i, i ? 1 / 18.0L : 0, 2, 0);
    }
    k->softmax(x, y, 1, 3, 19); /* the same as columns */
    for (int i = 0; i < 3 * 19; i++)
        if (i % 19 == 4)
            ck_assert(isnan(get(y, i)));
        else
            expect("softmax", y, i, i % 19 ? 1 / 3.0L : i < 38 ? 1 / 2.0L : 0, 2, 0);
    release();
}

/* ---- Optimizers --------------------------------------------------------------------------- */

static void compare_optimizers(void)
{
    for (int s = 0; s < SIZES; s++)
        for (int mode = 0; mode < 4; mode++) {
            const int64_t n = sizes[s];
            const bool one = mode & 1, two = mode & 2;
            const ng_sgd_step sgd = {0.1, 0.02, 0.9, two ? 0 : 0.9, two ? 1 : 0.75, one};
            const ng_adam_step adam = {0.1, 0.9, 0.99, 1e-3, 0.02, 0.19, 0.0199, one};
            const ng_rmsprop_step rms = {0.1, 0.75, 1e-3, 0.02, 0.5, one};
            const char *w0 = uniform(n, -1, 1), *g0 = uniform(n, -1, 1), *u0 = uniform(n, 0.5, 1);
            const char *v0 = uniform(n, 1, 2), *m0 = uniform(n, -0.5, 0.5);
            char *w = copy(w0, n), *plain = copy(w0, n), *v = copy(v0, n);
            char *aw = copy(w0, n), *am = copy(m0, n), *av = copy(v0, n);
            char *rw = copy(w0, n), *rs = copy(v0, n), *rm = copy(m0, n), *rv = copy(u0, n);
            k->sgd(w, g0, v, n, &sgd);
            k->sgd(plain, g0, NULL, n, &sgd);
            const char *p0 = uniform(n, 1, 2);
            char *peak = copy(p0, n), *lw = copy(w0, n), *lm = copy(m0, n);
            k->adam(aw, g0, am, av, two ? peak : NULL, n, &adam);
            k->lion(lw, g0, lm, n, 0.1, 0.9, 0.75, 0.02);
            k->rmsprop(rw, g0, rs, one ? rm : NULL, two ? rv : NULL, n, &rms);
            for (int64_t i = 0; i < n; i++) {
                const long double x = get(w0, i), g = get(g0, i), decayed = g + 0.02L * x;
                const long double velocity = two ? decayed : 0.9L * get(v0, i) + 0.75L * decayed;
                expect("sgd velocity", v, i, velocity, 4, 1);
                expect("sgd", w, i, x - 0.1L * (one ? decayed + 0.9L * velocity : velocity), 4, 1);
                expect("sgd, no momentum", plain, i, x - 0.1L * decayed, 4, 1);

                const long double ag = one ? g : decayed;
                const long double m = 0.9L * get(m0, i) + 0.1L * ag,
                                  q = 0.99L * get(v0, i) + 0.01L * ag * ag;
                const long double most = fmaxl(q, get(p0, i)), divided = two ? most : q;
                const long double step = m / 0.19L / (sqrtl(divided / 0.0199L) + 1e-3L);
                expect("adam m", am, i, m, 4, 1);
                expect("adam v", av, i, q, 4, 1);
                if (two) expect("adam, largest v", peak, i, most, 4, 1);
                expect("adam", aw, i, x * (one ? 1 - 0.002L : 1) - 0.1L * step, 8, 1);

                const long double c = 0.9L * get(m0, i) + 0.1L * g;
                expect("lion m", lm, i, 0.75L * get(m0, i) + 0.25L * g, 4, 1);
                expect("lion", lw, i, x * (1 - 0.002L) - copysignl(0.1L, c), 4, 1);

                const long double square = 0.75L * get(v0, i) + 0.25L * decayed * decayed;
                const long double mean = 0.75L * get(m0, i) + 0.25L * decayed;
                long double move = decayed / (sqrtl(square - (one ? mean * mean : 0)) + 1e-3L);
                if (two) move += 0.5L * get(u0, i);
                expect("rmsprop square", rs, i, square, 4, 1);
                if (one) expect("rmsprop mean", rm, i, mean, 4, 1);
                if (two) expect("rmsprop velocity", rv, i, move, 8, 1);
                expect("rmsprop", rw, i, x - 0.1L * move, 8, 1);
            }
            release();
        }
}

static void expect_normal_or_zero(const char *state, int64_t n)
{
    const long double least = in_float ? (long double)FLT_MIN : (long double)DBL_MIN;
    for (int64_t i = 0; i < n; i++) ck_assert(get(state, i) == 0 || fabsl(get(state, i)) >= least);
}

/* Many processors are a hundred times slower on numbers below the smallest normal one. */
START_TEST(states_of_what_gets_no_gradient_end_at_zero)
{
    if (!use_table(_i)) return;
    enum { N = 33 };
    const double tiny = in_float ? 1e-30 : 1e-290, faint = in_float ? 3e-21 : 1e-155;
    const ng_sgd_step sgd = {.lr = 0.1, .momentum = 0.8, .keep = 0.8, .fresh = 1};
    const ng_adam_step adam = {0.1, 0.8, 0.75, 1e-8, 0, 0.9, 0.9, false};
    const ng_rmsprop_step rms = {0.1, 0.75, 1e-8, 0, 0.8, true};
    const char *none = constant(N, 0), *small = constant(N, faint); /* its square is not normal */
    char *w = constant(N, 1), *square = constant(N, 0), *mean = constant(N, 0);
    char *states[7];
    for (int i = 0; i < 7; i++) states[i] = constant(N, i % 2 ? -tiny : tiny);
    for (int step = 0; step < 300; step++) {
        k->sgd(w, none, states[1], N, &sgd);
        k->adam(w, none, states[3], states[2], NULL, N, &adam);
        k->lion(w, none, states[6], N, 0.1, 0.8, 0.7, 0);
        k->rmsprop(w, none, states[0], states[5], states[4], N, &rms);
        for (int i = 0; i < 7; i++) expect_normal_or_zero(states[i], N);
    }
    for (int i = 0; i < 7; i++) expect_bits("state", states[i], none, N);

    k->adam(w, small, mean, square, NULL, N, &adam);
    expect_bits("adam's square", square, none, N);
    for (int64_t i = 0; i < N; i++) expect("adam's mean", mean, i, 0.2L * get(small, i), 4, 0);
    k->rmsprop(w, small, square, NULL, NULL, N, &rms);
    expect_bits("rmsprop's square", square, none, N);

    const double least = in_float ? (double)FLT_MIN : DBL_MIN; /* beside which it counts as 0 too */
    char *adams = constant(N, 2 * least), *rmsprops = constant(N, 2 * least);
    k->adam(w, small, mean, adams, NULL, N, &adam);
    k->rmsprop(w, small, rmsprops, NULL, NULL, N, &rms);
    expect_bits("adam's square", adams, constant(N, 1.5 * least), N);
    expect_bits("rmsprop's square", rmsprops, constant(N, 1.5 * least), N);
    release();
}

/* Constant gradients have a variance of 0, which rounding may make negative. */
START_TEST(a_variance_of_gradients_that_is_below_zero_is_zero)
{
    if (!use_table(_i)) return;
    enum { N = 33 };
    const ng_rmsprop_step step = {.lr = 0.125, .alpha = 0.75, .eps = 0.5, .centered = true};
    char *w = constant(N, 1), *one = constant(N, 1), *mean = constant(N, 1);
    char *square = constant(N, 1 - 8 * ulp);
    k->rmsprop(w, one, square, mean, NULL, N, &step);
    expect_bits("mean", mean, one, N);
    for (int64_t i = 0; i < N; i++) ck_assert(get(square, i) < 1);
    expect_bits("w", w, constant(N, 1 - 0.125 / 0.5), N);
    release();
}

/* ---- Matrix product ----------------------------------------------------------------------- */

/* All transposes; alone, added to C, and with a bias; leading dimensions 3 beyond the rows'. */
static void check_gemm(int64_t m, int64_t n, int64_t depth)
{
    for (int mode = 0; mode < 12; mode++) {
        const bool ta = mode & 1, tb = mode & 2, add = mode & 4, biased = mode & 8;
        const int64_t lda = (ta ? m : depth) + 3, ldb = (tb ? depth : n) + 3, ldc = n + 3;
        const char *a = uniform((ta ? depth : m) * lda, -1, 1);
        const char *b = uniform((tb ? n : depth) * ldb, -1, 1);
        const char *bias = biased ? uniform(n, -1, 1) : NULL;
        char *c = constant(m * ldc, add ? 1 : nan_value);
        for (int64_t i = 0; i < m; i++) put(c, i * ldc + n, 77);
        k->gemm(&(ng_product){m, n, depth, {a, lda, ta}, {b, ldb, tb}, bias, c, ldc, add});
        for (int64_t i = 0; i < m; i++) {
            for (int64_t j = 0; j < n; j++) {
                long double sum = biased ? get(bias, j) : add;
                for (int64_t p = 0; p < depth; p++)
                    sum += get(a, ta ? p * lda + i : i * lda + p) *
                           get(b, tb ? j * ldb + p : p * ldb + j);
                expect("gemm", c, i * ldc + j, sum, 2, 1 + (double)depth / 2);
            }
            ck_assert(get(c, i * ldc + n) == 77);
        }
        release();
    }
}

static void compare_products(void)
{
    static const int64_t few[] = {1, 2, 3, 7, 13, 17, 33, 65};
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            for (int p = 0; p < 8; p++) check_gemm(few[i], few[j], few[p]);
    check_gemm(130, 67, 259);
    check_gemm(27, 39, 1021); /* rows 4096 bytes apart in float */
    check_gemm(5, 1030, 40);
    for (int64_t few_of = 1; few_of <= 4; few_of++) {
        check_gemm(few_of, 131, 1021);
        check_gemm(261, 131, few_of);
    }
    check_gemm(3, 4, 0);
    check_gemm(0, 4, 3);
}

/* Some elements of a product of several blocks in each direction. */
START_TEST(large_products_match_plain_loops)
{
    if (!use_table(_i)) return;
    const int64_t m = 1100, n = 700, depth = 720;
    const char *a = uniform(m * depth, -1, 1), *b = uniform(n * depth, -1, 1);
    const char *bias = uniform(n, -1, 1);
    char *c = constant(m * n, nan_value);
    k->gemm(&(ng_product){m, n, depth, {a, depth, false}, {b, depth, true}, bias, c, n, false});
    for (int64_t at = 0; at < m * n; at += 9973) {
        long double sum = get(bias, at % n);
        for (int64_t p = 0; p < depth; p++)
            sum += get(a, at / n * depth + p) * get(b, at % n * depth + p);
        expect("gemm", c, at, sum, 2, 1 + (double)depth / 2);
    }
}

START_TEST(matrix_products_pass_nan_on)
{
    if (!use_table(_i)) return;
    for (int big = 0; big < 2; big++) {
        const int64_t n = big ? 65 : 9;
        char *a = constant(n * n, 0), *b = constant(n * n, 0), *c = make(n * n);
        put(a, 2 * n + 1, nan_value);
        put(b, n + 3, inf); /* 0 Inf in every row of column 3 */
        k->gemm(&(ng_product){n, n, n, {a, n, false}, {b, n, false}, NULL, c, n, false});
        for (int64_t i = 0; i < n * n; i++)
            ck_assert((bool)isnan(get(c, i)) == (i / n == 2 || i % n == 3));
        release();
    }
}

/* ---- Scales and shifts, matrices turned ------------------------------------------------------ */

static void compare_move_toward(void)
{
    for (int s = 0; s < SIZES; s++) {
        const int64_t n = sizes[s];
        const char *from = uniform(n, -1, 1);
        char *running = copy(from, n);
        double *batch = doubles(n);
        for (int64_t i = 0; i < n; i++) batch[i] = 3 * ng_rng_uniform(&rng);
        k->move_toward(running, batch, 1.25, 0.1, n);
        for (int64_t i = 0; i < n; i++) {
            const long double old = get(from, i);
            expect("running", running, i, old + 0.1L * (1.25L * (long double)batch[i] - old), 2, 1);
        }
        release();
    }
}

/* A column norm without statistics scales and shifts, also in place. */
static void compare_channel_affine(void)
{
    for (int c = 0; c < 8 * (SIZES - 2); c++) {
        const int64_t length = sizes[c / 8], channels = c & 4 ? length : 6;
        const ng_column_norm_shape shape = {c & 4 ? 5 : 3, channels, c & 4 ? 1 : length, 0};
        const ng_statistics none = {NULL, NULL, NULL};
        const int64_t size = shape.outer * channels * shape.inner;
        const char *x = uniform(size, -2, 2);
        char *gamma = or_null(uniform(channels, 0.5, 1.5), c & 1);
        char *beta = or_null(uniform(channels, -1, 1), c & 2);
        char *y = make(size), *in_place = copy(x, size);
        k->column_norm(&shape, x, none, gamma, beta, y);
        k->column_norm(&shape, in_place, none, gamma, beta, in_place);
        for (int64_t i = 0; i < size; i++) {
            const int64_t w = i / shape.inner % channels;
            const long double g = gamma ? get(gamma, w) : 1, b = beta ? get(beta, w) : 0;
            expect("y", y, i, get(x, i) * g + b, 1, 3);
            expect("in place", in_place, i, get(x, i) * g + b, 1, 3);
        }
        release();
    }
}

/* Any bits are moved, also those of signalling NaNs, and nothing beside the matrix is written. */
static void compare_transpose(void)
{
    const int64_t bytes = (int64_t)ng_dtype_bytes(dtype);
    for (int64_t count = 0; count <= 9; count++)
        for (int64_t depth = 0; depth <= 9; depth++) {
            const int64_t row = depth + 2, to_row = count + 3;
            char *from = make(9 * row), *to = constant(9 * to_row, 7);
            for (int64_t i = 0; i < 9 * row * bytes; i++) from[i] = (char)(i * 37 + i / 251);
            for (int64_t i = 0; i < 9 * row; i += 5) /* of numbers, ones that may signal */
                memset(from + i * bytes, i % 2 ? 0x7f : -1, (size_t)bytes - 1);
            k->transpose(from, row, count, depth, to, to_row);
            for (int64_t j = 0; j < 9; j++)
                for (int64_t i = 0; i < to_row; i++)
                    if (j < depth && i < count)
                        expect_bits("transpose", to + (j * to_row + i) * bytes,
                                    from + (i * row + j) * bytes, 1);
                    else
                        expect("beside it", to, j * to_row + i, 7, 0, 0);
            release();
        }
}

/* ---- Windows ------------------------------------------------------------------------------ */

static const ng_windows windows[] = {
    {2, {7, 9}, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},     /* as large as the image */
    {3, {8, 35}, {4, 17}, {2, 3}, {2, 2}, {0, 0}, {1, 1}},   /* a stride */
    {1, {9, 11}, {5, 7}, {3, 2}, {1, 1}, {0, 0}, {2, 4}},    /* a dilation */
    {2, {5, 40}, {4, 21}, {4, 5}, {2, 2}, {2, 2}, {1, 1}},   /* a stride and edges */
    {1, {1, 67}, {1, 67}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},   /* one element */
    {1, {3, 500}, {3, 500}, {2, 3}, {1, 1}, {1, 1}, {2, 1}}, /* low and wide */
    {3, {6, 5}, {2, 2}, {3, 3}, {3, 2}, {0, 0}, {1, 1}},     /* few outputs */
    {4, {5, 5}, {5, 5}, {5, 5}, {1, 1}, {4, 4}, {2, 2}},     /* wide edges */
    {2, {2, 2}, {1, 1}, {2, 2}, {1, 1}, {4, 4}, {9, 9}},     /* which see padding alone */
    {3, {9, 40}, {3, 8}, {3, 11}, {2, 5}, {1, 3}, {3, 1}},   /* long lines of a window */
};
enum { WINDOWS = sizeof windows / sizeof windows[0] };

/* The place in its plane of element t of window (r, c); -1 outside the plane. */
static int64_t seen(const ng_windows *w, int64_t t, int64_t r, int64_t c)
{
    const int64_t i = t / w->kernel[1], j = t % w->kernel[1];
    const int64_t row = r * w->stride[0] - w->padding[0] + i * w->dilation[0];
    const int64_t column = c * w->stride[1] - w->padding[1] + j * w->dilation[1];
    const bool inside = row >= 0 && row < w->size[0] && column >= 0 && column < w->size[1];
    return inside ? row * w->size[1] + column : -1;
}

static void check_columns(const ng_windows *w)
{
    const int64_t taps = w->kernel[0] * w->kernel[1], out = w->out[0] * w->out[1], row = out + 3;
    const int64_t plane = w->size[0] * w->size[1], size = w->planes * plane;
    const char *x = uniform(size, -1, 1);
    char *columns = uniform(w->planes * taps * row, -1, 1), *folded = make(size);
    char *onto = constant(size, 1);
    long double *sum = keep(size, sizeof *sum);
    k->fold(w, columns, row, folded, false);
    k->fold(w, columns, row, onto, true);
    for (int64_t p = 0; p < w->planes; p++)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t o = 0; o < out; o++) {
                const int64_t at = seen(w, t, o / w->out[1], o % w->out[1]);
                if (at >= 0) sum[p * plane + at] += get(columns, (p * taps + t) * row + o);
            }
    for (int64_t i = 0; i < size; i++) {
        expect("fold", folded, i, sum[i], 4, (double)taps);
        expect("fold onto", onto, i, sum[i] + 1, 4, (double)taps);
    }
    k->unfold(w, x, columns, row);
    for (int64_t p = 0; p < w->planes; p++)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t o = 0; o < out; o++) {
                const int64_t at = seen(w, t, o / w->out[1], o % w->out[1]);
                expect("unfold", columns, (p * taps + t) * row + o,
                       at < 0 ? 0 : get(x, p * plane + at), 0, 0);
            }
    release();
}

/* Likewise by rows. */
static void check_rows(const ng_windows *w)
{
    const int64_t taps = w->kernel[0] * w->kernel[1], out = w->out[0] * w->out[1];
    const int64_t plane = w->size[0] * w->size[1], size = w->planes * plane;
    const int64_t length = w->planes * taps, row = length + 8;
    const char *x = uniform(size, -1, 1);
    char *rows = uniform(out * row, -1, 1), *framed = uniform(ng_frame_size(w), -1, 1);
    char *folded = make(size), *onto = constant(size, 1);
    long double *sum = keep(size, sizeof *sum);
    k->fold_rows(w, rows, row, framed, folded, false);
    k->fold_rows(w, rows, row, framed, onto, true);
    for (int64_t i = 0; i < out * length; i++) {
        const int64_t o = i / length, t = i % length;
        const int64_t at = seen(w, t % taps, o / w->out[1], o % w->out[1]);
        if (at >= 0) sum[t / taps * plane + at] += get(rows, o * row + t);
    }
    for (int64_t i = 0; i < size; i++) {
        expect("fold_rows", folded, i, sum[i], 4, (double)taps);
        expect("fold_rows onto", onto, i, sum[i] + 1, 4, (double)taps);
    }
    k->unfold_rows(w, x, framed, rows, length);
    for (int64_t i = 0; i < out * length; i++) {
        const int64_t o = i / length, t = i % length;
        const int64_t at = seen(w, t % taps, o / w->out[1], o % w->out[1]);
        expect("unfold_rows", rows, i, at < 0 ? 0 : get(x, t / taps * plane + at), 0, 0);
    }
    release();
}

static void compare_unfold(void)
{
    for (int i = 0; i < WINDOWS; i++) {
        check_columns(windows + i);
        if (windows[i].dilation[1] == 1) check_rows(windows + i);
    }
}

/* As expect(), also of infinities. */
static void expect_sum(const char *what, const char *y, int64_t i, long double sum, double terms)
{
    if (isinf(sum))
        ck_assert_msg(get(y, i) == sum, "%s[%d] is %Lg, expected %Lg", what, (int)i, get(y, i),
                      sum);
    else
        expect(what, y, i, sum, 4, terms);
}

/* Elements have few different values, so that several of a window are its largest. */
static void check_pools(const ng_windows *w, bool add)
{
    const int64_t taps = w->kernel[0] * w->kernel[1], out = w->out[0] * w->out[1];
    const int64_t plane = w->size[0] * w->size[1], size = w->planes * plane;
    const int64_t count = w->planes * out;
    const char *dy = uniform(count, -1, 1);
    char *x = make(size), *most = make(count), *dmost = constant(size, 1);
    for (int64_t i = 0; i < size; i++) put(x, i, (double)ng_rng_below(&rng, 5) - 2);
    k->max_pool(w, x, most);
    k->max_pool_backward(w, x, most, dy, dmost, add);
    long double *to_most = keep(size, sizeof *to_most);
    for (int64_t o = 0; o < count; o++) {
        const int64_t p = o / out * plane, r = o % out / w->out[1], c = o % w->out[1];
        long double top = -(long double)INFINITY, ties = 0;
        for (int64_t t = 0; t < taps; t++) {
            const int64_t at = seen(w, t, r, c);
            if (at < 0) continue;
            const long double value = get(x, p + at);
            ties = value > top ? 1 : ties + (value == top);
            top = fmaxl(top, value);
        }
        expect_sum("max_pool", most, o, top, 0);
        for (int64_t t = 0; t < taps; t++) {
            const int64_t at = seen(w, t, r, c);
            if (at >= 0 && get(x, p + at) == top) to_most[p + at] += get(dy, o) / ties;
        }
    }
    for (int64_t i = 0; i < size; i++)
        expect("max_pool gradient", dmost, i, to_most[i] + add, 4, (double)taps);
    release();
}

static void compare_max_pool(void)
{
    for (int i = 0; i < 2 * WINDOWS; i++) check_pools(windows + i / 2, i % 2);
}

/* ---- Another size ------------------------------------------------------------------------- */

/* Places and shares along an axis `from` -> `to`. Some shares are 0, and that of the last element
 * is. */
static void spread_over(ng_resizing *s, int axis, bool shared)
{
    const int64_t from = s->size[axis], to = s->out[axis];
    int64_t *low = keep(to, sizeof *low);
    char *share = uniform(to, 0, 1);
    for (int64_t i = 0; i < to; i++) {
        low[i] = i * from / to;
        if (i % 3 == 1 || low[i] == from - 1) put(share, i, 0);
    }
    s->low[axis] = low;
    s->share[axis] = shared ? share : NULL;
}

/* The factor of x[i] in y[o] of a plane. */
static long double part_of(const ng_resizing *s, int64_t o, int64_t i)
{
    long double part = 1;
    for (int axis = 0; axis < 2; axis++) {
        const int64_t at = axis == 0 ? o / s->out[1] : o % s->out[1];
        const int64_t from = axis == 0 ? i / s->size[1] : i % s->size[1];
        const long double f = s->share[axis] ? get(s->share[axis], at) : 0;
        const int64_t low = s->low[axis][at];
        part *= from == low ? 1 - f : from == low + 1 ? f : 0;
    }
    return part;
}

static void check_resize(ng_resizing s, bool lines_shared, bool shared, bool add)
{
    const int64_t plane = s.size[0] * s.size[1], out = s.out[0] * s.out[1];
    spread_over(&s, 0, lines_shared);
    spread_over(&s, 1, shared);
    const char *x = uniform(s.planes * plane, -1, 1), *dy = uniform(s.planes * out, -1, 1);
    char *y = make(s.planes * out), *dx = constant(s.planes * plane, 1);
    k->resize(&s, x, y);
    k->resize_backward(&s, dy, dx, add);
    long double *back = keep(s.planes * plane, sizeof *back);
    for (int64_t p = 0; p < s.planes; p++)
        for (int64_t o = 0; o < out; o++) {
            long double value = 0;
            for (int64_t i = 0; i < plane; i++) {
                const long double part = part_of(&s, o, i);
                value += part * get(x, p * plane + i);
                back[p * plane + i] += part * get(dy, p * out + o);
            }
            expect("resize", y, p * out + o, value, 4, 1);
        }
    const double seen_by = 4 + (double)(out / plane);
    for (int64_t i = 0; i < s.planes * plane; i++)
        expect("resize gradient", dx, i, back[i] + add, 4, seen_by);
    release();
}

static void compare_resize(void)
{
    static const ng_resizing cases[] = {
        {.planes = 3, .size = {4, 5}, .out = {8, 10}},
        {.planes = 2, .size = {7, 11}, .out = {3, 4}},
        {.planes = 1, .size = {2, 3}, .out = {3, 2100}}, /* in pieces */
        {.planes = 2, .size = {1, 1300}, .out = {1, 40}},
        {.planes = 2, .size = {9, 1}, .out = {10, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int mode = 0; mode < 8; mode++) check_resize(cases[i], mode & 1, mode & 2, mode & 4);
}

static void compare_rotate(void)
{
    for (int64_t dim = 2; dim < 40; dim += 6) {
        const ng_rotation_shape s = {
            .rows = 6, .length = 3, .features = 2 * dim + 5, .rotated = 2 * dim, .dim = dim};
        const char *x = uniform(s.rows * s.features, -1, 1);
        const char *table = uniform(s.length * dim, -1, 1);
        char *y = make(s.rows * s.features);
        k->rotate(&s, x, table, y);
        for (int64_t i = 0; i < s.rows * s.features; i++) {
            const int64_t j = i % s.features, pair = j % dim / 2, a = i - j % 2;
            if (j >= s.rotated) {
                expect("rotate", y, i, get(x, i), 0, 0);
                continue;
            }
            const int64_t row = i / s.features % s.length * dim;
            const long double cosine = get(table, row + pair);
            const long double sine = get(table, row + dim / 2 + pair);
            expect("rotate", y, i,
                   j % 2 ? get(x, a) * sine + get(x, a + 1) * cosine
                         : get(x, a) * cosine - get(x, a + 1) * sine,
                   2, 1);
        }
        release();
    }
}

/* ---- The list ----------------------------------------------------------------------------- */

/* Which kernels each comparison calls. Elementwise functions of doubles have the same bits in the
 * table "baseline" too. */
static const struct {
    const char *kernels;
    void (*compare)(void);
    bool elementwise;
} comparisons[] = {
    {"map map_backward", compare_maps, true},
    {"map", compare_functions, true},
    {"binary", compare_binary, true},
    {"where fill add_to axpy weighted_sum dot", compare_small_pointwise, false},
    {"sum sum_to_f64 max argmax cumsum first_outside", compare_reductions, false},
    {"gather_rows scatter_add_rows", compare_gather_and_scatter, false},
    {"column_norm", compare_channel_affine, false},
    {"move_toward", compare_move_toward, false},
    {"sgd adam rmsprop lion", compare_optimizers, false},
    {"gemm", compare_products, false},
    {"transpose", compare_transpose, false},
    {"unfold fold unfold_rows fold_rows", compare_unfold, false},
    {"max_pool max_pool_backward", compare_max_pool, false},
    {"resize resize_backward", compare_resize, false},
    {"rotate", compare_rotate, false},
};
/* Compared with the definitions of their ops (large_case in tests/cases). */
static const char by_definition[] =
    "attention attention_backward depthwise step_cell step_cell_backward row_norm "
    "row_norm_backward "
    "row_norm_second column_statistics column_norm_backward column_norm_second group_norm_backward "
    "softmax softmax_backward cross_entropy cross_entropy_backward swiglu swiglu_backward";
enum { COMPARISONS = sizeof comparisons / sizeof *comparisons };

/* Processors with fused multiply-add give the same bits. */
START_TEST(every_kernel_matches_long_double_with_the_same_bits_in_every_table)
{
    uint64_t bits = 0;
    const char *first = NULL;
    for (int isa = 0; isa < ISAS; isa++) {
        if (!use_table(2 * isa + _i % 2)) continue;
        comparisons[_i / 2].compare();
        if (!strcmp(k->isa, "baseline") && (in_float || !comparisons[_i / 2].elementwise)) continue;
        if (first)
            ck_assert_msg(bits == bits_seen, "%s of %s: the bits differ between %s and %s",
                          comparisons[_i / 2].kernels, ng_dtype_name(dtype), first, k->isa);
        bits = bits_seen, first = k->isa;
    }
}

static ng_kernels planted;
static jmp_buf called;
static void leave(void) { longjmp(called, 1); }

#define X(returns, name, arguments)                                                                \
    static void plant_##name(void) { planted.name = (returns(*) arguments)leave; }
#include "kernels/kernels.def"
#undef X

static const struct {
    const char *name;
    void (*plant)(void);
} list[] = {
#define X(returns, name, arguments) {#name, plant_##name},
#include "kernels/kernels.def"
#undef X
};

static bool names(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at++)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
    return false;
}

static void (*comparison_of(const char *kernel))(void)
{
    for (int c = 0; c < COMPARISONS; c++)
        if (names(comparisons[c].kernels, kernel)) return comparisons[c].compare;
    ck_abort_msg("%s is compared with nothing", kernel);
}

/* A kernel has a comparison that calls it. */
START_TEST(every_kernel_is_called_by_its_comparison)
{
    if (names(by_definition, list[_i].name)) return;
    ck_assert(use_table(2 * ISAS - 2) || use_table(0)); /* baseline, or what there is */
    planted = *k;
    k = &planted;
    list[_i].plant();
    if (!setjmp(called)) {
        comparison_of(list[_i].name)();
        ck_abort_msg("the comparison of %s does not call it", list[_i].name);
    }
    release();
}

/* ---- Walks -------------------------------------------------------------------------------- */

START_TEST(copies_follow_permuted_and_broadcast_strides)
{
    static const struct {
        ng_shape shape; /* of the source */
        int order[4];   /* the copy's axis d is the source's order[d] */
    } cases[] = {
        {{2, {33, 70}}, {1, 0}},
        {{2, {1, 5}}, {1, 0}},
        {{3, {4, 5, 70}}, {1, 0, 2}},
        {{3, {9, 40, 33}}, {2, 0, 1}},
        {{3, {9, 40, 33}}, {0, 2, 1}},
        {{3, {3, 5, 7}}, {2, 1, 0}},
        {{4, {3, 5, 2, 9}}, {3, 1, 0, 2}},
        {{4, {2, 3, 4, 5}}, {0, 1, 2, 3}},
        {{2, {300, 400}}, {1, 0}},
        {{4, {2, 1, 3, 1}}, {2, 3, 0, 1}},
        {{2, {0, 3}}, {1, 0}},
    };
    use_table(_i); /* copies know no tables, only two sizes of elements */
    for (size_t c = 0; c < 2 * (sizeof cases / sizeof cases[0]); c++) {
        const bool back = c % 2; /* the permutation on the side of the destination */
        const ng_shape from = cases[c / 2].shape;
        ng_shape to = {.rank = from.rank};
        int64_t strides[NG_MAX_RANK], dense[NG_MAX_RANK], moved[NG_MAX_RANK];
        ng_strides(from, strides);
        for (int d = 0; d < to.rank; d++) {
            to.dim[d] = from.dim[cases[c / 2].order[d]];
            moved[d] = strides[cases[c / 2].order[d]];
        }
        ng_strides(to, dense);
        const int64_t n = size_of(to);
        const char *x = uniform(n, -1, 1);
        char *y = constant(n, 9);
        const ng_walk walk = ng_walk_strided(to, back ? dense : moved, back ? moved : dense);
        ng_copy_walk(&walk, x, y, ng_dtype_bytes(dtype));
        for (int64_t i = 0; i < n; i++) {
            int64_t rest = i, source = 0;
            for (int d = to.rank - 1; d >= 0; d--) {
                source += rest % to.dim[d] * moved[d];
                rest /= to.dim[d];
            }
            expect("copy", y, back ? source : i, get(x, back ? i : source), 0, 0);
        }
        release();
    }
    const char *column = uniform(3, -1, 1);
    char *wide = make(3 * 5000);
    const ng_walk walk = ng_walk_broadcast(NG_SHAPE(3, 5000), NG_SHAPE(3, 1), NG_SHAPE(3, 5000));
    ng_copy_walk(&walk, column, wide, ng_dtype_bytes(dtype));
    for (int64_t i = 0; i < 3 * 5000; i++) ck_assert(get(wide, i) == get(column, i / 5000));
    release();
}

/* ---- Threads and tables ------------------------------------------------------------------- */

/* Two arrays of floats large enough to be stored past the caches, and as large ones with wider
 * rows, whose columns are in blocks of other lengths. */
enum { PAST_ROWS = 4100, PAST_COLUMNS = 1024, PAST = PAST_ROWS * PAST_COLUMNS, PAST_KINDS = 14 };

static void run_past(int kind, const char *x, const char *z, char *y)
{
    static double mean[PAST_ROWS], rstd[PAST_ROWS], var[PAST_ROWS], scratch[2 * PAST_COLUMNS * 64];
    for (int i = 0; i < PAST_ROWS; i++) mean[i] = 0.1, rstd[i] = 1 + 1e-4 * i;
    const int64_t rows = PAST_ROWS, n = PAST_COLUMNS;
    const bool odd = kind % 2, center = odd;
    const ng_walk walk = ng_walk_broadcast(NG_SHAPE(rows, n), NG_SHAPE(rows, n),
                                           odd ? NG_SHAPE(n) : NG_SHAPE(rows, n));
    const ng_row_norm_shape row = {rows, n, 1e-5, center, false};
    const ng_row_norm_shape long_row = {rows / 4, 4 * n, 1e-5, center, false};
    const ng_column_norm_shape column = odd ? (ng_column_norm_shape){1600, 1984, 1, 1e-5}
                                            : (ng_column_norm_shape){rows, n, 1, 1e-5};
    const ng_statistics of_rows = {.mean = center ? mean : NULL, .rstd = rstd};
    const ng_statistics of_columns = {.mean = mean, .rstd = rstd};
    ng_norm_gradients to = {.dx.data = y};
    switch (kind / 2) {
    case 0:
        k->binary(NG_BINARY_ADD, &walk, x, z, y);
        for (int64_t i = 0; i < PAST; i += 7)
            expect("a + b", y, i, get(x, i) + get(z, odd ? i % n : i), 1, 0);
        break;
    case 1: k->softmax_backward(x, z, y, rows, n, 1, false); break;
    case 2: k->row_norm(&row, x, z, center ? z : NULL, y, of_rows); break;
    case 3: k->row_norm(&long_row, x, z, center ? z : NULL, y, of_rows); break;
    case 4:
        to.dgamma.data = make(n), to.dbeta.data = center ? make(n) : NULL;
        k->row_norm_backward(&row, x, x, of_rows, z, to, scratch);
        break;
    case 5:
        k->column_statistics(&column, x, of_columns, var);
        k->column_norm(&column, x, of_columns, z, z, y);
        break;
    default:
        if (odd) rstd[5] = 1e30; /* a column of floats that is computed by itself */
        k->column_norm_backward(&column, x, x, of_columns, z, false, to);
    }
}

/* Non-temporal stores need whole vectors of aligned memory; unaligned results use plain stores. */
START_TEST(what_is_stored_past_the_caches_has_the_bits_of_what_is_not)
{
    if (!use_table(_i)) return;
    const char *x = uniform(PAST, -1, 1), *z = uniform(PAST, -1, 1);
    char *aligned = make(PAST + 64), *apart = make(PAST + 64);
    aligned += 64 - (uintptr_t)aligned % 64;
    apart += 64 - (uintptr_t)apart % 64 + ng_dtype_bytes(dtype);
    ck_assert(ng_stores_past(2 * PAST * (int64_t)sizeof(float)));
    for (int kind = 0; kind < PAST_KINDS; kind++) {
        run_past(kind, x, z, aligned);
        run_past(kind, x, z, apart);
        expect_bits("output", aligned, apart, PAST);
    }
    release();
}

START_TEST(tables_are_found_by_name)
{
    ck_assert_ptr_nonnull(ng_kernels_of("baseline", NG_F32));
    ck_assert_ptr_nonnull(ng_kernels_of("baseline", NG_F64));
    ck_assert_ptr_null(ng_kernels_of("baseline", NG_I64));
    ck_assert_ptr_null(ng_kernels_of("riscv", NG_F32));
    for (int i = 0; i < TABLES; i++)
        if (use_table(i)) ck_assert_str_eq(k->isa, ng_isa_name(i / 2));
}

START_TEST(the_environment_names_the_instruction_set)
{
    const char *fork = getenv("CK_FORK");
    if (fork && !strcmp(fork, "no")) return; /* the table is chosen once in a process */
    setenv("NORMGRAD_ISA", "baseline", 1);
    ck_assert_str_eq(ng_kernels_for(NG_F32)->isa, "baseline");
    ck_assert_ptr_eq(ng_kernels_for(NG_F64), ng_kernels_of("baseline", NG_F64));
    ck_assert(!ng_failed());
}

START_TEST(an_instruction_set_that_cannot_be_had_is_an_error_and_the_best_is_used)
{
    const char *fork = getenv("CK_FORK");
    if (fork && !strcmp(fork, "no")) return;
    setenv("NORMGRAD_ISA", "avx1024", 1);
    ck_assert_ptr_nonnull(ng_kernels_for(NG_F32));
    ck_assert_int_eq(ng_error_status(), NG_EVALUE);
    ck_assert_ptr_nonnull(strstr(ng_error_text(), "NORMGRAD_ISA is \"avx1024\""));
    ck_assert_ptr_nonnull(strstr(ng_error_text(), "baseline"));
    ng_clear_error();
    setenv("NORMGRAD_ISA", "", 1); /* as if it were not set */
    ck_assert_ptr_nonnull(ng_kernels_for(NG_F64));
    ck_assert(!ng_failed());
}

Suite *kernels_suite(void)
{
    Suite *suite = suite_create("kernels");
    TCase *tests = add_case(suite, NULL, NULL);
    add_tests(tests, tables_are_found_by_name, the_environment_names_the_instruction_set,
              an_instruction_set_that_cannot_be_had_is_an_error_and_the_best_is_used);
    add_loops(tests, TABLES, sums_of_columns_are_added_once_for_any_number_of_threads,
              max_and_argmax_find_a_nan_and_the_first_of_equals,
              softmax_takes_huge_logits_and_passes_nan_on_in_its_row,
              states_of_what_gets_no_gradient_end_at_zero,
              a_variance_of_gradients_that_is_below_zero_is_zero, large_products_match_plain_loops,
              matrix_products_pass_nan_on,
              what_is_stored_past_the_caches_has_the_bits_of_what_is_not,
              an_element_has_the_same_bits_in_any_place,
              functions_in_double_have_the_edges_of_the_c_library,
              powers_have_the_edges_of_the_c_library);
    add_loops(tests, 2 * COMPARISONS,
              every_kernel_matches_long_double_with_the_same_bits_in_every_table);
    add_loops(tests, sizeof list / sizeof *list, every_kernel_is_called_by_its_comparison);
    add_loops(tests, 2, copies_follow_permuted_and_broadcast_strides);
    return suite;
}
