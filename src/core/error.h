/* What the rooms know of the error record beyond core.h. */
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

/* The status of the thread's newest failure, which need not be the recorded one: what a function
 * returns when a call of its own has failed. */
ng_status ng_newest_status(void);

/* Records NG_ENULL, "ng_item: x is NULL", unless a failure is on record: that one explains it. */
void ng_note_null(const char *function, const char *operand);

/* Whether a pointer was given to a public function; a NULL is noted. */
static inline bool ng_given(const char *function, const char *operand, const void *pointer)
{
    if (!pointer) ng_note_null(function, operand);
    return pointer != NULL;
}

/* Whether a setting was given, be it as NG_ZERO. */
bool ng_option_given(double value);

/* Whether an option that has no effect here was left alone; else an error such as "ng_sum:
 * .unbiased is set, which counts in ng_variance only". */
bool ng_option_idle(const char *function, const char *option, bool given, const char *where);

/* Puts "path (Type): " before the recorded text, once. */
void ng_locate_error(const char *path, const char *type);

/* Adds to the end of the recorded text of an error that no module has located yet. */
void ng_explain_error(const char *format, ...) NG_PRINTF(1, 2);

/* Takes the record away, so that what fails from here on is told apart; ng_error_put_back makes it
 * the record again, to which the failures since are counted. An empty one gives way to them. */
ng_error_record ng_error_put_aside(void);
void ng_error_put_back(const ng_error_record *earlier);

#endif
