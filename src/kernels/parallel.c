#include "kernels/parallel.h"

#define PAST_FROM_ALONE (24 << 20)
#define PAST_FROM (32 << 20)

#ifdef _OPENMP
#include <omp.h>

bool ng_stores_past(int64_t bytes)
{
    return bytes >= PAST_FROM || (bytes >= PAST_FROM_ALONE && omp_get_max_threads() < 2);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

void ng_share_out(ng_span *span, const void *arguments, int64_t units, int64_t grain)
{
    const int64_t grains = (units + grain - 1) / grain;
    if (grains < 2 || omp_get_max_threads() < 2 || omp_in_parallel()) {
        span(arguments, 0, units);
        return;
    }
#pragma omp parallel
    {
        const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        const int64_t begin = grains * thread / threads * grain;
        const int64_t end = least(grains * (thread + 1) / threads * grain, units);
        if (begin < end) span(arguments, begin, end);
    }
}

#else

bool ng_stores_past(int64_t bytes) { return bytes >= PAST_FROM_ALONE; }

void ng_share_out(ng_span *span, const void *arguments, int64_t units, int64_t grain)
{
    (void)grain;
    span(arguments, 0, units);
}

#endif
