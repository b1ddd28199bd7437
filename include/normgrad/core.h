/* What everything stands on: version, errors, threads, random numbers. */
#ifndef NORMGRAD_CORE_H
#define NORMGRAD_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of these headers; README.md says what each number promises. */
#define NG_VERSION_MAJOR 0
#define NG_VERSION_MINOR 3
#define NG_VERSION_PATCH 0

/* In C++ a header's functions are C's, and what macros write here is no concern of -Wextra, which
 * would name every setting that is left out. */
#ifdef __cplusplus
#pragma GCC system_header
#define NG_BEGIN_C extern "C" {
#define NG_END_C }
#else
#define NG_BEGIN_C
#define NG_END_C
#endif

/* What the shared library exports; a function that takes a format of printf's. */
#if defined(__GNUC__)
#define NG_API __attribute__((visibility("default")))
#define NG_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define NG_MUST_CHECK __attribute__((warn_unused_result))
#else
#define NG_API
#define NG_PRINTF(text, first)
#define NG_MUST_CHECK
#endif

/* ---- Options ------------------------------------------------------------------------------
 *
 * What a call cannot do without are its arguments, in order; settings are named and come last:
 *
 *     ng_layer_norm_new(128)      ng_layer_norm_new(128, .eps = 1e-6, .no_bias = true)
 *
 * A setting that is left out, or 0, has its default; NG_ZERO is a 0 that is meant (its sign, which
 * no arithmetic shows, tells it from 0), for settings that are a double: a whole number has no such
 * sign, and its 0 is always the default. An argument is taken as it is. In C++ the settings stand
 * in the order of their struct.
 *
 * NG_NAMED writes the struct of settings, whose last member takes the last argument: a value
 * without a name then has no place to go, which compilers object to without being asked.
 * NG_NAMED_TWO is the same for the last two. */
