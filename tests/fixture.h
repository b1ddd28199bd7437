/* A tape, and leaves that live as long as a test, for tests after FIXTURE(set_up, tear_down). */
#ifndef NG_TESTS_FIXTURE_H
#define NG_TESTS_FIXTURE_H

#include <check.h>
#include <normgrad.h>

extern ng_tape *tape;

void set_up(void);
void tear_down(void);

/* Freed by tear_down. NULL fails the test. */
ng_tensor *own(ng_tensor *x);

#endif
