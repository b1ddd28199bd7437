/* What the tests of groups share: ranks on threads, and assertions in and about them. */
#ifndef NG_TESTS_RANKS_H
#define NG_TESTS_RANKS_H

#include "support/support.h"

/* In a rank a wrong result is a failure on its record. Only the test's own thread asserts. */
#define expect(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) ng_fail(NG_EVALUE, "line %d: not so: " #condition, __LINE__);            \
    } while (0)

/* What each rank's record says when its program returns. */
enum { MOST_RANKS = 32 };
typedef struct {
    ng_group_program *program;
    void *with;
    bool ran[MOST_RANKS];
    ng_status status[MOST_RANKS];
    char text[MOST_RANKS][512];
} ranks_run;

static inline ng_status noting_program(ng_group *group, void *with)
{
    ranks_run *run = with;
    const int rank = ng_group_rank(group);
    const ng_status status = run->program(group, run->with);
    run->ran[rank] = true;
    run->status[rank] = status ? status : ng_error_status();
    snprintf(run->text[rank], sizeof run->text[rank], "%s", ng_error_text());
    return status;
}

static inline void assert_ranks_well(int ranks, ng_group_program *program, void *with)
{
    ck_assert_msg(ng_group_run(program, with, ranks) == NG_OK, "%s", ng_error_text());
}

/* Each rank fails with a status, or with any one if it is NG_OK, and with an error that contains
 * these words. */
static inline void assert_ranks_fail(int ranks, ng_group_program *program, void *with,
                                     ng_status status, const char *words)
{
    ranks_run run = {.program = program, .with = with};
    ck_assert_int_ne(ng_group_run(noting_program, &run, ranks), NG_OK);
    ng_clear_error();
    for (int r = 0; r < ranks; r++)
        ck_assert_msg(run.status[r] != NG_OK && (!status || run.status[r] == status) &&
                          strstr(run.text[r], words),
                      "rank %d of %d: %s, %s", r, ranks, ng_status_name(run.status[r]),
                      run.text[r]);
}

/* Refuses each allocation in turn: the run fails or not, nobody waits for ever, and all memory is
 * freed. The program ends with a call of the group, so that all ranks know of a failure. */
static inline void refuse_each(int ranks, ng_group_program *program)
{
    bool refused = true;
    for (int64_t n = 0; refused; n = next_to_refuse(n)) {
        const int64_t live = allocations_live();
        ranks_run run = {.program = program};
        allocations_fail_once_after(n);
        const ng_status status = ng_group_run(noting_program, &run, ranks);
        refused = allocations_refused();
        allocations_succeed();
        ck_assert_int_eq(allocations_live(), live);
        ck_assert_msg(status == NG_OK || status == NG_ENOMEM, "%s", ng_error_text());
        for (int r = 0; r < ranks; r++)
            if (run.ran[r]) ck_assert_int_eq(run.status[r], status);
        ng_clear_error();
    }
}

#endif
