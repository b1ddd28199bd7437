/* What an engine of the benchmark is: a child process that times one case when it is asked to.
 *
 * It reads a line and answers with a line, until its input ends:
 *
 *     (at the start)                          ready NAME AND VERSION, or: no REASON
 *     open norm_forward layer_norm 32x64      ok, or: no (the engine does not have it)
 *     time 30 3                               median microseconds of runs during 30 ms, at least 3
 *     close                                   ok
 *
 * Only the engine that was asked works; the others wait in a read. OMP_NUM_THREADS says with how
 * many threads.
 */
#ifndef NG_BENCH_ENGINE_H
#define NG_BENCH_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_LAYERS = 80, BENCH_VOCABULARY = 96 };

/* A shape is "4096x768", rows and columns; "32x128x64", those of a product and what it sums over;
 * or "64-128*3-10@32", a network's widths (128 three times) and its batch. The case
 * "transformer-4x128" is a language model of 4 layers of width 128 that reads rows of so many
 * characters; "lstm-64" is an LSTM of 64 features that reads rows of so many vectors of 64 numbers,
 * and tells the largest of as many classes after each. */
typedef struct {
    char group[24], name[32], shape[48];
    int64_t rows, columns, depth;
    int64_t batch, width[BENCH_LAYERS];
    int widths;
    int64_t layers, dim; /* of a transformer */
    int64_t hidden;      /* of an LSTM */
} bench_case;

/* An opened case. A run's time is divided by `per`. Of several variants the fastest counts; where
 * there is a bound besides, the slower of that and of the run. */
typedef struct {
    void *state;
    void (*before)(void *state); /* before each run, untimed; or NULL */
    void (*run)(void *state, int variant);
    void (*bound)(void *state, int variant); /* or NULL */
    void (*close)(void *state);
    double per;
    int variants;
} bench_job;

/* Fills in the job (zeroed, per = variants = 1), or returns false. */
typedef bool bench_open(const bench_case *what, bench_job *job);

/* Fills in what shape and name say; false if it is neither kind. */
bool bench_parse_shape(bench_case *what);

/* Multiplications and additions of the matrix products of one training step. */
double bench_step_flops(const bench_case *what);

/* Zeroed memory of whole huge pages, where the system has them. NULL if there is none. */
void *bench_buffer(int64_t bytes);

double bench_now(void);
double bench_median(double *values, int count); /* sorts them */

/* Answers standard input on standard output; the exit status. */
int bench_serve(const char *name, bench_open *open);

/* The product C = A B of rows x columns x depth, A and B turned or not: the kernel alone. */
bool bench_open_product(const bench_case *what, bool turns_a, bool turns_b, bench_job *job);

int bench_normgrad(void);
int bench_roof(void);

#endif
