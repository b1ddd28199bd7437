/* Tests, assertions, and counting and refusing allocations, threads and file calls. */
#ifndef NG_TESTS_SUPPORT_H
#define NG_TESTS_SUPPORT_H

#include "cases/cases.h"
#include <check.h>
#include <math.h>
#include <normgrad.h>
#include <stdlib.h>
#include <string.h>

/* ---- Tests --------------------------------------------------------------------------------
 *
 * test_NAME.c ends with the suite NAME, which tests/main.c lists. Each of its cases has a function
 * that runs before every test and one that runs after it, or NULL:
 *
 *     Suite *dropout_suite(void)
 *     {
 *         Suite *suite = suite_create("dropout");
 *         TCase *tests = add_case(suite, set_up, tear_down);
 *         add_tests(tests, evaluation_drops_nothing, rate_0_drops_nothing);
 *         add_loops(tests, 4, each_dtype_drops_as_many);
 *         return suite;
 *     }
 *
 * Every test, in its own process or not (CK_FORK=no), begins with no error recorded, and no
 * allocation counted or refused. At its end the library's threads are stopped, all its memory must
 * have been freed, and all files closed. */
TCase *add_case(Suite *suite, void (*begin)(void), void (*end)(void));
#define add_tests(tests, ...) add_loops(tests, 1, __VA_ARGS__)
/* Each with _i = 0 .. count - 1. */
#define add_loops(tests, count, ...)                                                               \
    add_list(tests, (int)(count), (const TTest *const[]){__VA_ARGS__, NULL})
void add_list(TCase *tests, int count, const TTest *const *list);

/* A suite of one case. */
#define suite_of(name, begin, end, ...)                                                            \
    suite_with(name, begin, end, (const TTest *const[]){__VA_ARGS__, NULL})
Suite *suite_with(const char *name, void (*begin)(void), void (*end)(void),
                  const TTest *const *list);

/* ---- Processes ----------------------------------------------------------------------------
 *
 * Assertions in a child process that a test forks are not reported to Check: child and test share
 * Check's message file, and half a message of a killed child would end the whole run ("Bad message
 * type"). A failed assertion is printed on stderr, and the child exits with EXIT_FAILURE. */
void mark_asserted(const char *file, int line);
_Noreturn NG_PRINTF(4, 5) void fail_asserted(const char *file, int line, const char *what,
                                             const char *format, ...);
#define _mark_point(file, line) mark_asserted(file, line)
#define _ck_assert_failed(...) fail_asserted(__VA_ARGS__)

/* ---- Numbers ------------------------------------------------------------------------------ */

