/* Errors, shapes, tensors, random numbers, memory. */
#include "core/arena.h"
#include "core/error.h"
#include "core/tensor.h"
#include "support/support.h"
#include <pthread.h>
#include <stdio.h>

/* ---- Errors ------------------------------------------------------------------------------- */

START_TEST(the_first_failure_stays_and_the_later_ones_are_counted)
{
    ck_assert(!ng_failed());
    ck_assert_int_eq(ng_failures(), 0);
    ck_assert_str_eq(ng_error_text(), "");
    ck_assert_int_eq(ng_fail(NG_EIO, "ng_x: %d", 7), NG_EIO);
    ck_assert_int_eq(ng_fail(NG_ESHAPE, "what followed"), NG_ESHAPE);
    ck_assert(ng_failed());
    ck_assert_int_eq(ng_failures(), 2);
    ck_assert_int_eq(ng_error_status(), NG_EIO);
    ck_assert_str_eq(ng_error_text(), "ng_x: 7");
    ng_clear_error();
    ck_assert_int_eq(ng_failures(), 0);
    ck_assert_int_eq(ng_error_status(), NG_OK);
    ng_fail(NG_ESHAPE, "the next cause");
    assert_error(NG_ESHAPE, "the next cause");
}

START_TEST(a_status_is_that_of_its_own_failure)
{
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(2)));
    ng_fail(NG_EIO, "the cause");
    ck_assert_int_eq(ng_set(x, 7, 1), NG_ESHAPE);
    ck_assert_int_eq(ng_fill_uniform(x, 1, 0, &(ng_rng){{1}}), NG_EVALUE);
    ck_assert_int_eq(ng_newest_status(), NG_EVALUE);
    assert_error(NG_EIO, "the cause");
    ck_assert_int_eq(ng_newest_status(), NG_OK);
}

START_TEST(a_wrong_range_or_deviation_is_an_error)
{
    ng_tensor *x = own(ng_ones_new(NG_F64, NG_SHAPE(2)));
    ng_rng rng = ng_rng_seeded(1);
    const double nan = (double)NAN, inf = (double)INFINITY;
    const double ranges[][2] = {{nan, 1}, {0, nan}, {0, inf}}, deviations[] = {inf, nan, -1};
    for (int i = 0; i < 3; i++) {
        assert_refused(ng_fill_uniform(x, ranges[i][0], ranges[i][1], &rng));
        assert_refused(ng_fill_normal(x, 0, deviations[i], &rng));
    }
    assert_refused(ng_uniform_new(NG_F32, NG_SHAPE(2), 1, 0, &rng));
    assert_refused(ng_normal_new(NG_F32, NG_SHAPE(2), 0, -1, &rng));
    assert_values(x, 0, 1, 1);
}

START_TEST(an_option_of_0_is_the_default_and_ng_zero_is_0)
{
    ck_assert_double_eq(ng_option(0, 5), 5);
    ck_assert_double_eq(ng_option(3, 5), 3);
    ck_assert_double_eq(ng_option(NG_ZERO, 5), 0);
    ck_assert_double_eq(ng_option(ng_exactly(0), 5), 0);
    ck_assert_double_eq(ng_option(ng_exactly(-0.0), 5), 0);
    ck_assert_double_eq(ng_option(ng_exactly(3), 5), 3);
}

static void *fails_elsewhere(void *unused)
{
    ng_fail(NG_EIO, "elsewhere");
    return unused;
}

START_TEST(error_record_belongs_to_its_thread)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, fails_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert(!ng_failed());
}

