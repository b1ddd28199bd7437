/* Shared by the MPI programs: their ranks, and a mean over ranks. */
#ifndef EXAMPLES_MPI_WORLD_H
#define EXAMPLES_MPI_WORLD_H

#include <normgrad/mpi.h>

enum { MOST_MEMBERS = 64 };

/* Runs a program on all processes of MPI, or on so many threads of this one if `threads` is not 0.
 * The results are the same to the bit for the same number of ranks. */
static inline ng_status world_run(ng_group_program *program, void *with, int threads)
{
    ng_set_threads(1);
    if (threads > 0) return ng_group_run(program, with, threads);
    ng_group *world = ng_mpi_begin(NULL, NULL) ? NULL : ng_mpi_group_new(MPI_COMM_WORLD);
    const ng_status status = world ? program(world, with) : ng_error_status();
    ng_group_free(world);
    MPI_Finalize();
    return status;
}

/* Returns the mean over all ranks, the same bits on each. NaN if a rank has failed. */
static inline double members_mean(ng_group *group, double mine)
{
    double all[MOST_MEMBERS] = {0}, sum = 0;
    if (ng_group_gather(group, &mine, 1, all)) return ng_item(NULL);
    for (int r = 0; r < ng_group_size(group); r++) sum += all[r];
    return sum / ng_group_size(group);
}

#endif
