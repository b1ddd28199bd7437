/* Processes that are threads of one: a link of groups that passes messages in memory. */
#ifndef NG_TESTS_WIRE_H
#define NG_TESTS_WIRE_H

#include <normgrad.h>

/* Runs `process` as each of `count` processes and waits for all. What each has returned, or the
 * first failure on its record, is in status[i] and text[i]. */
typedef ng_status wire_process(const ng_group_link *link, void *with);
enum { WIRE_MOST = 32, WIRE_TEXT = 512 };
typedef struct {
    ng_status status[WIRE_MOST];
    char text[WIRE_MOST][WIRE_TEXT];
    int left; /* messages that nobody has taken */
} wire_outcome;
wire_outcome wire_run(int count, wire_process *process, void *with);

/* The same with a group of `members` over these processes, and a program for each. */
wire_outcome wire_run_members(int count, int members, ng_group_program *program, void *with);

/* The same on two processes, with each allocation refused in turn: all have the same outcome, no
 * message is left, and all memory is given back. */
void wire_refuse_each(int members, ng_group_program *program);

#endif
