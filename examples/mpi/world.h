/* Shared by the MPI programs: their ranks, a mean over ranks, and a digest of a network's
 * parameters. */
#ifndef EXAMPLES_MPI_WORLD_H
#define EXAMPLES_MPI_WORLD_H

#include <normgrad/mpi.h>
#include <string.h>

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

/* A digest of a list of numbers: FNV-1a over 8-byte words. */
#define DIGEST_START UINT64_C(0xcbf29ce484222325)

/* Returns the digest extended by one word; the first digest is DIGEST_START. The multiplication
 * carries only upwards, so the high half is folded into the low one: otherwise two sign bits would
 * cancel. */
static inline uint64_t digest_of(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * UINT64_C(0x100000001b3);
    return digest ^ digest >> 32;
}

static inline uint64_t digest_of_number(uint64_t digest, double number)
{
    uint64_t word;
    memcpy(&word, &number, sizeof word);
    return digest_of(digest, word);
}

static inline uint64_t digest_of_parameters(uint64_t digest, ng_module *net)
{
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++)
        for (int64_t k = 0; k < ng_size(p.tensor); k++)
            digest = digest_of_number(digest, ng_get(p.tensor, k));
    return digest;
}

#endif
