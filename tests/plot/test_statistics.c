/* Statistics of the experiments: quantiles, and the confidence interval of a median. */
#include "../examples/more/numbers.h"
#include "support/fixture.h"
#include "support/support.h"

/* Dixon & Massey's table of the sign test: how many values are cut from either end at 5 %. */
START_TEST(interval_of_a_median_is_the_sign_tests)
{
    static const struct {
        int count, cut;
    } table[] = {{5, -1}, {6, 0},  {8, 0},  {9, 1},  {11, 1}, {12, 2},
                 {14, 2}, {15, 3}, {17, 4}, {20, 5}, {23, 6}, {25, 7}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        ck_assert_int_eq(number_median_interval(table[i].count, 0.05), table[i].cut);
    for (int count = 0; count < 2; count++)
        ck_assert_int_eq(number_median_interval(count, 0.05), -1);
}
END_TEST

/* With twelve parts at 5 % in all, nine values are enough and eight are not. */
START_TEST(interval_widens_when_many_parts_are_tested)
{
    ck_assert_int_eq(number_median_interval(8, 0.05 / 12), -1);
    ck_assert_int_eq(number_median_interval(9, 0.05 / 12), 0);
    ck_assert_int_eq(number_median_interval(15, 0.05 / 12), 1);
    ck_assert_int_eq(number_median_interval(15, 1), 7);
}
END_TEST

/* For exp(2 z), a skewed distribution with median 1. */
START_TEST(interval_covers_the_median_as_often_as_it_says)
{
    enum { RUNS = 20000, COUNT = 9 };
    ng_rng rng = ng_rng_seeded(1);
    int covered = 0;
    for (int run = 0; run < RUNS; run++) {
        double values[COUNT];
        for (int i = 0; i < COUNT; i++) values[i] = exp(2 * ng_rng_normal(&rng));
        const int cut = number_median_interval(COUNT, 0.05);
        number_spread_of(values, COUNT);
        covered += values[cut] <= 1 && values[COUNT - 1 - cut] >= 1;
    }
    const double share = (double)covered / (double)RUNS,
                 expected = 1 - 20.0 / 512; /* 2 (1 + 9) / 2^9 */
    ck_assert_msg(fabs(share - expected) < 0.005, "covered %.4f of the time, not %.4f", share,
                  expected);
}
END_TEST

START_TEST(spread_has_median_quarters_and_extremes)
{
    double values[] = {5, 1, 4, 2, 3}, pair[] = {3, 1};
    const number_spread s = number_spread_of(values, 5), two = number_spread_of(pair, 2);
    ck_assert(s.count == 5 && s.median == 3 && s.low == 1 && s.high == 5);
    ck_assert(s.quarter == 2 && s.three_quarters == 4);
    ck_assert(two.median == 2 && two.quarter == 1.5 && two.three_quarters == 2.5);
    ck_assert(isnan(number_spread_of(values, 0).median));
}
END_TEST

START_TEST(quantile_of_infinite_values_is_no_nan)
{
    const double values[] = {1, HUGE_VAL, HUGE_VAL};
    ck_assert(number_quantile(values, 3, 1) == HUGE_VAL);
    ck_assert(number_quantile(values, 3, 0.25) == HUGE_VAL);
    ck_assert(number_quantile(values, 3, 0.75) == HUGE_VAL);
    ck_assert(number_quantile(values, 3, 0) == 1);
}
END_TEST

Suite *statistics_suite(void)
{
    return suite_of("statistics", set_up, tear_down, interval_of_a_median_is_the_sign_tests,
                    interval_widens_when_many_parts_are_tested,
                    interval_covers_the_median_as_often_as_it_says,
                    spread_has_median_quarters_and_extremes, quantile_of_infinite_values_is_no_nan);
}
