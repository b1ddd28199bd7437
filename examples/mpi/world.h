/* Shared by the MPI programs: the group of all processes, a mean over ranks, and a digest of a
 * network's parameters. */
#ifndef EXAMPLES_MPI_WORLD_H
#define EXAMPLES_MPI_WORLD_H

#include "../digest.h"
#include <normgrad/mpi.h>

enum { MOST_MEMBERS = 64 };

/* Begins MPI. Returns the group of all processes, or NULL. */
static inline ng_group *world_begin(int *argc, char ***argv)
{
    return ng_mpi_begin(argc, argv) ? NULL : ng_mpi_group(MPI_COMM_WORLD);
}

static inline void world_end(ng_group *world)
{
    ng_group_free(world);
    MPI_Finalize();
}

/* Returns the mean over all ranks, the same bits on each. NaN if a rank has failed. */
static inline double members_mean(ng_group *group, double mine)
{
    double all[MOST_MEMBERS] = {0}, sum = 0;
    if (ng_group_gather(group, &mine, 1, all)) return ng_item(NULL);
    for (int r = 0; r < ng_group_size(group); r++) sum += all[r];
    return sum / ng_group_size(group);
}

static inline uint64_t digest_of_parameters(uint64_t digest, ng_module *net)
{
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++)
        digest = digest_of_values(digest, p.tensor);
    return digest;
}

#endif
