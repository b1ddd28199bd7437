/* A link of groups between threads, which stand for processes. Messages pass in memory. */
#ifndef NG_TESTS_WIRE_H
#define NG_TESTS_WIRE_H

#include <normgrad.h>

/* Runs `process` as each of `count` processes and waits for all. status[i] is what process i has
 * returned, text[i] the first failure on its record. */
typedef ng_status wire_process(const ng_group_link *link, void *with);
enum { WIRE_MOST = 32, WIRE_TEXT = 512 };
typedef struct {
    ng_status status[WIRE_MOST];
    char text[WIRE_MOST][WIRE_TEXT];
    int left; /* messages that nobody has taken */
} wire_outcome;
wire_outcome wire_run(int count, wire_process *process, void *with);

/* The same with a group of `members` over these processes. Each runs the program. */
wire_outcome wire_run_members(int count, int members, ng_group_program *program, void *with);

/* The same on two processes with each allocation refused in turn. Both processes must have the same
 * outcome, no message may be left, and all memory must be freed. */
void wire_refuse_each(int members, ng_group_program *program);

#endif