/* |actual - expected| <= relative |expected|. A NaN on either side fails. */
#define assert_close(actual, expected, relative)                                                   \
    expect_close(__FILE__, __LINE__, #actual, (double)(actual), (double)(expected), relative)

/* |actual - expected| <= absolute. */
#define assert_near(actual, expected, absolute)                                                    \
    expect_near(__FILE__, __LINE__, #actual, (double)(actual), (double)(expected), absolute)

/* Every element, row by row: assert_values(y, 1e-12, 1, 2, 3, 4). */
#define assert_values(tensor, relative, ...)                                                       \
    expect_values(__FILE__, __LINE__, #tensor, tensor, relative, (const double[]){__VA_ARGS__},    \
                  (int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))

/* The same shape, and each element within `relative` of max(|a|, |b|, max |tensor| / 1000): an
 * element that is small because large terms cancel is compared with their size. */
#define assert_tensors_close(a, b, relative)                                                       \
    expect_tensors_close(__FILE__, __LINE__, #a " and " #b, a, b, relative)

/* The same dtype, shape and bits. */
#define assert_same_bits(a, b) expect_same_bits(__FILE__, __LINE__, #a " and " #b, a, b)

/* Sets a locale with a decimal comma, if one is installed or can be made in the test's folder;
 * returns whether it did. setlocale(LC_NUMERIC, "C") ends it. */
bool write_commas(void);

/* ---- Errors ------------------------------------------------------------------------------- */

/* A pointer that is not NULL, a condition that is true, a status that is NG_OK; otherwise fails
 * with the last error's text. */
#define assert_ok(expression)                                                                      \
    expect_ok(__FILE__, __LINE__, #expression,                                                     \
              ((expression) ? 1 : 0) != _Generic((expression), ng_status : 1, default : 0))

/* The last error is of this status and its text contains `part`; it is then cleared. */
#define assert_error(status, part) expect_error(__FILE__, __LINE__, status, part)

/* The call returns NULL or the status, and the error's text contains the name of the function that
 * is called: assert_fails(ng_linear_new(0, 2), NG_EVALUE). Where it has another name, such as a
 * layer's, a further argument is a part of it. assert_refused: with NG_EVALUE. */
#define assert_fails(call, ...)                                                                    \
    expect_fails(__FILE__, __LINE__, #call, status_given(call), (failure){.status = __VA_ARGS__})
#define assert_refused(...) assert_refused_as(#__VA_ARGS__, __VA_ARGS__, NULL, )
#define assert_refused_as(text, call, part, ...)                                                   \
    expect_fails(__FILE__, __LINE__, text, status_given(call), (failure){NG_EVALUE, part})
#define status_given(call)                                                                         \
    _Generic((call), ng_status : status_returned, default : status_of_null)(call)
typedef struct {
    ng_status status;
    const char *part;
} failure;

/* ---- Memory -------------------------------------------------------------------------------
 *
 * Counts the library's allocations only, not those of Check or the C library. */

/* Freed after the test and its fixture. NULL fails the test with the last error's text. */
#define own(x)                                                                                     \
    _Generic((x), ng_training *                                                                    \
             : own_training, ng_tape *                                                             \
             : own_tape, ng_optimizer *                                                            \
             : own_optimizer, ng_module *                                                          \
             : own_module, ng_dataset *                                                            \
             : own_dataset, ng_history *                                                           \
             : own_history, ng_tensor *                                                            \
             : own_tensor)(__FILE__, __LINE__, #x, x)

int64_t allocations_made(void); /* since the test began */
int64_t allocations_live(void); /* not yet freed */
int64_t allocations_peak(void); /* most bytes at once since the last call */

/* Nothing was allocated since allocations_made() returned `made`. Under AddressSanitizer, where a
 * tape keeps no memory (core/arena.h), nothing is asserted. */
#define assert_none_allocated_since(made) expect_none_allocated(__FILE__, __LINE__, made)

/* From now on `count` more allocations succeed, then every one fails, or only the next one or two.
 * A tape that is refused a large block asks again, for a small one. */
void allocations_fail_after(int64_t count);
void allocations_fail_once_after(int64_t count);
void allocations_fail_twice_after(int64_t count);
void allocations_succeed(void);
bool allocations_refused(void); /* whether any has failed since the last call of the above */

/* After a call with refused allocations: it has failed with NG_ENOMEM if one was refused, else not.
 * Allocations succeed again. Returns `failed`, for loops that refuse each allocation in turn. */
bool out_of_memory(bool failed);

/* The allocation to refuse after the n-th, in tests that refuse each in turn: n + 1. Under
 * AddressSanitizer there are many more allocations, of which later ones are skipped. */
int64_t next_to_refuse(int64_t n);

void sleep_for(double seconds);

/* From now on the library can start `count` more threads, then none. */
void threads_fail_after(int count);

/* ---- Files --------------------------------------------------------------------------------
 *
 * Of the calls of open, read, write, fsync, rename and close `count` more succeed, then one fails
 * with `error`, then all succeed. */
void file_calls_fail_once_after(int64_t count, int error);
bool file_call_refused(void); /* whether one has failed since the last call of the above */
void file_calls_succeed(void);

/* From now on every other read and write is interrupted by a signal, and the others transfer at
 * most seven bytes. */
void file_calls_come_in_pieces(void);

/* ---- Functions behind the macros ---------------------------------------------------------- */

void expect_close(const char *file, int line, const char *what, double actual, double expected,
                  double relative);
void expect_near(const char *file, int line, const char *what, double actual, double expected,
                 double absolute);
void expect_values(const char *file, int line, const char *what, const ng_tensor *x,
                   double relative, const double *expected, int64_t count);
void expect_tensors_close(const char *file, int line, const char *what, const ng_tensor *a,
                          const ng_tensor *b, double relative);
void expect_same_bits(const char *file, int line, const char *what, const ng_tensor *a,
                      const ng_tensor *b);
void expect_ok(const char *file, int line, const char *what, bool ok);
void expect_error(const char *file, int line, ng_status status, const char *part);
void expect_fails(const char *file, int line, const char *what, ng_status returned,
                  failure expected);
ng_status status_returned(ng_status status);
ng_status status_of_null(const void *result); /* the last error's, or NG_OK where there is one */
void expect_none_allocated(const char *file, int line, int64_t made);
ng_training *own_training(const char *file, int line, const char *what, ng_training *x);
ng_tape *own_tape(const char *file, int line, const char *what, ng_tape *x);
ng_optimizer *own_optimizer(const char *file, int line, const char *what, ng_optimizer *x);
ng_module *own_module(const char *file, int line, const char *what, ng_module *x);
ng_dataset *own_dataset(const char *file, int line, const char *what, ng_dataset *x);
ng_history *own_history(const char *file, int line, const char *what, ng_history *x);
ng_tensor *own_tensor(const char *file, int line, const char *what, ng_tensor *x);

#endif
