/* The error record, beyond what core.h declares. */
#ifndef NG_CORE_ERROR_H
#define NG_CORE_ERROR_H

#include <normgrad/core.h>

enum { NG_ERROR_BYTES = 512 };

/* The thread's record: the first failure since it was cleared, and how many there were. */
typedef struct {
    ng_status status;
    int64_t failures;
    bool located; /* the text begins with a module's path */
    char text[NG_ERROR_BYTES];
} ng_error_record;

/* The status of the thread's newest failure, which may not be the recorded one. A function returns
 * it when a function that it called has failed. */
ng_status ng_newest_status(void);

/* The guard of every call of a function of the user's, which may fail without ng_fail. `before` is
 * ng_failures_ever() from before the call. If the call has left no failure on record, this records
 * one. Returns the status of the call's newest failure. */
ng_status ng_fail_unrecorded(int64_t before, ng_status code, const char *format, ...)
    NG_PRINTF(3, 4);

/* Counts the thread's failures; nothing resets it. */
int64_t ng_failures_ever(void);

/* Records NG_ENULL, "ng_item: x is NULL", unless a failure is on record: it explains the NULL. */
void ng_note_null(const char *function, const char *operand);

/* Whether a pointer is not NULL; else notes it. */
static inline bool ng_given(const char *function, const char *operand, const void *pointer)
{
    if (!pointer) ng_note_null(function, operand);
    return pointer != NULL;
}

/* Puts "path (Type): " before the recorded text, once; what is too long is cut at the end. */
void ng_locate_error(const char *path, const char *type);

/* Takes the record away and leaves an empty one. ng_error_restore puts it back, and counts the
 * failures since; if it was empty, the newer record stays. */
ng_error_record ng_error_take(void);
void ng_error_restore(const ng_error_record *earlier);

/* ---- Settings (option.c) -------------------------------------------------------------------- */

/* Whether a setting was given; NG_ZERO counts as given. */
bool ng_option_given(double value);

/* Whether a setting that has no effect here was not given; else an error such as "ng_sum: .unbiased
 * is set, but is used in ng_variance only". */
bool ng_option_idle(const char *function, const char *option, bool given, const char *where);

/* Whether at most one of two settings was given. */
bool ng_option_apart(const char *function, const char *one, bool has_one, const char *other,
                     bool has_other);

/* The largest count: small multiples of it are no overflow, and no memory holds as much. */
#define NG_OPTION_MOST (INT64_C(1) << 48)

/* Whether a setting is a positive count; else "ng_linear_new: in is 0, expected a positive number
 * of features". */
bool ng_option_positive(const char *function, const char *option, int64_t value, const char *what);

/* The fraction of n, rounded down. A product that lost something to rounding counts as whole: 0.29
 * of 100 is 29. */
int64_t ng_fraction_of(double fraction, int64_t n);

/* Whether a setting is finite and low <= value < below; else "ng_dropout: p is 1, expected 0 <= p <
 * 1". No limit is -HUGE_VAL or HUGE_VAL. */
bool ng_option_range(const char *function, const char *option, double value, double low,
                     double below);

/* Whether a setting is finite and above 0. */
bool ng_above_zero(const char *function, const char *option, double value);

#endif