/* The innermost module, which comes first, is named. */
START_TEST(an_error_is_located_once)
{
    ng_locate_error("nowhere", "Linear"); /* no error */
    ck_assert(!ng_failed());
    ng_fail(NG_ESHAPE, "ng_linear: x is (2,)");
    ng_locate_error("blocks.3", "Linear");
    ng_locate_error("blocks", "Sequential");
    ck_assert_str_eq(ng_error_text(), "blocks.3 (Linear): ng_linear: x is (2,)");
    ng_clear_error();
    ng_fail(NG_ESHAPE, "Linear: x is (2,)");
    ng_locate_error("", "Linear");
    ck_assert_str_eq(ng_error_text(), "Linear: x is (2,)");
    ng_clear_error();

    char path[2 * NG_ERROR_BYTES]; /* texts are cut */
    memset(path, 'a', sizeof path);
    path[sizeof path - 1] = '\0';
    ng_fail(NG_ESHAPE, "%s", path);
    ck_assert_uint_eq(strlen(ng_error_text()), NG_ERROR_BYTES - 1);
    ng_clear_error();
    ng_fail(NG_ESHAPE, "what happened");
    ng_locate_error(path, "Linear");
    ck_assert_uint_eq(strlen(ng_error_text()), NG_ERROR_BYTES - 1);
    ng_clear_error();
}

START_TEST(every_status_has_a_name)
{
    for (ng_status status = NG_OK; status <= NG_ENULL; status++)
        ck_assert_int_eq(strncmp(ng_status_name(status), "NG_", 3), 0);
    ck_assert_str_eq(ng_status_name(NG_ENULL), "NG_ENULL");
    ck_assert_str_eq(ng_status_name((ng_status)(NG_ENULL + 1)), "unknown status");
    ck_assert_str_eq(ng_status_name((ng_status)-1), "unknown status");
}

/* ---- Shapes ------------------------------------------------------------------------------- */

START_TEST(shape_prints_as_python_does)
{
    ck_assert_str_eq(ng_shape_print(NG_SCALAR).text, "()");
    ck_assert_str_eq(ng_shape_print(NG_SHAPE(10)).text, "(10,)");
    ck_assert_str_eq(ng_shape_print(NG_SHAPE(32, 64)).text, "(32, 64)");
    const int64_t m = INT64_MIN;
    const ng_shape widest = NG_SHAPE(m, m, m, m, m, m, m, m);
    ck_assert_uint_eq(strlen(ng_shape_print(widest).text), 8 * 20 + 7 * 2 + 2);
}

START_TEST(broadcasting_follows_numpy)
{
    const struct {
        ng_shape a, b, y;
    } good[] = {
        {NG_SHAPE(3, 4), NG_SHAPE(4), NG_SHAPE(3, 4)},
        {NG_SHAPE(3, 1), NG_SHAPE(1, 4), NG_SHAPE(3, 4)},
        {NG_SCALAR, NG_SHAPE(2, 2), NG_SHAPE(2, 2)},
        {NG_SHAPE(1), NG_SHAPE(0), NG_SHAPE(0)},
        {NG_SHAPE(2, 1, 5), NG_SHAPE(3, 1), NG_SHAPE(2, 3, 5)},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ng_shape y;
        ck_assert(ng_shape_broadcast("f", good[i].a, good[i].b, &y));
        ck_assert(ng_shape_equal(y, good[i].y));
        ck_assert(ng_shape_broadcast("f", good[i].b, good[i].a, &y));
        ck_assert(ng_shape_equal(y, good[i].y));
    }
    ng_shape y;
    ck_assert(!ng_shape_broadcast("ng_add", NG_SHAPE(3, 4), NG_SHAPE(5), &y));
    assert_error(NG_ESHAPE, "ng_add");
}

