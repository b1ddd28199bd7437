/* Settings, errors, threads, random numbers.
 *
 *     ng_set_threads(4);
 *     ng_rng rng = ng_rng_seeded(1);
 *     ng_tensor *noise = ng_normal_new(NG_F32, ng_shape_of(x), 0, 1, &rng);
 *     ng_tensor *sum = ng_add(tape, x, noise);
 *     if (!sum) fprintf(stderr, "%s\n", ng_error_text());
 *
 *     ng_exactly(value)            passes a computed setting that may be 0
 *     ng_failed()                  whether a failure is on record
 *     ng_error_text()              what failed first; ng_error_status() is its status
 *     ng_clear_error()             forgets it
 *     ng_fail(code, format, ...)   records a failure of your own
 *     ng_set_threads(count)        how many threads compute
 *     ng_instruction_set()         "avx2": the kernels in use
 *     ng_rng_seeded(seed)          a generator of random numbers
 *     ng_rng_uniform(&rng)         from [0, 1); ng_rng_normal, ng_rng_below, ng_rng_next
 */
#ifndef NORMGRAD_CORE_H
#define NORMGRAD_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of these headers. Until 1.0 a minor version may change the interface: each has a
 * soname of its own, and CHANGES.md says what a program must change. */
#define NG_VERSION_MAJOR 0
#define NG_VERSION_MINOR 5
#define NG_VERSION_PATCH 0

/* Begins and ends the declarations of a header; in C++ they have C linkage. system_header silences
 * -Wextra, which in C++ warns of every setting that a call leaves out. */
#ifdef __cplusplus
#pragma GCC system_header
#define NG_BEGIN_C extern "C" {
#define NG_END_C }
#else
#define NG_BEGIN_C
#define NG_END_C
#endif

/* Attributes of functions: exported by the shared library; with a printf format; the compiler warns
 * if the result is ignored. */
#if defined(__GNUC__)
#define NG_API __attribute__((visibility("default")))
#ifdef __MINGW32__
#define NG_PRINTF(text, first) __attribute__((format(gnu_printf, text, first)))
#else
#define NG_PRINTF(text, first) __attribute__((format(printf, text, first)))
#endif
#define NG_MUST_CHECK __attribute__((warn_unused_result))
#else
#define NG_API
#define NG_PRINTF(text, first)
#define NG_MUST_CHECK
#endif

/* ---- Settings -----------------------------------------------------------------------------
 *
 * Required arguments come first, in order. Settings are named, optional, and come last:
 *
 *     ng_layer_norm_new(128)      ng_layer_norm_new(128, .eps = 1e-6, .no_bias = true)
 *
 * A setting that is left out is 0, false or NULL. That is its value, unless its comment names
 * another default: then 0 selects the default. Settings of type double with another default are lr,
 * eps and betas, a norm's momentum, and factors and limits such as gain, alpha and r_max. To pass
 * zero to one of them, write NG_ZERO, or ng_exactly(value) if the value is computed. Required
 * arguments have no default. A flag that leaves something out begins with no_. In C++ settings must
 * be in the order of their struct.
 *
 * A setting without a name is a compile error, and so is a number in place of axes (.axes = 1).
 * Lists and structs in a call are written with a macro: NG_NAMES, NG_SCHEDULE, NG_AXES. */

/* The setting of a zero. */
#define NG_ZERO (-0.0)

NG_BEGIN_C

/* The value of a setting: `standard` if it is 0, else itself; NG_ZERO gives 0. */
NG_API double ng_option(double value, double standard);

/* NG_ZERO if value is 0, else value, for a setting that is computed: .eps = ng_exactly(eps) */
NG_API double ng_exactly(double value);

/* "0.5.0": the version of the linked library. NG_VERSION_MAJOR... are that of these headers. */
NG_API const char *ng_version(void);

/* ---- Errors -------------------------------------------------------------------------------
 *
 * A call that fails records why, and returns NULL, a status other than NG_OK, NaN, -1 or false. A
 * call with a NULL operand returns NULL, so a chain of calls is checked once, at its end:
 *
 *     ng_tensor *y = ng_exp(tape, ng_add(tape, a, b));
 *     if (!y) fprintf(stderr, "%s\n", ng_error_text());
 *
 * The record keeps the first failure, which is the cause, and counts the later ones. Each thread
 * has its own. If ng_failed() is false at the end of a program, nothing has failed. A program that
 * recovers from a failure clears the record.
 *
 * Nothing in the library prints, aborts or exits. A failed call changes nothing, except that in a
 * network the layers before the failing one have run (ng_forward in module.h). A NULL operand
 * without a failure on record is a failure itself: NG_ENULL, "ng_add: operand 1 is NULL". Every
 * _free takes NULL. */

