#include <normgrad/core.h>
#ifdef _OPENMP
#include <omp.h>
#endif

void ng_set_threads(int count)
{
#ifdef _OPENMP
    omp_set_num_threads(count > 0 ? count : omp_get_num_procs());
#else
    (void)count;
#endif
}

int ng_threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}