/* Shapes that are impossible stay so with a dimension of 0. */
START_TEST(impossible_shapes_are_refused)
{
    const int64_t large = INT64_C(1) << 40;
    const ng_shape impossible[] = {NG_SHAPE(3, -1),
                                   NG_SHAPE(INT64_MAX, 2),
                                   {.rank = 9},
                                   {.rank = -1},
                                   NG_SHAPE(0, -1),
                                   NG_SHAPE(0, INT64_C(1) << 61),
                                   NG_SHAPE(large, 0, large)};
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++)
        assert_fails(ng_zeros_new(NG_F32, impossible[i]), NG_ESHAPE);
    assert_fails(ng_zeros_new(NG_F64, NG_SHAPE(PTRDIFF_MAX / 8)), NG_ENOMEM);
    assert_fails(ng_zeros_new((ng_dtype)7, NG_SHAPE(1)), NG_EDTYPE);
    ck_assert_int_eq(ng_size(own(ng_zeros_new(NG_F32, NG_SHAPE(0, INT64_MAX / 8)))), 0);
}

/* ---- Tensors ------------------------------------------------------------------------------ */

START_TEST(tensors_hold_the_given_values)
{
    ng_tensor *x = own(ng_tensor_from(NG_F64, NG_SHAPE(2, 3), NG_VALUES(1, 2, 3, 4, 5, 6)));
    assert_values(x, 0.0, 1, 2, 3, 4, 5, 6);
    assert_close(ng_at(x, 1, 2), 6, 0);
    ck_assert(ng_rank(x) == 2 && ng_dim(x, -1) == 3 && ng_dim(x, 0) == 2);
    ck_assert_int_eq(ng_data_i64(own(ng_copy_new(x, NG_I64)))[5], 6);
    assert_values(own(ng_ones_new(NG_F32, NG_SHAPE(2))), 0.0, 1, 1);
    assert_close(ng_item(own(ng_full_new(NG_F32, NG_SCALAR, 2.5))), 2.5, 0);
}

START_TEST(wrong_access_is_an_error)
{
    ng_tensor *x = own(ng_zeros_new(NG_F32, NG_SHAPE(2, 3)));
    ck_assert(isnan(ng_item(x)));
    assert_error(NG_ESHAPE, "ng_item");
    const int64_t wrong[][2] = {{2, 0}, {1, INT64_MAX}, {1, -1}}; /* the last would be (0, 2) */
    for (int i = 0; i < 3; i++) {
        ck_assert(isnan(ng_at(x, wrong[i][0], wrong[i][1])));
        assert_error(NG_ESHAPE, "ng_at");
    }
    for (int64_t i = -1; i < 7; i += 7) {
        ck_assert(isnan(ng_get(x, i)));
        assert_error(NG_ESHAPE, "ng_get");
    }
    assert_fails(ng_data_f64(x), NG_EDTYPE);
    assert_fails(ng_tensor_from(NG_F32, NG_SHAPE(2, 2), NG_VALUES(1, 2, 3)), NG_ESHAPE);
    assert_fails(ng_tensor_from(NG_F32, NG_SHAPE(2, 2), NG_VALUES(1, 2, 3, 4, 5)), NG_ESHAPE);
    assert_fails(ng_copy_values(x, own(ng_zeros_new(NG_F32, NG_SHAPE(5)))), NG_ESHAPE);
    assert_fails(ng_copy_values(x, own(ng_zeros_new(NG_F32, NG_SHAPE(7)))), NG_ESHAPE);
    ck_assert_int_eq(ng_dim(x, 2), -1);
    assert_error(NG_ESHAPE, "ng_dim");
    assert_fails(ng_require_grad(own(ng_zeros_new(NG_I64, NG_SHAPE(2)))), NG_EDTYPE);
    assert_fails(ng_grad(x), NG_EGRAD);
    assert_fails(ng_fill(NG_NONE, 0), NG_EVALUE);
}

START_TEST(integers_are_rounded_and_saturate)
{
    ng_tensor *x = own(ng_tensor_from(NG_I64, NG_SHAPE(8),
                                      NG_VALUES(2.6, -2.6, 0x1p63, 0x1p63 - 1024, -0x1p63,
                                                -0x1p63 - 2048, (double)NAN, -0x1p62 - 1024)));
    const int64_t expected[] = {3,         -3,        INT64_MAX, INT64_MAX - 1023,
                                INT64_MIN, INT64_MIN, 0,         -(INT64_C(1) << 62) - 1024};
    for (int i = 0; i < 8; i++) ck_assert_int_eq(ng_data_i64(x)[i], expected[i]);
}

