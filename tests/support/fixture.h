/* The fixture set_up and tear_down: a tape. Modules compared and as text. */
#ifndef NG_TESTS_FIXTURE_H
#define NG_TESTS_FIXTURE_H

#include <check.h>
#include <normgrad.h>

extern ng_tape *tape;

void set_up(void);
void tear_down(void);

/* Normal values of a seed, of mean 0 and deviation 1 or of those given, which require a gradient
 * and are freed after the test. */
ng_tensor *normal(ng_dtype dtype, ng_shape shape, uint64_t seed);
ng_tensor *normal_with(ng_dtype dtype, ng_shape shape, double mean, double deviation,
                       uint64_t seed);

/* Nothing is allocated but the tape, which was not used. */
#define assert_all_freed() ck_assert_int_eq(allocations_live(), 1)

/* Every parameter and buffer of two modules has the same name and bits. */
void assert_same_module(ng_module *a, ng_module *b);

/* The text that ng_fprint_summary prints; the caller frees it. */
char *summary_of(const ng_module *module);

#endif