/* What a call returns or records. */
typedef enum {
    NG_OK = 0,
    NG_ENOMEM, /* out of memory */
    NG_ESHAPE, /* shapes that do not fit, an axis or index out of range */
    NG_EDTYPE, /* another dtype than expected */
    NG_EVALUE, /* an argument outside its domain */
    NG_EGRAD,  /* a gradient of something that has none */
    NG_ESTATE, /* right call, wrong time: another tape, a tensor changed since it was recorded */
    NG_EIO,    /* the system refused to open, read or write */
    NG_EPARSE, /* a file's content is not what its format says */
    NG_ENULL   /* a NULL operand, and no failure on record */
} ng_status;

/* Whether a failure is on record; the number of failures since the record was cleared. */
NG_API bool ng_failed(void);
NG_API int64_t ng_failures(void);

/* The first failure: its status, and its text, which names function, values and what was expected
 * ("" if there is none). Inside a network it begins with the module's path and type: "1.1 (Linear):
 * ng_linear: ...". The text lives until the record is cleared. */
NG_API ng_status ng_error_status(void);
NG_API const char *ng_error_text(void);
NG_API void ng_clear_error(void);

/* "NG_ESHAPE", for messages and logs. */
NG_API const char *ng_status_name(ng_status status);

/* Records a failure and returns `code`. All failures of the library come through here, so it is the
 * place for a breakpoint. Call it in your own ops and modules. Text beyond 511 bytes is cut. */
NG_API ng_status ng_fail(ng_status code, const char *format, ...) NG_PRINTF(2, 3);

/* ---- Threads ------------------------------------------------------------------------------
 *
 * Large loops are shared among threads; results have the same bits for any number of them.
 * ng_set_threads sets the number, at most NG_MOST_THREADS; NG_EVALUE for others. At the start, and
 * after ng_set_threads(0), it is the environment variable OMP_NUM_THREADS, or else the number of
 * processors that the process may run on (its affinity; quotas of control groups are not read).
 * Of a list such as "4,2" the first number counts. Anything but a positive number is ignored.
 *
 * The process has one pool of threads, which the first large loop starts. On Linux they have a
 * niceness 10 above the thread that starts them, so other programs come first. Your own threads may
 * use the library at the same time: one that finds the pool in use works alone. Each needs a stack
 * of 128 KB. module.h says what several threads may do with one module.
 *
 * fork() may be called at any time. The child starts a pool of its own. It can use every network,
 * tape and tensor, except those that another thread was changing at the time of the fork. */
#define NG_MOST_THREADS 256
NG_API ng_status ng_set_threads(int count);
NG_API int ng_threads(void);

/* ---- Instruction sets ---------------------------------------------------------------------
 *
 * The library holds its kernels for several instruction sets, and uses the best ones for the
 * processor, or those that the environment variable NORMGRAD_ISA names: baseline, avx2, avx512 or
 * neon. If the processor lacks these, the first call records NG_EVALUE and the best ones are used.
 *
 * A program gives the same bits on every processor with fused multiply-add (AVX2, AVX-512, NEON),
 * with any compiler and C library, and for any number of threads. The sign of a NaN may differ. The
 * kernels "baseline", for processors without fused multiply-add, give other bits. */
NG_API const char *ng_instruction_set(void); /* of the kernels in use: "avx2" */

/* ---- Random numbers -----------------------------------------------------------------------
 *
 * The generator is xoshiro256++ (Blackman & Vigna 2019), seeded through splitmix64. It is a plain
 * value: a copy gives the same numbers again. The library has no hidden generator. */

/* A generator, made by ng_rng_seeded. */
typedef struct {
    uint64_t state[4]; /* not all zero */
} ng_rng;

NG_API ng_rng ng_rng_seeded(uint64_t seed);              /* any seed is good, 0 too */
NG_API uint64_t ng_rng_next(ng_rng *rng);                /* 64 random bits */
NG_API double ng_rng_uniform(ng_rng *rng);               /* [0, 1), 53 bits */
NG_API double ng_rng_normal(ng_rng *rng);                /* mean 0, variance 1 */
NG_API int64_t ng_rng_below(ng_rng *rng, int64_t bound); /* 0 .. bound - 1, unbiased, bound > 0 */

NG_END_C

#endif
