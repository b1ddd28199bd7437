/* Statistics of the experiments: a median, and its confidence interval. */
#include "../examples/claims/lab.h"
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
        ck_assert_int_eq(median_interval(table[i].count, 0.05), table[i].cut);
    for (int count = 0; count < 2; count++) ck_assert_int_eq(median_interval(count, 0.05), -1);
}

/* With twelve parts at 5 % in all, nine values are enough and eight are not. */
START_TEST(interval_widens_when_many_parts_are_tested)
{
    ck_assert_int_eq(median_interval(8, 0.05 / 12), -1);
    ck_assert_int_eq(median_interval(9, 0.05 / 12), 0);
    ck_assert_int_eq(median_interval(15, 0.05 / 12), 1);
    ck_assert_int_eq(median_interval(15, 1), 7);
}

/* For exp(2 z), a skewed distribution with median 1. */
START_TEST(interval_covers_the_median_as_often_as_it_says)
{
    enum { RUNS = 20000, COUNT = 9 };
    ng_rng rng = ng_rng_seeded(1);
    int covered = 0;
    for (int run = 0; run < RUNS; run++) {
        double values[COUNT];
        for (int i = 0; i < COUNT; i++) values[i] = exp(2 * ng_rng_normal(&rng));
        const int cut = median_interval(COUNT, 0.05);
        median_of(values, COUNT);
        covered += values[cut] <= 1 && values[COUNT - 1 - cut] >= 1;
    }
    const double share = (double)covered / (double)RUNS,
                 expected = 1 - 20.0 / 512; /* 2 (1 + 9) / 2^9 */
    ck_assert_msg(fabs(share - expected) < 0.005, "covered %.4f of the time, not %.4f", share,
                  expected);
}

START_TEST(median_sorts_and_is_the_middle)
{
    double values[] = {5, 1, 4, 2, 3}, pair[] = {3, 1}, far[] = {HUGE_VAL, 1, HUGE_VAL};
    ck_assert(median_of(values, 5) == 3 && values[0] == 1 && values[4] == 5);
    ck_assert(median_of(pair, 2) == 2 && median_of(far, 3) == HUGE_VAL);
    ck_assert(isnan(median_of(values, 0)));
}

Suite *statistics_suite(void)
{
    return suite_of("statistics", set_up, tear_down, interval_of_a_median_is_the_sign_tests,
                    interval_widens_when_many_parts_are_tested,
                    interval_covers_the_median_as_often_as_it_says, median_sorts_and_is_the_middle);
}