START_TEST(data_is_aligned_to_cache_lines)
{
    for (int64_t n = 1; n < 40; n++)
        ck_assert_uint_eq((uintptr_t)ng_data_f32(own(ng_zeros_new(NG_F32, NG_SHAPE(n)))) % 64, 0);
}

static void expect_printed(ng_tensor *x, int digits, const char *expected)
{
    char text[4096];
    FILE *stream = fmemopen(text, sizeof text, "w");
    ng_fprint(stream, x, .digits = digits);
    fclose(stream);
    ck_assert_str_eq(text, expected);
    ng_tensor_free(x);
}

START_TEST(tensors_print_readably)
{
    expect_printed(ng_tensor_from(NG_F32, NG_SHAPE(2, 3), NG_VALUES(1, -2.5, 3, 4, 5, 6)), 0,
                   "float32 (2, 3)\n[[   1  -2.5     3]\n [   4     5     6]]\n");
    expect_printed(ng_full_new(NG_F64, NG_SCALAR, 0.1), 0, "float64 ()\n0.1\n");
    expect_printed(ng_full_new(NG_F64, NG_SCALAR, 0.1), 17, "float64 ()\n0.10000000000000001\n");
    expect_printed(ng_zeros_new(NG_I64, NG_SHAPE(20)), 0, "int64 (20,)\n[0  0  0  ...  0  0  0]\n");
    expect_printed(ng_zeros_new(NG_I64, NG_SHAPE(8)), 0, "int64 (8,)\n[0  0  0  0  0  0  0  0]\n");
    expect_printed(ng_zeros_new(NG_F32, NG_SHAPE(0)), 0, "float32 (0,)\n[]\n");
    expect_printed(ng_zeros_new(NG_I64, NG_SHAPE(9, 1)), 0,
                   "int64 (9, 1)\n[[0]\n [0]\n [0]\n ...\n [0]\n [0]\n [0]]\n");
    expect_printed(ng_full_new(NG_F32, NG_SCALAR, -(double)NAN), 0, "float32 ()\nnan\n");
    expect_printed(NG_NONE, 0, "NG_NONE\n");
    expect_printed(NULL, 0, "NULL\n");
    ng_clear_error();
    for (int wrong = -1; wrong <= 18; wrong += 19) {
        ng_tensor *scalar = ng_full_new(NG_F64, NG_SCALAR, 0.1);
        ng_print(scalar, .digits = wrong);
        assert_error(NG_EVALUE, "ng_");
        ng_tensor_free(scalar);
    }
}

/* ---- Random numbers ----------------------------------------------------------------------- */

/* The first numbers of the authors' xoshiro256plusplus.c with state {1, 2, 3, 4}. */
START_TEST(generator_is_xoshiro256plusplus_and_seeds_differ)
{
    ng_rng rng = {{1, 2, 3, 4}};
    const uint64_t expected[] = {41943041, 58720359, 3588806011781223u, 3591011842654386u};
    for (int i = 0; i < 4; i++) ck_assert_uint_eq(ng_rng_next(&rng), expected[i]);
    ng_rng a = ng_rng_seeded(7), b = ng_rng_seeded(7), other = ng_rng_seeded(8);
    const uint64_t drawn = ng_rng_next(&a);
    ck_assert_uint_eq(ng_rng_next(&b), drawn);
    ck_assert_uint_ne(ng_rng_next(&other), drawn);
}

