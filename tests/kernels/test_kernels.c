/* Comparisons of kernels with plain long-double loops, which test_tables.c runs for every table
 * (instruction set and dtype), and their hard cases. */
#include "kernels/parallel.h"
#include "table.h"

/* ---- Pointwise ---------------------------------------------------------------------------- */

static long double sigmoid(long double x) { return 1 / (1 + expl(-x)); }
static long double phi(long double x) { return expl(-x * x / 2) * 0.39894228040143267794L; }
static long double cdf(long double x) { return erfcl(-x * 0.70710678118654752440L) / 2; }
static long double gelu_tanh_2u(long double x)
{
    return 1.59576912160573071176L * (x + 0.044715L * x * x * x);
}

static long double map_value(int map, long double x, long double a, long double b)
{
    switch (map) {
    case NG_MAP_NEG: return -x;
    case NG_MAP_ABS: return fabsl(x);
    case NG_MAP_SIGN: return (x > 0) - (x < 0);
    case NG_MAP_SQUARE: return x * x;
    case NG_MAP_RECIPROCAL: return 1 / x;
    case NG_MAP_EXP: return expl(x);
    case NG_MAP_LOG: return logl(x);
    case NG_MAP_SQRT: return sqrtl(x);
    case NG_MAP_RSQRT: return 1 / sqrtl(x);
    case NG_MAP_SIN: return sinl(x);
    case NG_MAP_COS: return cosl(x);
    case NG_MAP_ERF: return erfl(x);
    case NG_MAP_ERFC: return erfcl(x);
    case NG_MAP_AFFINE: return a * x + b;
    case NG_MAP_POW: return powl(x, a);
    case NG_MAP_CLAMP: return fminl(fmaxl(x, a), b);
    case NG_MAP_TANH: return tanhl(x);
    case NG_MAP_SIGMOID: return sigmoid(x);
    case NG_MAP_RELU: return fmaxl(x, 0);
    case NG_MAP_LEAKY_RELU: return x > 0 ? x : a * x;
    case NG_MAP_GELU: return x * cdf(x);
    case NG_MAP_GELU_TANH: return x * sigmoid(gelu_tanh_2u(x));
    case NG_MAP_SILU: return x * sigmoid(x);
    case NG_MAP_FLOOR: return floorl(x);
    case NG_MAP_LOG1P: return log1pl(x);
    case NG_MAP_EXPM1: return expm1l(x);
    case NG_MAP_ATAN: return atanl(x);
    case NG_MAP_ELU: return x > 0 ? x : a * expm1l(b * x);
    case NG_MAP_SELU:
        return 1.0507009873554804934L * (x > 0 ? x : 1.6732632423543772848L * expm1l(x));
    case NG_MAP_MISH: return x * tanhl(log1pl(expl(x)));
    case NG_MAP_HARDSWISH: return x * fminl(fmaxl(x + 3, 0), 6) / 6;
    default: return log1pl(expl(x)); /* softplus */
    }
}

static long double map_slope(int map, long double x, long double a, long double b)
{
    const long double y = map_value(map, x, a, b), s = sigmoid(x), t = sigmoid(gelu_tanh_2u(x));
    const long double mish = tanhl(log1pl(expl(x)));
    switch (map) {
    case NG_MAP_ABS: return (x > 0) - (x < 0);
    case NG_MAP_SQUARE: return 2 * x;
    case NG_MAP_EXP: return y;
    case NG_MAP_LOG: return 1 / x;
    case NG_MAP_SQRT: return 0.5L / y;
    case NG_MAP_CLAMP: return x >= a && x <= b;
    case NG_MAP_TANH: return 1 - y * y;
    case NG_MAP_SIGMOID: return y * (1 - y);
    case NG_MAP_RELU: return x > 0;
    case NG_MAP_LEAKY_RELU: return x > 0 ? 1 : a;
    case NG_MAP_GELU: return cdf(x) + x * phi(x);
    case NG_MAP_GELU_TANH:
        return t + x * t * (1 - t) * 1.59576912160573071176L * (1 + 0.134145L * x * x);
    case NG_MAP_SILU: return s + x * s * (1 - s);
    case NG_MAP_LOG1P: return 1 / (1 + x);
    case NG_MAP_EXPM1: return expl(x);
    case NG_MAP_ELU: return x > 0 ? 1 : a * b * expl(b * x);
    case NG_MAP_SELU:
        return 1.0507009873554804934L * (x > 0 ? 1 : 1.6732632423543772848L * expl(x));
    case NG_MAP_MISH: return mish + x * (1 - mish * mish) * s;
    case NG_MAP_HARDSWISH: return x < -3 ? 0 : x > 3 ? 1 : x / 3 + 0.5L;
    default: return s; /* softplus */
    }
}

static bool only_positive(int map)
{
    return map == NG_MAP_LOG || map == NG_MAP_SQRT || map == NG_MAP_RSQRT || map == NG_MAP_POW ||
           map == NG_MAP_LOG1P;
}

/* Maps with a fast slope (kernels.def). */
static bool has_slope(int map)
{
    static const int sloped[] = {NG_MAP_ABS,  NG_MAP_SQUARE,     NG_MAP_EXP,   NG_MAP_LOG,
                                 NG_MAP_SQRT, NG_MAP_CLAMP,      NG_MAP_TANH,  NG_MAP_SIGMOID,
                                 NG_MAP_RELU, NG_MAP_LEAKY_RELU, NG_MAP_GELU,  NG_MAP_GELU_TANH,
                                 NG_MAP_SILU, NG_MAP_SOFTPLUS,   NG_MAP_LOG1P, NG_MAP_EXPM1,
                                 NG_MAP_ELU,  NG_MAP_SELU,       NG_MAP_MISH,  NG_MAP_HARDSWISH};
    for (size_t i = 0; i < sizeof sloped / sizeof *sloped; i++)
        if (sloped[i] == map) return true;
    return false;
}

/* Each function is good to 2 ulp; their compositions here multiply that by the condition of erfc,
 * 2 (x / sqrt 2)^2 < 40, in the tails; a slope near a zero of its own cancels. */
void compare_maps(void)
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

