/* A tape, and leaves that live as long as a test, for the groups of tests that have this fixture:
 *
 *     TCase *reductions = add_group(suite, "reductions");
 */
#ifndef NG_TESTS_FIXTURE_H
#define NG_TESTS_FIXTURE_H

#include <check.h>
#include <normgrad.h>

extern ng_tape *tape;

void set_up(void);
void tear_down(void);

TCase *add_group(Suite *suite, const char *name);

/* How many cases there are: case_count(ng_op_case). */
int case_count(const ng_case *case_at(int index));

/* Freed by tear_down. NULL fails the test. */
ng_tensor *own(ng_tensor *x);

#endif