/* Sample moments of n draws are within 5 of their standard deviations. */
START_TEST(distributions_have_their_moments)
{
    enum { N = 100000 };
    ng_rng rng = ng_rng_seeded(1);
    double uniform = 0, normal = 0, square = 0;
    int64_t counts[7] = {0};
    for (int i = 0; i < N; i++) {
        const double u = ng_rng_uniform(&rng), z = ng_rng_normal(&rng);
        ck_assert(u >= 0 && u < 1);
        uniform += u / (double)N, normal += z / (double)N, square += z * z / (double)N;
        counts[ng_rng_below(&rng, 7)]++;
    }
    assert_near(uniform, 0.5, 5 * sqrt(1.0 / 12 / (double)N));
    assert_near(normal, 0.0, 5 * sqrt(1.0 / (double)N));
    assert_near(square, 1.0, 5 * sqrt(2.0 / (double)N));
    for (int i = 0; i < 7; i++)
        assert_near((double)counts[i], (double)N / 7.0, 5 * sqrt((double)N * 6.0 / 49));
}

START_TEST(an_array_is_read_by_its_type)
{
    const double doubles[] = {1.5, -2, 3};
    const float floats[] = {1.5f, -2, 3};
    int ints[] = {1, -2, 3};
    long longs[] = {1, -2, 3};
    const long long wide[] = {1, -2, 3};
    static const double values[2][3] = {{1.5, -2, 3}, {1, -2, 3}};
    static const ng_dtype dtypes[] = {NG_F32, NG_F64, NG_I64};
    for (int k = 0; k < 3; k++) {
        const ng_shape shape = NG_SHAPE(3);
        ng_tensor *x[] = {own(ng_tensor_from_array(dtypes[k], shape, doubles)),
                          own(ng_tensor_from_array(dtypes[k], shape, floats)),
                          own(ng_tensor_from_array(dtypes[k], shape, ints)),
                          own(ng_tensor_from_array(dtypes[k], shape, longs)),
                          own(ng_tensor_from_array(dtypes[k], shape, wide))};
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < 3; j++) {
                const double value = values[i >= 2][j];
                ck_assert(ng_get(x[i], j) == (dtypes[k] == NG_I64 ? round(value) : value));
            }
        const void *untyped = doubles;
        ck_assert(ng_get(own(ng_tensor_from_array(NG_F64, shape, untyped)), 0) == 1.5);
    }
}

START_TEST(an_array_may_hold_arrays)
{
    const float two[2][3] = {{1, 2, 3}, {4, 5, 6}};
    int64_t four[2][1][2][2] = {{{{1, 2}, {3, 4}}}, {{{5, 6}, {7, 8}}}};
    assert_values(own(ng_tensor_from_array(NG_F64, NG_SHAPE(2, 3), two)), 0, 1, 2, 3, 4, 5, 6);
    assert_values(own(ng_tensor_from_array(NG_I64, NG_SHAPE(8), four)), 0, 1, 2, 3, 4, 5, 6, 7, 8);
    assert_values(own(ng_tensor_from_array(NG_F32, NG_SHAPE(3), two[1])), 0, 4, 5, 6);
}

/* The length of an array is known, also that of variable length; that of a pointer is not. */
static ng_tensor *from_parameter(const double array[4])
{
    return ng_tensor_from_array(NG_F64, NG_SHAPE(3), array);
}

START_TEST(the_length_of_an_array_is_that_of_the_shape)
{
    const double array[4] = {1, 2, 3, 4};
    const int length = 4 + (ng_threads() < 0);
    float variable[length], pairs[2][2] = {{1, 2}, {3, 4}};
    memset(variable, 0, sizeof variable);
    assert_fails(ng_tensor_from_array(NG_F64, NG_SHAPE(5), array), NG_ESHAPE);
    assert_fails(ng_tensor_from_array(NG_F64, NG_SHAPE(3), array), NG_ESHAPE);
    assert_fails(ng_tensor_from_array(NG_F32, NG_SHAPE(2, 3), pairs), NG_ESHAPE);
    assert_fails(ng_tensor_from_array(NG_F32, NG_SHAPE(5), variable), NG_ESHAPE);
    assert_ok(own(ng_tensor_from_array(NG_F32, NG_SHAPE(4), variable)));
    assert_values(own(ng_tensor_from_array(NG_F64, NG_SHAPE(3), &array[1])), 0, 2, 3, 4);
    assert_values(own(from_parameter(array)), 0, 1, 2, 3);
}