LOOP_TEST(a_nan_stays_a_nan_in_every_map, TABLES)
{
    if (!use_table(_i)) return;
    for (int map = 0; map < NG_MAP_COUNT; map++)
        for (int at = 0; at < 19; at++) {
            char *x = constant(19, 0.75), *y = make(19);
            put(x, at, nan_value);
            k->map((ng_mapping){(ng_map)map, 0.5, 2}, x, y, 19);
            for (int i = 0; i < 19; i++)
                ck_assert_msg((i == at) == (bool)isnan(get(y, i)), "%s %s map %d element %d",
                              k->isa, ng_dtype_name(dtype), map, i);
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
LOOP_TEST(an_element_has_the_same_bits_in_any_place, TABLES)
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

/* y and its slope at x; a slope of NaN is not compared. */
static void expect_point(int map, double at, double y_at, double slope)
{
    char *x = constant(33, at), *dy = constant(33, 1), *y = make(33), *dx = make(33);
    const ng_mapping f = {.kind = (ng_map)map, .a = 1, .b = 1};
    k->map(f, x, y, 33);
    k->map_backward(f, x, y, dy, dx, 33, false);
    for (int i = 0; i < 33; i++) {
        expect("limit", y, i, (long double)y_at, 1, 0);
        if (!isnan(slope)) expect("slope at the limit", dx, i, (long double)slope, 1, 0);
    }
    release();
}

LOOP_TEST(activations_have_their_limits_and_tails, TABLES)
{
    if (!use_table(_i)) return;
    static const double selu = 1.0507009873554804934, selu_left = -1.7580993408473768600;
    static const struct {
        int map;
        double left_slope, left, right_slope, right; /* far out y = slope x, or the constant */
    } ends[] = {{NG_MAP_SIGMOID, 0, 0, 0, 1},        {NG_MAP_SOFTPLUS, 0, 0, 1, 0},
                {NG_MAP_SILU, 0, 0, 1, 0},           {NG_MAP_GELU, 0, 0, 1, 0},
                {NG_MAP_RELU, 0, 0, 1, 0},           {NG_MAP_GELU_TANH, 0, 0, 1, 0},
                {NG_MAP_MISH, 0, 0, 1, 0},           {NG_MAP_HARDSWISH, 0, 0, 1, 0},
                {NG_MAP_TANH, 0, -1, 0, 1},          {NG_MAP_ELU, 0, -1, 1, 0},
                {NG_MAP_SELU, 0, selu_left, selu, 0}};
    static const double far[] = {1e4, 1e20, 1e38, inf};
    for (size_t c = 0; c < 8 * sizeof ends / sizeof ends[0]; c++) {
        const bool right = c % 2;
        const double x = right ? far[c / 2 % 4] : -far[c / 2 % 4];
        const double slope = right ? ends[c / 8].right_slope : ends[c / 8].left_slope;
        const double constant_y = right ? ends[c / 8].right : ends[c / 8].left;
        expect_point(ends[c / 8].map, x, slope != 0 ? slope * x : constant_y, slope);
    }
    static const struct {
        int map;
        double x, y, slope;
    } points[] = {{NG_MAP_EXP, inf, inf, nan_value},
                  {NG_MAP_EXP, -inf, 0, 0},
                  {NG_MAP_EXPM1, inf, inf, nan_value},
                  {NG_MAP_EXPM1, -inf, -1, 0},
                  {NG_MAP_EXPM1, 1e4, inf, nan_value},
                  {NG_MAP_EXPM1, -1e4, -1, 0},
                  {NG_MAP_EXPM1, 1e-20, 1e-20, 1},
                  {NG_MAP_LOG, 0, -inf, inf},
                  {NG_MAP_ABS, 0, 0, 0},
                  {NG_MAP_RELU, 0, 0, 0}};
    for (size_t c = 0; c < sizeof points / sizeof points[0]; c++)
        expect_point(points[c].map, points[c].x, points[c].y, points[c].slope);
    /* erfc(z) has condition 2 z^2 = 100 at x = -10; x is exact in float. */
    static const int tailed[] = {NG_MAP_SIGMOID, NG_MAP_SOFTPLUS, NG_MAP_SILU, NG_MAP_GELU};
    for (int c = 0; c < 4; c++) {
        char *x = constant(17, -10), *y = make(17);
        k->map((ng_mapping){.kind = (ng_map)tailed[c]}, x, y, 17);
        for (int i = 0; i < 17; i++) expect("tail", y, i, map_value(tailed[c], -10, 0, 0), 500, 0);
        release();
    }
}

/* The library's own functions are right to the last digits, in the left tail too. */
typedef struct {
    int map;
    double low, high, units;
} accurate_range;

static void expect_accurate(accurate_range range)
{
    const int64_t n = 10007;
    const char *x = uniform(n, range.low, range.high);
    char *y = make(n);
    k->map((ng_mapping){.kind = (ng_map)range.map}, x, y, n);
    for (int64_t i = 0; i < n; i++)
        expect("value", y, i, map_value(range.map, get(x, i), 0, 0), range.units, 0);
    release();
}

LOOP_TEST(functions_are_right_to_the_last_digits, TABLES)
{
    static const accurate_range of_float[] = {
        {NG_MAP_EXP, -87, 88, 2},   {NG_MAP_EXPM1, -30, 88, 2},  {NG_MAP_EXPM1, -1, 1, 2},
        {NG_MAP_TANH, -10, 10, 2},  {NG_MAP_MISH, -80, 80, 8},   {NG_MAP_GELU, -13, 13, 6},
        {NG_MAP_LOG, 0, 3e38, 2},   {NG_MAP_LOG, 0.5, 2, 2},     {NG_MAP_LOG1P, -1, 1, 2},
        {NG_MAP_SIN, -9, 9, 2},     {NG_MAP_SIN, -1e30, 1e4, 2}, {NG_MAP_COS, -9, 9, 2},
        {NG_MAP_COS, -1e4, 1e4, 2}, {NG_MAP_ERF, -4, 4, 2},      {NG_MAP_ERFC, -4, 9, 2.5},
        {NG_MAP_ATAN, -3, 3, 2},
    };
    static const accurate_range of_double[] = {
        {NG_MAP_EXP, -708, 709, 1},    {NG_MAP_EXP, -1, 1, 1},        {NG_MAP_EXPM1, -40, 709, 2},
        {NG_MAP_EXPM1, -1, 1, 2},      {NG_MAP_TANH, -23, 23, 3},     {NG_MAP_TANH, -1, 1, 3},
        {NG_MAP_LOG, 0.4, 2.5, 1},     {NG_MAP_LOG, 0, 1e300, 1},     {NG_MAP_LOG1P, -1, 1, 1},
        {NG_MAP_LOG1P, 0, 1e20, 1},    {NG_MAP_SIN, -9, 9, 2},        {NG_MAP_SIN, -1e6, 1e6, 2},
        {NG_MAP_COS, -9, 9, 2},        {NG_MAP_COS, -1e6, 1e6, 2},    {NG_MAP_ERF, -1, 1, 3},
        {NG_MAP_ERF, -7, 7, 3},        {NG_MAP_ERFC, -1, 1, 6},       {NG_MAP_ERFC, -7, 26, 6},
        {NG_MAP_SIGMOID, -700, 40, 4}, {NG_MAP_SOFTPLUS, -700, 9, 4}, {NG_MAP_MISH, -300, 80, 8},
        {NG_MAP_SILU, -700, 40, 4},    {NG_MAP_GELU, -37, 13, 6},     {NG_MAP_GELU, -2, 2, 6},
    };
    if (!use_table(_i)) return;
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

/* Both kinds of zero, infinities, NaN, numbers below the normal ones, overflow and underflow, sines
 * of huge numbers. */
LOOP_TEST(functions_in_double_have_the_edges_of_the_c_library, TABLES)
{
    static const double edges[] = {
        0,       -0.0,    inf,       -inf,     nan_value, 0x1p-1074, -0x1p-1074, 1e-310,
        -1e-310, -1,      -2,        1,        709.78,    709.79,    710,        -708.5,
        -744.5,  -745.2,  -800,      800,      1e4,       -1e4,      27.2,       28.1,
        -6,      -28.1,   1e6,       -1e6,     1.1e6,     -1.1e6,    1e22,       -1e300,
        1e308,   -1e308,  0x1p-60,   -0x1p-60, 0x1p53,    0x1p1023,  1.3e308,    DBL_MAX,
        -0.9999, 0x1p-26, 0x1p-1022, M_PI,     M_PI_2,    -M_PI};
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

/* Of numbers of any size down to the smallest, and next to the zeros of sine and cosine. */
LOOP_TEST(functions_in_double_keep_the_digits_of_small_results, TABLES)
{
    enum { N = 3000 };
    if (!use_table(_i) || in_float || !reference_is_wider()) return;
    double *small = doubles(N), *angle = doubles(N), *y = doubles(N);
    for (int i = 0; i < N; i++) {
        small[i] = ldexp(1 + ng_rng_uniform(table_rng()), -i / 3) * (i % 2 ? -1 : 1);
        angle[i] = (double)(i * 201) * M_PI_2;
    }
    for (int f = 0; f < LIBRARY; f++) {
        const int map = library_functions[f].map;
        const bool sine = map == NG_MAP_SIN || map == NG_MAP_COS;
        for (int of_angle = 0; of_angle <= sine; of_angle++) {
            const double *x = of_angle ? angle : small;
            k->map((ng_mapping){.kind = (ng_map)map}, x, y, N);
            for (int i = 0; i < N; i++)
                if (x[i] > 0 || !only_positive(map))
                    expect("value", y, i, map_value(map, (long double)x[i], 0, 0),
                           library_functions[f].units, 0x1p-1021);
        }
    }
    release();
}

/* x^y in both dtypes, for all pairs of numbers at the edges of a rule or a range. */
LOOP_TEST(powers_have_the_edges_of_the_c_library, TABLES)
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

/* In float on those that fuse a product with a sum. */
LOOP_TEST(functions_have_the_same_bits_on_every_instruction_set, TABLES)
{
    enum { N = 4095 };
    if (!use_table(_i)) return;
    const ng_kernels *other = ng_kernels_of(in_float ? "avx2" : "baseline", dtype);
    if (!other || (in_float && strcmp(k->isa, "baseline") == 0)) return;
    for (int map = 0; map < NG_MAP_COUNT; map++) {
        const ng_mapping f = {.kind = (ng_map)map, .a = 0.3, .b = 2.1};
        const double far = map % 2 ? 9 : 100;
        const char *x = uniform(N, only_positive(map) ? 0.01 : -far, far), *dy = uniform(N, -1, 1);
        char *y = make(N), *expected = make(N), *dx = make(N), *slope = make(N);
        k->map(f, x, y, N);
        other->map(f, x, expected, N);
        expect_bits("map", y, expected, N);
        if (has_slope(map)) {
            k->map_backward(f, x, y, dy, dx, N, false);
            other->map_backward(f, x, y, dy, slope, N, false);
            expect_bits("slope", dx, slope, N);
        }
        release();
    }
    const ng_walk walk = ng_walk_broadcast(NG_SHAPE(N), NG_SHAPE(N), NG_SHAPE(N));
    for (int op = 0; op < NG_BINARY_COUNT; op++) {
        const char *a = uniform(N, 0.1, 9), *b = uniform(N, -3, 3);
        char *y = make(N), *expected = make(N);
        k->binary((ng_binary)op, &walk, a, b, y);
        other->binary((ng_binary)op, &walk, a, b, expected);
        expect_bits("binary", y, expected, N);
        release();
    }
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

void compare_binary(void)
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

LOOP_TEST(maximum_and_minimum_are_nan_where_either_is, TABLES)
{
    if (!use_table(_i)) return;
    for (int op = NG_BINARY_MAXIMUM; op <= NG_BINARY_MINIMUM; op++) {
        char *a = constant(21, 1), *b = constant(21, 2), *y = make(21);
        put(a, 3, nan_value);
        put(b, 19, nan_value);
        const ng_walk walk = ng_walk_broadcast(NG_SHAPE(21), NG_SHAPE(21), NG_SHAPE(21));
        k->binary((ng_binary)op, &walk, a, b, y);
        for (int i = 0; i < 21; i++) ck_assert((bool)isnan(get(y, i)) == (i == 3 || i == 19));
        release();
    }
}

void compare_small_pointwise(void)
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
        check(5, sizes[s], 1);
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
LOOP_TEST(sums_of_columns_are_added_once_for_any_number_of_threads, TABLES)
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
    put(x, 0, nan_value), put(x, n / 2, -1.5), put(x, n - 1, 0);
    ck_assert_int_eq(k->count_outside(x, n, -1, 1), (n > 1) + (n > 2));
    release();
}

static void check_change(int64_t n)
{
    char *x = uniform(n, -1, 1), *before = uniform(n, -1, 1);
    long double squares = 0, changes = 0, sum = 0;
    double sums[2], mean, var;
    int64_t zeros;
    if (n > 1) put(x, n - 1, 0), put(x, n / 2, 0);
    for (int64_t i = 0; i < n; i++) {
        sum += get(x, i);
        squares += get(x, i) * get(x, i);
        changes += (get(x, i) - get(before, i)) * (get(x, i) - get(before, i));
    }
    k->moments(x, n, &mean, &var, &zeros);
    ck_assert_int_eq(zeros, n > 2 ? 2 : n > 1);
    assert_near(mean, (double)(sum / n), in_float ? 1e-6 : 1e-14);
    assert_near(var, (double)(squares / n - sum / n * sum / n), in_float ? 1e-6 : 1e-14);
    k->change(x, before, n, sums);
    assert_close(sums[0], (double)squares, in_float ? 1e-5 : 1e-14);
    assert_close(sums[1], (double)changes, in_float ? 1e-5 : 1e-14);
    for (int64_t i = 0; i < n; i++) ck_assert(get(before, i) == get(x, i));
    release();
}

void compare_reductions(void)
{
    for (int s = 0; s < SIZES; s++) check_range(sizes[s]), check_change(sizes[s]);
    for_each_split(check_reductions);
    for_each_split(check_running_sums);
}

LOOP_TEST(max_and_argmax_find_a_nan_and_the_first_of_equals, TABLES)
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

void compare_gather_and_scatter(void)
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

static long double log_sum_exp(const char *x, int64_t first, int64_t n)
{
    long double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += expl((long double)get(x, first + i));
    return logl(sum);
}

/* Over the middle of x (outer, n, inner). */
static void check_softmaxes(int64_t outer, int64_t n, int64_t inner)
{
    const int64_t size = outer * n * inner;
    const char *x = uniform(size, -9, 9), *dy = uniform(size, -1, 1);
    char *p = make(size), *l = make(size), *dp = make(size), *dl = make(size);
    char *dp_onto = constant(size, 1), *dl_onto = constant(size, 1);
    k->softmax(x, p, outer, n, inner, false);
    k->softmax(x, l, outer, n, inner, true);
    k->softmax_backward(p, dy, dp, outer, n, inner, false, false);
    k->softmax_backward(p, dy, dp_onto, outer, n, inner, false, true);
    k->softmax_backward(l, dy, dl, outer, n, inner, true, false);
    k->softmax_backward(l, dy, dl_onto, outer, n, inner, true, true);
    for (int64_t row = 0; row < outer * inner; row++) {
        const int64_t first = row / inner * n * inner + row % inner, end = first + n * inner;
        long double mean = 0, sum = 0, exps = 0;
        for (int64_t i = first; i < end; i += inner) exps += expl((long double)get(x, i));
        const long double lse = logl(exps);
        for (int64_t i = first; i < end; i += inner) {
            mean += expl(get(x, i) - lse) * get(dy, i);
            sum += get(dy, i);
        }
        for (int64_t i = first; i < end; i += inner) {
            /* e^x has condition |x - max| <= 18 */
            const long double e = expl(get(x, i) - lse);
            expect("softmax", p, i, e, 40, 0);
            expect("log_softmax", l, i, get(x, i) - lse, 4, 20);
            expect("softmax gradient", dp, i, e * (get(dy, i) - mean), 60, (double)e);
            expect("onto", dp_onto, i, 1 + e * (get(dy, i) - mean), 60, 1);
            expect("log_softmax gradient", dl, i, get(dy, i) - e * sum, 60, 1);
            expect("onto", dl_onto, i, 1 + get(dy, i) - e * sum, 60, 1);
        }
    }
    release();
}

void compare_softmaxes(void)
{
    for (int s = 0; s < SIZES; s++) {
        check_softmaxes(3, sizes[s], 1);
        check_softmaxes(2, 5, sizes[s]);
        if (sizes[s] < 100) check_softmaxes(2, 3 * sizes[s], 70);
    }
}

LOOP_TEST(softmax_takes_huge_logits_and_passes_nan_on_in_its_row, TABLES)
{
    if (!use_table(_i)) return;
    char *x = constant(3 * 19, 1e4), *y = make(3 * 19);
    put(x, 19 + 4, nan_value);
    put(x, 2 * 19, -inf);
    k->softmax(x, y, 3, 19, 1, false);
    for (int i = 0; i < 19; i++) {
        expect("softmax", y, i, 1 / 19.0L, 2, 0);
        ck_assert(isnan(get(y, 19 + i)));
        expect("softmax", y, 38 + i, i ? 1 / 18.0L : 0, 2, 0);
    }
    k->softmax(x, y, 1, 3, 19, false); /* the same as columns */
    for (int i = 0; i < 3 * 19; i++)
        if (i % 19 == 4)
            ck_assert(isnan(get(y, i)));
        else
            expect("softmax", y, i, i % 19 ? 1 / 3.0L : i < 38 ? 1 / 2.0L : 0, 2, 0);
    release();
}

void compare_cross_entropies(void)
{
    enum { ROWS = 4 };
    for (int s = 0; s < SIZES; s++)
        for (int mode = 0; mode < 8; mode++) {
            const int64_t n = sizes[s], labels[ROWS] = {0, n - 1, -100, n / 2};
            const double smoothing = mode & 1 ? 0.1 : 0;
            const bool each = mode & 2, add = mode & 4;
            const char *x = uniform(ROWS * n, -9, 9), *dloss = uniform(ROWS, 0.5, 1);
            char *loss = make(ROWS), *dx = constant(ROWS * n, 1);
            double kept[2 * ROWS];
            const ng_cross_entropy_shape shape = {ROWS, n, smoothing, true, -100};
            k->cross_entropy(&shape, x, labels, loss, kept);
            k->cross_entropy_backward(&shape, x, labels, kept, (ng_loss_slopes){dloss, each, 0.5},
                                      dx, add);
            for (int64_t row = 0; row < ROWS; row++) {
                const bool ignored = labels[row] == -100;
                const long double sum = log_sum_exp(x, row * n, n),
                                  g = 0.5L * get(dloss, each ? row : 0);
                long double expected = 0;
                for (int64_t i = 0; i < n; i++) {
                    const long double v = get(x, row * n + i);
                    const double hot = i == labels[row] ? 1 - smoothing : 0;
                    const long double q = (long double)(hot + smoothing / (double)n);
                    expected += q * (sum - v);
                    const long double slope = ignored ? 0 : g * (expl(v - sum) - q);
                    expect("gradient", dx, row * n + i, slope + add, 40, 1);
                }
                expect("loss", loss, row, ignored ? 0 : expected, 20, 1);
            }
            release();
        }
}

/* ---- Row normalization -------------------------------------------------------------------- */

typedef struct {
    long double mean, rstd, divisor;
} moments;

static moments row_moments(const ng_row_norm_shape *s, const char *x, int64_t row)
{
    moments m = {0, 0, (long double)(s->over - (s->center && s->unbiased))};
    long double squares = 0;
    for (int64_t i = 0; i < s->over && s->center; i++)
        m.mean += (long double)get(x, row * s->n + i) / (long double)s->over;
    for (int64_t i = 0; i < s->over; i++) {
        const long double d = get(x, row * s->n + i) - m.mean;
        squares += d * d;
    }
    m.rstd = 1 / sqrtl(squares / m.divisor + (long double)s->eps);
    return m;
}

/* The factor by which subtracting the mean magnifies the rounding of statistics in double. In a
 * float table they are exact enough for it to vanish. */
static double condition(double largest, long double rstd)
{
    return in_float ? 1 : fmax(1, largest * (double)rstd);
}

/* Forward and backward against the definition. Errors are relative to the size of the summed
 * terms. */
static void check_row_norm(ng_row_norm_shape s, char *x, bool with_gamma, bool with_beta, bool add)
{
    const int64_t rows = s.rows, n = s.n, size = rows * n;
    double largest = 0, worst = 1;
    for (int64_t i = 0; i < size; i++) largest = fmax(largest, fabs((double)get(x, i)));
    char *gamma = or_null(uniform(n, 0.5, 1.5), with_gamma), *dy = uniform(size, -1, 1);
    char *beta = or_null(uniform(n, -0.5, 0.5), with_beta), *y = make(size),
         *dx = constant(size, 1);
    char *dgamma = constant(n, 1), *dbeta = constant(n, 1);
    double *mean = doubles(rows), *rstd = doubles(rows);
    double *scratch = doubles(ng_row_norm_scratch(&s));
    const ng_norm_gradients to = {
        {dx, add}, {or_null(dgamma, with_gamma), add}, {or_null(dbeta, with_beta), add}};
    const ng_statistics statistics = {s.center ? mean : NULL, doubles(rows), rstd};
    k->row_norm(&s, x, gamma, beta, y, statistics);
    k->row_norm_backward(&s, x, gamma, statistics, dy, to, scratch);

    long double *sum = keep(2 * n, sizeof *sum), *sum_b = sum + n;
    double *sizes_x = doubles(n); /* of the terms of sum */
    for (int64_t row = 0; row < rows; row++) {
        const moments m = row_moments(&s, x, row);
        const double units = 16 * condition(largest, m.rstd);
        worst = fmax(worst, units);
        long double mean_g = 0, mean_gx = 0;
        for (int64_t j = 0; j < n; j++) {
            const long double g = get(dy, row * n + j) * (gamma ? get(gamma, j) : 1);
            if (s.center) mean_g += g / (long double)s.over;
            mean_gx += g * (get(x, row * n + j) - m.mean) * m.rstd / m.divisor;
        }
        for (int64_t j = 0; j < n; j++) {
            const int64_t at = row * n + j;
            const long double xhat = (get(x, at) - m.mean) * m.rstd, g = gamma ? get(gamma, j) : 1;
            const long double mean_part = j < s.over ? mean_g + xhat * mean_gx : 0;
            const long double slope = m.rstd * (get(dy, at) * g - mean_part);
            expect("y", y, at, xhat * g + (beta ? get(beta, j) : 0), units, 1);
            expect("dx", dx, at, slope + add, units, fmax((double)m.rstd, add));
            sum[j] += get(dy, at) * xhat;
            sizes_x[j] += (double)(fabsl(get(dy, at)) * fmaxl(1, fabsl(xhat)));
            sum_b[j] += get(dy, at);
        }
    }
    for (int64_t j = 0; j < n; j++) {
        /* In double, errors of the statistics of each row are those of its term alone. */
        const double terms = in_float ? sizes_x[j] : (double)rows;
        const double units = in_float ? 1.5 : fmin(worst, 1 + worst / (double)rows);
        if (gamma) expect("dgamma", dgamma, j, sum[j] + add, units, terms + add);
        if (beta) expect("dbeta", dbeta, j, sum_b[j] + add, 1, (double)rows + add);
    }
    release();
}

void compare_row_norms(void)
{
    for (int s = 0; s < SIZES - 2; s++)
        for (int mode = 0; mode < 32; mode++) {
            const int64_t n = sizes[s];
            ng_row_norm_shape shape = {.rows = 3, .n = n, .over = n, .eps = 1e-5};
            shape.center = mode & 1;
            shape.unbiased = mode & 2 && n > 2;
            if (mode & 4) shape.over = (n + 1) / 2 + (n > 1);
            check_row_norm(shape, uniform(3 * n, -2, 3), mode & 8, mode & 16, mode % 3 == 0);
        }
}

/* Blocks of many rows; rows longer than a run of a float sum, in groups and with one left over;
 * statistics over all elements or the first 300. */
LOOP_TEST(row_norm_takes_many_rows_and_long_ones, TABLES)
{
    if (!use_table(_i)) return;
    static const ng_row_norm_shape shapes[] = {{1, 1023, 1023, 0, true, false},
                                               {301, 33, 33, 1e-5, true, false},
                                               {700, 1037, 1037, 1e-5, true, false}};
    for (int s = 0; s < 3; s++)
        check_row_norm(shapes[s], uniform(shapes[s].rows * shapes[s].n, -2, 3), true, true, s == 1);
    for (int mode = 0; mode < 14; mode++) {
        const ng_row_norm_shape shape = {5, 1100, mode & 2 ? 300 : 1100, 1e-5, mode & 1, false};
        check_row_norm(shape, uniform(5 * 1100, -2, 3), mode % 8 < 6, mode < 5, mode & 4);
    }
}

/* Every fourth part begins with an outlier, so that the first estimate of the mean is 3000
 * deviations off; squares overflow float; squares underflow. */
LOOP_TEST(row_norm_takes_long_rows_that_begin_badly, TABLES)
{
    if (!use_table(_i)) return;
    enum { N = 1000 };
    const ng_row_norm_shape shape = {1, N, N, 1e-5, true, false};
    char *x = uniform(N, -1, 1);
    for (int i = 0; i < 4; i++) put(x, i * N / 4, 3000);
    check_row_norm(shape, x, true, true, false);
    x = uniform(N, -1e30, 1e30);
    check_row_norm(shape, x, true, true, false);
    x = uniform(N, -1e-30, 1e-30);
    check_row_norm((ng_row_norm_shape){1, N, N, 0, true, false}, x, true, true, false);
}

/* Far below the promised 1e-5 in float, which is 84 ulp. */
LOOP_TEST(row_norm_keeps_its_digits_far_from_zero, TABLES)
{
    if (!use_table(_i)) return;
    for (int center = 0; center < 2; center++) {
        char *x = make(3 * 65);
        for (int64_t i = 0; i < 3 * 65; i++)
            put(x, i, 1e6 + (double)(i % 3 - 1) + 0.25 * (double)(i % 7));
        check_row_norm((ng_row_norm_shape){3, 65, 65, 1e-5, center, false}, x, true, true, false);
    }
}

/* Rows of numbers near either end of the range, whose squares are beyond it. */
LOOP_TEST(row_norm_takes_rows_near_the_ends_of_the_range, TABLES)
{
    if (!use_table(_i) || !reference_is_wider()) return;
    static const double scales[2][4] = {{1e30, 1e-30, 3e38, 1e-37}, {1e30, 1e-30, 1e150, 1e-150}};
    static const int64_t lengths[] = {33, 65, 300, 1100};
    for (int c = 0; c < 4 * 4 * 2; c++) {
        const int64_t n = lengths[c / 8];
        char *x = make(2 * n);
        for (int64_t i = 0; i < 2 * n; i++)
            put(x, i,
                scales[!in_float][c / 2 % 4] * (i % 13 == 0 ? -1 : 1.0 / (double)(1 + i % 5)));
        check_row_norm((ng_row_norm_shape){2, n, n, 0, c % 2, false}, x, true, c % 2, false);
    }
}

/* One row near the smallest numbers among others. */
LOOP_TEST(row_norm_takes_a_row_near_the_ends_among_others, TABLES)
{
    if (!use_table(_i)) return;
    enum { ROWS = 7 };
    for (int c = 0; c < 4; c++) {
        const int64_t n = c / 2 ? 1030 : 65;
        char *x = uniform(ROWS * n, -2, 3);
        for (int64_t i = 3 * n; i < 4 * n; i++) put(x, i, 1e-37 * (double)get(x, i));
        check_row_norm((ng_row_norm_shape){ROWS, n, n, 0, c % 2, false}, x, true, c % 2, false);
    }
}

LOOP_TEST(a_constant_row_gives_exactly_beta, TABLES)
{
    if (!use_table(_i)) return;
    static const double values[] = {0, 0.1, -1e6, 1e30, 7e-31, 1.0 / 3};
    for (int s = 0; s < SIZES; s++)
        for (int v = 0; v < 6; v++) {
            const int64_t n = sizes[s];
            const ng_row_norm_shape shape = {1, n, n, 1e-5, true, false},
                                    bare = {1, n, n, 0, true, false};
            const char *x = constant(n, values[v]), *gamma = uniform(n, 1, 2),
                       *beta = uniform(n, 1, 2);
            char *y = make(n);
            double mean, low, rstd;
            const ng_statistics to = {&mean, &low, &rstd};
            k->row_norm(&shape, x, gamma, beta, y, to);
            expect_bits("constant row", y, beta, n);
            k->row_norm(&bare, x, gamma, beta, y, to);
            ck_assert(n == 1 || isnan(get(y, 0))); /* 0 / 0 */
            release();
        }
}

LOOP_TEST(a_bad_element_spoils_its_own_row_only, TABLES)
{
    if (!use_table(_i)) return;
    const double bad[] = {nan_value, inf, -inf};
    for (int c = 0; c < 6; c++) {
        const ng_row_norm_shape shape = {3, 33, 33, 1e-5, c % 2, false};
        char *x = uniform(3 * 33, -1, 1), *dy = uniform(3 * 33, -1, 1), *y = make(3 * 33);
        char *dx = make(3 * 33);
        double mean[3], low[3], rstd[3];
        const ng_statistics statistics = {c % 2 ? mean : NULL, low, rstd};
        put(x, 33 + 30, bad[c / 2]);
        k->row_norm(&shape, x, NULL, NULL, y, statistics);
        k->row_norm_backward(&shape, x, NULL, statistics, dy, (ng_norm_gradients){.dx.data = dx},
                             NULL);
        for (int i = 0; i < 3 * 33; i++) {
            /* x / sqrt(Inf) is 0 for the finite elements of a row that is not centred */
            const bool spoilt = i / 33 == 1 && (c % 2 || c / 2 == 0 || i == 33 + 30);
            ck_assert_msg((bool)isnan(get(y, i)) == spoilt, "%s y[%d], case %d", k->isa, i, c);
            const bool dx_spoilt = i / 33 == 1 && (spoilt || isnan(get(dx, i)));
            ck_assert((bool)isnan(get(dx, i)) == dx_spoilt);
        }
        release();
    }
}

/* ---- Column normalization ----------------------------------------------------------------- */

/* The place of element i of channel c. */
static int64_t in_channel(const ng_column_norm_shape *s, int64_t c, int64_t i)
{
    return (i / s->inner * s->channels + c) * s->inner + i % s->inner;
}

static void check_column_norm(ng_column_norm_shape s, double scale, bool affine, bool fixed,
                              bool add)
{
    const int64_t channels = s.channels, count = s.outer * s.inner, size = count * channels;
    const char *x = uniform(size, 999 * scale, 1003 * scale), *dy = uniform(size, -1, 1);
    char *gamma = or_null(uniform(channels, 0.5, 1.5), affine), *y = make(size);
    char *beta = or_null(uniform(channels, -1, 1), affine), *dx = constant(size, 1);
    char *dgamma = constant(channels, 1), *dbeta = constant(channels, 1);
    double *mean = doubles(channels), *var = doubles(channels), *rstd = doubles(channels);
    const ng_statistics statistics = {mean, doubles(channels), rstd};
    k->column_statistics(&s, x, statistics, var);
    k->column_norm(&s, x, statistics, gamma, beta, y);
    k->column_norm_backward(&s, x, gamma, statistics, dy, fixed,
                            (ng_norm_gradients){{dx, add}, {dgamma, add}, {dbeta, add}});

    for (int64_t c = 0; c < channels; c++) {
        const long double n = (long double)count, g = affine ? get(gamma, c) : 1;
        long double m = 0, v = 0, sum = 0, sum_x = 0;
        for (int64_t i = 0; i < count; i++) m += get(x, in_channel(&s, c, i)) / n;
        for (int64_t i = 0; i < count; i++) {
            const long double d = get(x, in_channel(&s, c, i)) - m;
            v += d * d / n;
            sum += get(dy, in_channel(&s, c, i));
            sum_x += get(dy, in_channel(&s, c, i)) * d;
        }
        const long double r = 1 / sqrtl(v + (long double)s.eps);
        const double units = 8 * condition(1003 * scale, r);
        sum_x *= r;
        assert_close(mean[c], (double)m, 1e-14);
        if (isfinite(scale * scale))
            assert_near(var[c], (double)v, (dtype == NG_F32 ? 2e-7 : 1e-11) * scale * scale);
        if (scale == 1) assert_close(rstd[c], 1 / sqrt(var[c] + s.eps), 1e-15);
        expect("dgamma", dgamma, c, sum_x + add, units, (double)count);
        expect("dbeta", dbeta, c, sum + add, 4, (double)count);
        for (int64_t o = 0; o < count; o++) {
            const int64_t i = in_channel(&s, c, o);
            const long double xhat = (get(x, i) - m) * r;
            const long double d = get(dy, i) - (fixed ? 0 : sum / n + xhat * sum_x / n);
            expect("y", y, i, xhat * g + (affine ? get(beta, c) : 0), units, 1);
            expect("dx", dx, i, g * r * d + add, units, fmax((double)r, add));
        }
    }
    release();
}

void compare_column_norms(void)
{
    if (!reference_is_wider()) return;
    for (int s = 0; s < SIZES; s++) {
        const ng_column_norm_shape shapes[] = {
            {7, sizes[s], 1, 1e-5}, {3, 5, sizes[s], 1e-5}, {sizes[s], 3, 1, 1e-5}};
        for (int mode = 0; mode < 8; mode++)
            for (int i = 0; i < 3; i++)
                check_column_norm(shapes[i], 1, mode & 1, mode & 2, mode & 4);
    }
}

LOOP_TEST(column_norm_takes_columns_near_the_ends_of_the_range, TABLES)
{
    if (!use_table(_i) || !reference_is_wider()) return;
    static const double scales[2][4] = {{1e30, 1e-30, 3e35, 1e-37}, {1e30, 1e-30, 1e147, 1e-150}};
    static const ng_column_norm_shape shapes[] = {{7, 65, 1, 0}, {300, 37, 1, 0}, {40, 3, 33, 0}};
    for (int c = 0; c < 3 * 4; c++)
        check_column_norm(shapes[c / 4], scales[!in_float][c % 4], true, false, false);
}

LOOP_TEST(a_constant_column_has_its_value_for_mean_and_no_variance, TABLES)
{
    if (!use_table(_i)) return;
    for (int inner = 1; inner < 8; inner += 6) {
        double mean[3], low[3], rstd[3], var[3];
        const char *x = constant(11 * 3 * inner, 0.1);
        k->column_statistics(&(ng_column_norm_shape){11, 3, inner, 0}, x,
                             (ng_statistics){mean, low, rstd}, var);
        for (int c = 0; c < 3; c++) ck_assert(mean[c] == (double)get(x, 0) && var[c] == 0);
        release();
    }
}

/* ---- Optimizers --------------------------------------------------------------------------- */

void compare_optimizers(void)
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
LOOP_TEST(states_of_what_gets_no_gradient_end_at_zero, TABLES)
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
LOOP_TEST(a_variance_of_gradients_that_is_below_zero_is_zero, TABLES)
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

LOOP_TEST(running_statistics_of_nothing_end_at_zero, TABLES)
{
    if (!use_table(_i)) return;
    const double batch[3] = {0, 0, 0};
    char *running = constant(3, in_float ? 1e-30 : 1e-290);
    for (int step = 0; step < 300; step++) {
        k->move_toward(running, batch, 1, 0.2, 3);
        expect_normal_or_zero(running, 3);
    }
    expect_bits("running", running, constant(3, 0), 3);
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

void compare_products(void)
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
LOOP_TEST(large_products_match_plain_loops, TABLES)
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

/* Row by row, and in batches of other sizes: with B read as it is, turned, and A turned. */
LOOP_TEST(a_row_of_a_product_has_the_same_bits_in_any_batch, TABLES)
{
    if (!use_table(_i)) return;
    static const int64_t shapes[][2] = {{10, 7}, {33, 40}, {96, 300}, {131, 1021}};
    const int64_t bytes = (int64_t)ng_dtype_bytes(dtype);
    for (int layout = 0; layout < 4; layout++)
        for (int s = 0; s < 4; s++) {
            enum { ROWS = 130 };
            const bool ta = layout & 1, tb = layout & 2;
            const int64_t n = shapes[s][0], depth = shapes[s][1];
            const char *a = uniform(ROWS * depth, -1, 1), *b = uniform(n * depth, -1, 1);
            char *all = make(ROWS * n), *some = make(ROWS * n);
            const ng_factor right = {b, tb ? depth : n, tb};
            k->gemm(&(ng_product){
                ROWS, n, depth, {a, ta ? ROWS : depth, ta}, right, NULL, all, n, false});
            static const int64_t batches[] = {1, 2, 3, 4, 5, 11, 12, 13, 31, 70};
            for (int i = 0; i < 10; i++) {
                const int64_t count = batches[i], first = ROWS - count;
                const ng_factor left = {a + (ta ? first : first * depth) * bytes, ta ? ROWS : depth,
                                        ta};
                k->gemm(&(ng_product){count, n, depth, left, right, NULL, some, n, false});
                ck_assert_mem_eq(some, all + first * n * bytes, (size_t)(count * n * bytes));
            }
            release();
        }
}

LOOP_TEST(matrix_products_pass_nan_on, TABLES)
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

/* ---- Walks -------------------------------------------------------------------------------- */

LOOP_TEST(copies_follow_permuted_and_broadcast_strides, 2)
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

TEST(walks_join_dimensions_where_memory_allows)
{
    ng_walk walk =
        ng_walk_broadcast(NG_SHAPE(2, 1, 3, 4), NG_SHAPE(2, 1, 3, 4), NG_SHAPE(2, 1, 3, 4));
    ck_assert_int_eq(walk.rank, 1);
    ck_assert_int_eq(walk.dim[0], 24);
    walk = ng_walk_broadcast(NG_SHAPE(2, 3, 4), NG_SHAPE(2, 3, 4), NG_SHAPE(3, 4));
    ck_assert_int_eq(walk.rank, 2);
    ck_assert_int_eq(walk.dim[1], 12);
    ck_assert_int_eq(walk.b[0], 0);
    walk = ng_walk_broadcast(NG_SHAPE(2, 3), NG_SHAPE(2, 3), NG_SCALAR);
    ck_assert_int_eq(walk.rank, 1);
    ck_assert_int_eq(walk.b[0], 0);
}

/* ---- Threads and tables ------------------------------------------------------------------- */

enum { LARGE_ROWS = 517, LARGE = LARGE_ROWS * 301 };

enum { OUTPUTS = 25 };

/* Runs large work of every kind into y (OUTPUTS, LARGE). */
static void run_all(const char *x, const char *z, const int64_t *labels, char *y)
{
    static double mean[LARGE_ROWS], rstd[LARGE_ROWS], kept[2 * LARGE_ROWS], columns[4 * 301];
    static double scratch[2 * 301 * 64];
    const size_t step = (size_t)LARGE * ng_dtype_bytes(dtype);
    const int64_t rows = LARGE_ROWS, n = 301;
    const ng_row_norm_shape row = {rows, n, n, 1e-5, true, false};
    ck_assert_int_le(ng_row_norm_scratch(&row), 2 * 301 * 64);
#define NEXT (y += step)
    k->map((ng_mapping){.kind = NG_MAP_GELU}, x, y, LARGE - 5);
    k->map_backward((ng_mapping){.kind = NG_MAP_SILU}, x, z, z, NEXT, LARGE - 5, false);
    const ng_walk walk = ng_walk_broadcast(NG_SHAPE(rows, n), NG_SHAPE(rows, n), NG_SHAPE(n));
    k->binary(NG_BINARY_POW, &walk, z, x, NEXT);
    put(NEXT, 0, k->dot(x, z, LARGE));
    k->sum(x, NEXT, 1, LARGE, 1, 1, false);
    k->sum(x, NEXT, 1, rows, n, 1, false);
    k->sum(x, NEXT, rows, n, 1, 1, false);
    k->softmax(x, NEXT, rows, n, 1, false);
    k->softmax(x, NEXT, 11, 47, n, false);
    k->softmax(x, NEXT, 11, 47, n, true);
    k->softmax_backward(x, z, NEXT, 11, 47, n, false, false);
    k->softmax_backward(x, z, NEXT, 11, 47, n, true, false);
    const ng_cross_entropy_shape classes = {.rows = rows, .n = n, .smoothing = 0.1};
    k->cross_entropy(&classes, x, labels, NEXT, kept);
    k->cross_entropy_backward(&classes, x, labels, kept, (ng_loss_slopes){z, true, 1}, NEXT, false);
    k->row_norm(&row, x, z, z, NEXT, (ng_statistics){.mean = mean, .rstd = rstd});
    ng_norm_gradients to = {.dx.data = NEXT};
    to.dgamma.data = NEXT;
    to.dbeta.data = NEXT;
    k->row_norm_backward(&row, x, z, (ng_statistics){.mean = mean, .rstd = rstd}, z, to, scratch);
    for (int inner = 1; inner < 8; inner += 6) { /* 301 channels, then 43 of 7 */
        const ng_column_norm_shape column = {rows, n / inner, inner, 0};
        const ng_statistics statistics = {columns, columns + 301, columns + 2 * 301};
        k->column_statistics(&column, x, statistics, columns + 3 * 301);
        k->column_norm(&column, x, statistics, NULL, NULL, NEXT);
        k->column_norm_backward(&column, x, NULL, statistics, z, false,
                                (ng_norm_gradients){.dx.data = NEXT});
    }
    ng_product p = {rows, rows / 2, n, {x, n, false}, {z, n, true}, .c_row = rows / 2};
    p.c = NEXT;
    k->gemm(&p);
    p = (ng_product){n, 120, rows, {x, n, true}, {z, n, false}, .c_row = 120};
    p.c = NEXT;
    k->gemm(&p);
    static int64_t order[LARGE_ROWS + 301 + 2];
    const ng_scatter_shape scatter = {rows, 301, n};
    k->scatter_add_rows(&scatter, x, labels, NEXT, false, order);
#undef NEXT
}

LOOP_TEST(one_and_two_threads_give_the_same_bits, TABLES)
{
    if (!use_table(_i)) return;
    int64_t labels[LARGE_ROWS];
    for (int i = 0; i < LARGE_ROWS; i++) labels[i] = ng_rng_below(table_rng(), 301);
    const char *x = uniform(LARGE, -2, 2), *z = uniform(LARGE, 0.5, 1);
    char *one = constant(OUTPUTS * LARGE, 0), *two = constant(OUTPUTS * LARGE, 0);
    ng_set_threads(1);
    run_all(x, z, labels, one);
    ng_set_threads(2);
    run_all(x, z, labels, two);
    ng_set_threads(0);
    for (int i = 0; i < OUTPUTS; i++) {
        const size_t at = (size_t)i * LARGE * ng_dtype_bytes(dtype);
        char which[24];
        snprintf(which, sizeof which, "output %d", i);
        expect_bits(which, one + at, two + at, LARGE);
    }
    release();
}

/* The sum of NaNs of both signs is one of them. Which one depends on the order of the operands,
 * which may differ between a loop of vectors and its tail. */
LOOP_TEST(sums_of_nans_have_the_same_bits_for_any_number_of_threads, TABLES)
{
    if (!use_table(_i)) return;
    enum { OUTER = 11, N = 47, INNER = LARGE / OUTER / N, SUMS = OUTER * INNER };
    char *x = uniform(LARGE, -1, 1);
    for (int64_t i = 0; i < LARGE; i++)
        if (ng_rng_below(table_rng(), 3) == 0)
            put(x, i, ng_rng_below(table_rng(), 2) ? nan_value : -nan_value);
    char *sums[2], *running[2];
    double *exact[2];
    for (int i = 0; i < 2; i++) {
        ng_set_threads(1 + i);
        k->sum(x, sums[i] = make(SUMS), OUTER, N, INNER, 1, false);
        k->sum_to_f64(x, exact[i] = doubles(SUMS), OUTER, N, INNER, false);
        k->cumsum(x, running[i] = make(LARGE), OUTER, N, INNER, false);
    }
    ng_set_threads(0);
    expect_bits("sums", sums[0], sums[1], SUMS);
    ck_assert(!memcmp(exact[0], exact[1], SUMS * sizeof(double)));
    expect_bits("running sums", running[0], running[1], LARGE);
    release();
}

/* Two arrays of floats large enough to be stored past the caches, and as large ones with wider
 * rows, whose columns are in blocks of other lengths. */
enum {
    PAST_ROWS = 3100,
    PAST_COLUMNS = 1024,
    WIDE_ROWS = 1600,
    WIDE_COLUMNS = 1984,
    PAST = PAST_ROWS * PAST_COLUMNS,
    PAST_KINDS = 14
};
_Static_assert(WIDE_ROWS *WIDE_COLUMNS == PAST, "as much");

static ng_column_norm_shape past_columns(int kind)
{
    const bool wide = kind > 11;
    return (ng_column_norm_shape){wide ? WIDE_ROWS : PAST_ROWS, wide ? WIDE_COLUMNS : PAST_COLUMNS,
                                  1, 1e-5};
}

/* The backward pass of rows or columns with given statistics. */
static void run_past_backward(int kind, const char *x, const char *dy, char *y)
{
    static double mean[PAST_ROWS], rstd[PAST_ROWS], scratch[2 * PAST_COLUMNS * 64];
    for (int i = 0; i < PAST_ROWS; i++) mean[i] = 0.1, rstd[i] = 1 + 1e-4 * i;
    const int64_t rows = PAST_ROWS, n = PAST_COLUMNS;
    const bool center = kind == 6;
    const ng_row_norm_shape row = {rows, n, n, 1e-5, center, false};
    const ng_column_norm_shape column = past_columns(kind);
    const ng_statistics statistics = {.mean = center || kind > 7 ? mean : NULL, .rstd = rstd};
    ng_norm_gradients to = {.dx.data = y};
    if (kind == 9) rstd[5] = 1e30; /* a column of floats that is computed by itself */
    if (kind > 7) {
        k->column_norm_backward(&column, x, x, statistics, dy, false, to);
        return;
    }
    to.dgamma.data = make(n);
    to.dbeta.data = center ? make(n) : NULL;
    k->row_norm_backward(&row, x, x, statistics, dy, to, scratch);
}

static void run_past(int kind, const char *x, const char *z, char *y)
{
    static double mean[PAST_ROWS], rstd[PAST_ROWS], var[PAST_ROWS];
    const int64_t rows = PAST_ROWS, n = PAST_COLUMNS;
    const bool repeated = kind == 1, center = kind == 3 || kind == 11;
    const ng_shape shape = NG_SHAPE(rows, n);
    const ng_walk walk = ng_walk_broadcast(shape, shape, repeated ? NG_SHAPE(n) : shape);
    const ng_row_norm_shape row = {rows, n, n, 1e-5, center, false};
    const ng_column_norm_shape column = past_columns(kind);
    const ng_statistics statistics = {.mean = center || kind > 4 ? mean : NULL, .rstd = rstd};
    if (kind < 2) {
        k->binary(NG_BINARY_ADD, &walk, x, z, y);
        for (int64_t i = 0; i < PAST; i += 7)
            expect("a + b", y, i, get(x, i) + get(z, repeated ? i % n : i), 1, 0);
    } else if (kind == 2) {
        k->softmax_backward(x, z, y, rows, n, 1, false, false);
    } else if (kind < 5) {
        k->row_norm(&row, x, z, center ? z : NULL, y, statistics);
    } else if (kind == 10 || kind == 11) {
        const ng_row_norm_shape long_row = {rows / 4, 4 * n, 4 * n, 1e-5, center, false};
        k->row_norm(&long_row, x, z, center ? z : NULL, y, statistics);
    } else if (kind == 5 || kind == 12) {
        k->column_statistics(&column, x, statistics, var);
        k->column_norm(&column, x, statistics, z, z, y);
    } else {
        run_past_backward(kind, x, z, y);
    }
}

/* Non-temporal stores need whole vectors of aligned memory; unaligned results use plain stores. */
LOOP_TEST(what_is_stored_past_the_caches_has_the_bits_of_what_is_not, TABLES)
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

TEST(tables_are_found_by_name)
{
    ck_assert_ptr_nonnull(ng_kernels_of("baseline", NG_F32));
    ck_assert_ptr_nonnull(ng_kernels_of("baseline", NG_F64));
    ck_assert_ptr_null(ng_kernels_of("baseline", NG_I64));
    ck_assert_ptr_null(ng_kernels_of("riscv", NG_F32));
    for (int i = 0; i < TABLES; i++)
        if (use_table(i)) ck_assert_str_eq(k->isa, ng_isa_name(i / 2));
}

TEST(the_environment_names_the_instruction_set)
{
    const char *fork = getenv("CK_FORK");
    if (fork && !strcmp(fork, "no")) return; /* the table is chosen once in a process */
    setenv("NORMGRAD_ISA", "baseline", 1);
    ck_assert_str_eq(ng_kernels_for(NG_F32)->isa, "baseline");
    ck_assert_ptr_eq(ng_kernels_for(NG_F64), ng_kernels_of("baseline", NG_F64));
    ck_assert(!ng_failed());
}

TEST(an_instruction_set_that_cannot_be_had_is_an_error_and_the_best_is_used)
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
