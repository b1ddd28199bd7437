/* The driver's parts: engines as child processes, cases, measured times, tables. */
#ifndef NG_BENCH_BENCH_H
#define NG_BENCH_BENCH_H

#include "engine.h"
#include <stdio.h>
#include <sys/types.h>

enum { MOST_CASES = 160, MOST_THREADS = 4, MOST_ROUNDS = 32 };

typedef enum { NORMGRAD, KERNEL, ROOF, PYTORCH, PYTORCH_PLAIN, ONEDNN, ENGINES } bench_engine;

/* As in the results: "normgrad", "kernel", "roof", "pytorch", "pytorch_plain", "onednn". */
extern const char *const bench_engine_name[ENGINES];

/* ---- child.c: one engine with one number of threads ---------------------------------------- */

typedef struct {
    pid_t pid; /* 0: there is none */
    FILE *to, *from;
    char name[96]; /* as it calls itself */
} bench_child;

/* Starts it; false if it cannot be had. */
bool child_start(bench_child *child, bench_engine engine, int threads);

/* Sends a line, and returns the answer without its end, or "" from a child that is gone, which is
 * then no longer asked. */
const char *child_ask(bench_child *child, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void child_stop(bench_child *child);

/* Has all of them time at once; the mean of their answers, 0 if one is gone. */
double child_time_together(bench_child *children, int64_t count, double milliseconds, int least);

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
    char engine[ENGINES][96]; /* what it calls itself, "" where it is missing */
    int n_cases;
    bench_case cases[MOST_CASES];
    double median[MOST_CASES][ENGINES][MOST_THREADS]; /* microseconds, 0 where not measured */
} bench_results;

/* The least over the numbers of threads; 0 if there is none. */
double bench_best(const bench_results *results, int which, bench_engine engine);

/* ---- report.c ------------------------------------------------------------------------------ */

void report_head(const bench_results *results);
void report_case(const bench_results *results, int which); /* before a group's first, its head */
bool report_write(const bench_results *results);           /* results.tsv, bench_*.dat */
void report_standing(const bench_results *results);        /* one line: the rows behind a peer */

#endif
