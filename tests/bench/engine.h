/* What an engine of the benchmark is: a child process of bench.py that times one case when it is
 * asked to.
 *
 * It reads a line and answers with a line, until its input ends:
 *
 *     (at the start)                          ready NAME AND VERSION, or: no REASON
 *     open norm_forward layer_norm 32x64      ok, or: no (the engine does not have it)
 *     time 30 3                               median microseconds of runs during 30 ms, at least 3
 *     close                                   ok
 *
 * Only the engine that was asked works; the others wait in a read. OMP_NUM_THREADS says with how
 * many threads. */
#ifndef NG_BENCH_ENGINE_H
#define NG_BENCH_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_LAYERS = 80, BENCH_VOCABULARY = 96 };

/* bench.py lists the cases. Their shapes:
 *     4096x768            rows and columns
 *     32x128x64           rows and columns of a product, and what it sums over
 *     64x16x14>32         of "conv5/2", kernel 5 and stride 2, and of "depthwise3/1": batch,
 *                         channels and side of the images, channels of the result
 *     64-128*3-10@32      widths of a network, 128 three times, and its batch
 *     8x128               of "transformer-4x128", a language model of 4 layers of width 128: rows
 *                         of characters
 *     64x50               of "lstm-64", an LSTM of 64 features that names the largest of 64 classes
 *                         after each vector: rows of vectors
 *     64x28               of "cnn", two convolutions for MNIST: batch and side of the images */
typedef struct {
    char group[24], name[32], shape[48];
    bool back;
    int64_t rows, columns, depth;
    int64_t out, kernel, stride, padding, side, groups; /* of a convolution; side of its result */
    int64_t batch, width[BENCH_LAYERS];
    int widths;
    int64_t layers, dim, hidden;
} bench_case;

/* An opened case. */
typedef struct {
    void *state;
    void (*before)(void *state); /* before each run, untimed; or NULL */
    void (*run)(void *state);
    void (*close)(void *state);
    void (*choose)(void *state,
                   int variant); /* of several variants, whose fastest counts; or NULL */
    int variants;
} bench_job;

/* Fills in the job, which is zero, or returns false. */
typedef bool bench_open(const bench_case *what, bench_job *job);

/* Zeroed memory of whole huge pages, where the system has them. NULL if there is none. */
void *bench_buffer(int64_t bytes);

/* Answers standard input on standard output; the exit status. */
int bench_serve(const char *name, bench_open *open);

/* The product C = A B of rows x columns x depth, "AB", "AB^T" or "A^TB": the kernel alone. */
bool bench_open_product(const bench_case *what, bench_job *job);
bool bench_turns(const bench_case *what, char operand);

bool bench_open_roof(const bench_case *what, bench_job *job);

#endif