/* The bound is 3/8 of 2^64. A plain remainder would draw the lower two thirds of the range 3/4 of
 * the time. */
START_TEST(numbers_below_a_large_bound_are_fair)
{
    enum { DRAWS = 20000 };
    const int64_t third = INT64_C(1) << 61;
    ng_rng rng = ng_rng_seeded(5);
    int low = 0;
    for (int i = 0; i < DRAWS; i++) {
        const int64_t drawn = ng_rng_below(&rng, 3 * third);
        ck_assert(drawn >= 0 && drawn < 3 * third);
        low += drawn < 2 * third;
    }
    ck_assert_double_eq_tol((double)low / (double)DRAWS, 2. / 3, 0.02);
    ck_assert_int_eq(ng_rng_below(&rng, 1), 0);
    ck_assert_int_eq(ng_rng_below(&rng, 0), -1);
    assert_error(NG_EVALUE, "ng_rng_below");
    ck_assert_int_eq(ng_rng_below(&rng, -5), -1);
    assert_error(NG_EVALUE, "ng_rng_below");
}

/* ---- Memory ------------------------------------------------------------------------------- */

/* Sizes whose product overflows, with or without padding. */
START_TEST(sizes_that_overflow_are_out_of_memory)
{
    static const struct {
        int64_t count;
        size_t size;
    } cases[] = {
        {-1, 8},        {INT64_MIN, 1},      {INT64_MAX / 4, 8},         {INT64_C(1) << 61, 8},
        {INT64_MAX, 1}, {INT64_MAX - 62, 1}, {(INT64_C(1) << 61) + 1, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_fails(ng_calloc("test", cases[i].count, cases[i].size), NG_ENOMEM, "test");

    ng_arena arena = {0};
    assert_fails(ng_arena_alloc("test", &arena, SIZE_MAX), NG_ENOMEM, "test");
    ck_assert_ptr_null(ng_allocate_quietly(SIZE_MAX));
    ck_assert_ptr_null(ng_allocate_quietly(SIZE_MAX - 63));
    ck_assert(!ng_failed());
}

START_TEST(a_tensor_without_memory_leaks_nothing)
{
    for (int n = 0; n < 2; n++) {
        allocations_fail_after(n);
        ng_tensor *x = ng_zeros_new(NG_F32, NG_SHAPE(3));
        allocations_succeed();
        assert_fails(x, NG_ENOMEM, "ng_");
        ck_assert_int_eq(allocations_live(), 0);
    }
}

Suite *core_suite(void)
{
    return suite_of(
        "core", NULL, NULL, the_first_failure_stays_and_the_later_ones_are_counted,
        a_status_is_that_of_its_own_failure, a_wrong_range_or_deviation_is_an_error,
        an_option_of_0_is_the_default_and_ng_zero_is_0, error_record_belongs_to_its_thread,
        an_error_is_located_once, every_status_has_a_name, shape_prints_as_python_does,
        broadcasting_follows_numpy, impossible_shapes_are_refused, tensors_hold_the_given_values,
        wrong_access_is_an_error, integers_are_rounded_and_saturate, data_is_aligned_to_cache_lines,
        tensors_print_readably, generator_is_xoshiro256plusplus_and_seeds_differ,
        distributions_have_their_moments, an_array_is_read_by_its_type, an_array_may_hold_arrays,
        the_length_of_an_array_is_that_of_the_shape, numbers_below_a_large_bound_are_fair,
        sizes_that_overflow_are_out_of_memory, a_tensor_without_memory_leaks_nothing);
}
