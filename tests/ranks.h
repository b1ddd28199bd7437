/* What the tests of groups share: assertions inside a rank, and about all processes. */
#ifndef NG_TESTS_RANKS_H
#define NG_TESTS_RANKS_H

#include "support.h"
#include "wire.h"

/* In a rank a wrong result is a failure on its record. Only the test's own thread asserts. */
#define expect(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) ng_fail(NG_EVALUE, "line %d: not so: " #condition, __LINE__);            \
    } while (0)

static inline void assert_all_well(const wire_outcome *o, int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_msg(o->status[i] == NG_OK && !o->text[i][0], "process %d of %d: %s", i, count,
                      o->text[i]);
    ck_assert_int_eq(o->left, 0);
}

/* Every process has failed, with an error that contains these words. */
static inline void assert_all_failed(const wire_outcome *o, int count, const char *words)
{
    for (int i = 0; i < count; i++)
        ck_assert_msg(o->status[i] != NG_OK && strstr(o->text[i], words), "process %d: %d, %s", i,
                      (int)o->status[i], o->text[i]);
    ck_assert_int_eq(o->left, 0);
}

#endif
