/* Which table serves this processor. */
#include "kernels/parallel.h"
#include "kernels/tables.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && has_avx2();
}
#else
static bool has_avx2(void) { return false; }
static bool has_avx512(void) { return false; }
#endif

static bool always(void) { return true; }

/* The best comes first. */
static const struct {
    const char *isa;
    bool (*supported)(void);
    const ng_kernels *const *tables;
} choices[] = {
    {"avx512", has_avx512, ng_tables_avx512},
    {"avx2", has_avx2, ng_tables_avx2},
    {"baseline", always, ng_tables_baseline},
};
enum { CHOICES = sizeof choices / sizeof choices[0] };

const ng_kernels *ng_kernels_of(const char *isa, ng_dtype dtype)
{
    if (dtype != NG_F32 && dtype != NG_F64) return NULL;
    for (int i = 0; i < CHOICES; i++)
        if (!strcmp(isa, choices[i].isa))
            return choices[i].supported() ? choices[i].tables[dtype] : NULL;
    return NULL;
}

static const ng_kernels *select_table(ng_dtype dtype)
{
    const char *wanted = getenv("NORMGRAD_ISA");
    const ng_kernels *table = wanted ? ng_kernels_of(wanted, dtype) : NULL;
    for (int i = 0; i < CHOICES && !table; i++) table = ng_kernels_of(choices[i].isa, dtype);
    return table;
}

/* Threads that race here choose the same table. */
const ng_kernels *ng_kernels_for(ng_dtype dtype)
{
    static _Atomic(const ng_kernels *) selected[2];
    if (dtype != NG_F32 && dtype != NG_F64) return NULL;
    const ng_kernels *table = atomic_load_explicit(&selected[dtype], memory_order_acquire);
    if (!table) {
        table = select_table(dtype);
        atomic_store_explicit(&selected[dtype], table, memory_order_release);
    }
    return table;
}

int64_t ng_row_norm_scratch(const ng_row_norm_shape *shape)
{
    return 2 * shape->n * ng_block_count(shape->rows, ng_norm_block_rows(shape->rows));
}