#define NG_ZERO (-0.0)
#ifdef __cplusplus
#define NG_NAMED(type, member, ...) NG_NAMED_LAST(type, member, __VA_ARGS__, )
#define NG_NAMED_LAST(type, member, first, ...)                                                    \
    (NG_EACH_NAMED(#__VA_ARGS__), __extension__ type{__VA_ARGS__.member = first})
#define NG_NAMED_TWO(type, before, value, member, ...)                                             \
    NG_NAMED_TWO_LAST(type, before, value, member, __VA_ARGS__, )
#define NG_NAMED_TWO_LAST(type, before, value, member, first, ...)                                 \
    (NG_EACH_NAMED(#__VA_ARGS__), __extension__ type{__VA_ARGS__.before = value, .member = first})
#define NG_EACH_NAMED(text) (void)sizeof(char[text[0] == '.' || text[0] == '\0' ? 1 : -1])
#else
#define NG_NAMED(type, member, ...) ((type){.member = __VA_ARGS__})
#define NG_NAMED_TWO(type, before, value, member, ...)                                             \
    ((type){.before = (value), .member = __VA_ARGS__})
#endif

NG_BEGIN_C

/* What a setting says: the standard value where it is 0, else itself (NG_ZERO included). */
NG_API double ng_option(double value, double standard);

/* value as a setting that is meant, whatever it is: NG_ZERO where it is 0. For what is computed:
 *     .eps = ng_exactly(eps) */
NG_API double ng_exactly(double value);

/* "0.3.0", of the library that was linked (the macros are those it was compiled with). */
NG_API const char *ng_version(void);

/* ---- Errors -------------------------------------------------------------------------------
 *
 * A call that fails returns NULL (or NaN, -1, false, or a status other than NG_OK) and records
 * why. A call that is given NULL passes NULL on, so a chain of calls is checked once, at its end:
 *
 *     ng_tensor *y = ng_exp(tape, ng_add(tape, a, b));
 *     if (!y) fprintf(stderr, "%s\n", ng_error_text());
 *
 * The record belongs to the calling thread. It keeps the first failure since it was cleared, which
 * is the cause, and counts those that follow from it. A NULL that no failure on record explains is
 * itself one: NG_ENULL, "ng_add: operand 1 is NULL". So a program that ends with ng_failed() false
 * has done what it says; one that recovers from a failure clears the record. A failed call leaves
 * everything as it was, but for what the layers of a network have done before the one that fails
 * (ng_forward in nn.h). Nothing in the library prints, aborts or exits; every _free takes NULL.
 * Where going on would only mislead (save, load, backward, step) the compiler warns of a status
 * that is not looked at.
 */
typedef enum {
    NG_OK = 0,
    NG_ENOMEM, /* out of memory */
    NG_ESHAPE, /* shapes that do not go together, an axis or index out of range */
    NG_EDTYPE, /* a dtype that is not the one expected */
    NG_EVALUE, /* an argument outside its domain */
    NG_EGRAD,  /* a gradient was asked of something that has none */
    NG_ESTATE, /* right call, wrong time: another tape, a tensor changed since it was recorded */
    NG_EIO,    /* the system refused to open, read or write */
    NG_EPARSE, /* a file's content is not what its format says */
    NG_ENULL   /* NULL came in and no failure on record explains it */
} ng_status;

/* Whether a failure is on record, and how many there were since the record was cleared. */
NG_API bool ng_failed(void);
NG_API int64_t ng_failures(void);

/* The first of them: its status, and its text, which names function, values and what was expected
 * ("" where there is none). One inside a network begins with the module's path and type:
 * "1.1 (Linear): ng_linear: ...". The text lives until the record is cleared. */
NG_API ng_status ng_error_status(void);
NG_API const char *ng_error_text(void);
NG_API void ng_clear_error(void);

/* "NG_ESHAPE", for messages and logs. */
NG_API const char *ng_status_name(ng_status status);

/* Records a failure and returns `code`. All failures come through here, the later ones too: the one
 * place for a breakpoint. Your own ops and modules call it too. Text beyond 511 bytes is cut. */
NG_API ng_status ng_fail(ng_status code, const char *format, ...) NG_PRINTF(2, 3);

/* ---- Threads ------------------------------------------------------------------------------
 *
 * Kernels share large loops among threads; results have the same bits for any number of threads.
 * The number is what ng_set_threads says (at most NG_MOST_THREADS); after ng_set_threads(0), and at
 * the start, it is OMP_NUM_THREADS, or else the number of processors that the process may run on
 * (its affinity, as taskset sets it; quotas of control groups are not read).
 *
 * The process has one pool of threads. It is started by the first loop that takes one thread longer
 * than waking another would: small networks never start it. Where the system gives fewer threads
 * the pool has fewer. It is ended by ng_set_threads, at the end of the process, and when the
 * library is unloaded. On Linux its threads are 10 nicer than the one that starts them, so that
 * they take what other programs leave. Threads of your own may train networks of their own at once,
 * and call ng_set_threads: a thread that finds the pool in use works alone. A thread that calls the
 * library needs a stack of 128 KB.
 *
 * fork() may be called at any time. The child has the one thread that called it, starts a pool of
 * its own, and may go on with every network, tape and tensor of its copy, but for those that
 * another thread was changing at that moment: no one finishes what that thread had begun. What a
 * module allows several threads is said in nn.h.
 */
#define NG_MOST_THREADS 256
NG_API void ng_set_threads(int count);
NG_API int ng_threads(void);

/* ---- Instruction sets ---------------------------------------------------------------------
 *
 * Kernels are compiled for several instruction sets; the best that the processor has is chosen when
 * the first is wanted, or the one that the environment variable NORMGRAD_ISA names then (baseline,
 * avx2, avx512 or neon). If that cannot be had, the call records NG_EVALUE, and the best is used.
 * Results have the same bits for any number of threads; another instruction set gives other bits.
 */
NG_API const char *ng_instruction_set(void); /* of the kernels in use: "avx2" */

/* ---- Random numbers -----------------------------------------------------------------------
 *
 * xoshiro256++ (Blackman & Vigna 2019), seeded through splitmix64. A generator is a plain value:
 * copy it to replay a stream. There is no hidden generator anywhere.
 */
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
