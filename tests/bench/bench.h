/* The driver's parts: engines as child processes, cases, measured times, tables. */
#ifndef NG_BENCH_BENCH_H
#define NG_BENCH_BENCH_H

#include "engine.h"
#include <stdio.h>
#include <sys/types.h>

enum { MOST_CASES = 160, MOST_THREADS = 4, MOST_ROUNDS = 32 };

typedef enum { NORMGRAD, ROOF, PYTORCH, COMPILED, ONEDNN, KANN, ENGINES } bench_engine;

/* As in the results, "normgrad", "roof", "pytorch", "compiled", "onednn", "kann"; and in print. */
extern const char *const bench_engine_name[ENGINES], *const bench_engine_title[ENGINES];

/* ---- child.c: one engine with one number of threads ---------------------------------------- */

typedef struct {
    pid_t pid; /* 0: there is none */
    FILE *to, *from;
    char name[160]; /* as it calls itself */
} bench_child;

/* Starts it; false if it cannot be had, with the reason in its name. */
bool child_start(bench_child *child, bench_engine engine, int threads);

/* Sends a line, and returns the answer without its end, or "" from a child that is gone, which is
 * then no longer asked. */
const char *child_ask(bench_child *child, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void child_stop(bench_child *child);

/* ---- What was measured --------------------------------------------------------------------- */

typedef struct {
    bool quick;
    int rounds, least;   /* least: runs in a round */
    double milliseconds; /* of a burst */
    double patience;     /* seconds after which a case has no further round */
    int n_threads, threads[MOST_THREADS];
    const char *group;          /* NULL: all */
    const char *output, *plots; /* folders; plots may be NULL */
} bench_options;

typedef struct {
    bench_options options;
    char engine[ENGINES][160]; /* what it calls itself, "" where it is missing */
    int n_cases;
    bench_case cases[MOST_CASES];
    double median[MOST_CASES][ENGINES][MOST_THREADS]; /* microseconds, 0 where not measured */
} bench_results;

/* The least over the numbers of threads; 0 if there is none. */
double bench_best(const bench_results *results, int which, bench_engine engine);

/* Whether an engine is another library, which a row can be behind. */
static inline bool bench_is_peer(int engine) { return engine >= PYTORCH; }

/* ---- report.c ------------------------------------------------------------------------------ */

void report_head(const bench_results *results);
void report_case(const bench_results *results, int which); /* before a group's first, its head */
bool report_write(const bench_results *results);           /* results.tsv, bench_*.dat */
void report_standing(const bench_results *results);        /* one line: the rows behind a peer */

#endif
