/* A tape, and leaves that live as long as a test, for the cases that have this fixture:
 *
 *     tcase_add_checked_fixture(tests, set_up, tear_down);
 */
#ifndef NG_TESTS_FIXTURE_H
#define NG_TESTS_FIXTURE_H

#include <normgrad.h>

extern ng_tape *tape;

void set_up(void);
void tear_down(void);

/* Freed by tear_down. NULL fails the test. */
ng_tensor *own(ng_tensor *x);

#endif
