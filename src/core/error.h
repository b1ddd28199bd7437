#ifndef NG_CORE_ERROR_H
#define NG_CORE_ERROR_H

#include <normgrad/core.h>

/* How many errors this thread has recorded: tells whether a call made in between has failed. */
uint64_t ng_error_count(void);

/* What a status function returns that was given NULL. */
static inline ng_status ng_status_of_null(void)
{
    return ng_failed() ? ng_last_status() : NG_ENULL;
}

#endif
