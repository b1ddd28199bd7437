/* Which table serves this processor. */
#include "kernels/parallel.h"
#include "kernels/tables.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Not every build has them all. */
#define NG_ASKED __attribute__((unused)) static bool

#if defined(__x86_64__)
NG_ASKED has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

NG_ASKED has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && has_avx2();
}
#elif defined(__aarch64__)
NG_ASKED has_neon(void) { return true; } /* which has it always */
#endif

NG_ASKED has_baseline(void) { return true; }

/* The best comes first. */
static const struct {
    const char *isa;
    bool (*supported)(void);
    const ng_kernels *table[2]; /* by dtype */
} choices[] = {
#define X(isa) {#isa, has_##isa, {&ng_table_##isa##_float, &ng_table_##isa##_double}},
    NG_ISAS(X)
#undef X
};
enum { CHOICES = sizeof choices / sizeof choices[0] };

const char *ng_isa_name(int i) { return i >= 0 && i < CHOICES ? choices[i].isa : NULL; }

const ng_kernels *ng_kernels_of(const char *isa, ng_dtype dtype)
{
    if (dtype != NG_F32 && dtype != NG_F64) return NULL;
    for (int i = 0; i < CHOICES; i++)
        if (!strcmp(isa, choices[i].isa))
            return choices[i].supported() ? choices[i].table[dtype] : NULL;
    return NULL;
}

/* The first kernel is asked for in the middle of some op, which is then done by the best there is;
 * the program finds the error at its next check. */
static void refuse_isa(const char *wanted)
{
    char names[64] = "";
    for (int i = 0; i < CHOICES; i++) {
        if (!choices[i].supported()) continue;
        if (*names) strcat(names, ", ");
        strcat(names, choices[i].isa);
    }
    ng_fail(NG_EVALUE, "NORMGRAD_ISA is \"%s\": this build on this processor has %s", wanted,
            names);
}

static const ng_kernels *select_table(ng_dtype dtype)
{
    const char *wanted = getenv("NORMGRAD_ISA");
    const ng_kernels *table = wanted && *wanted ? ng_kernels_of(wanted, dtype) : NULL;
    if (wanted && *wanted && !table) refuse_isa(wanted);
    for (int i = 0; i < CHOICES && !table; i++) table = ng_kernels_of(choices[i].isa, dtype);
    return table;
}

static _Atomic(const ng_kernels *) selected[2];

/* Threads that race here choose the same table. */
static __attribute__((noinline)) const ng_kernels *select_first(ng_dtype dtype)
{
    const ng_kernels *table = select_table(dtype);
    atomic_store_explicit(&selected[dtype], table, memory_order_release);
    return table;
}

const ng_kernels *ng_kernels_for(ng_dtype dtype)
{
    if (dtype != NG_F32 && dtype != NG_F64) return NULL;
    const ng_kernels *table = atomic_load_explicit(&selected[dtype], memory_order_acquire);
    return table ? table : select_first(dtype);
}

const char *ng_instruction_set(void) { return ng_kernels_for(NG_F32)->isa; }
