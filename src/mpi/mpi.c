/* A group's link over MPI: a library of its own, of the public interface alone. */
#include <limits.h>
#include <normgrad/mpi.h>
#include <stdlib.h>

/* NG_OK, or an error with MPI's message. */
static ng_status status_of(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0;
    if (code == MPI_SUCCESS) return NG_OK;
    MPI_Error_string(code, text, &length);
    return ng_fail(NG_EIO, "%s: %s", call, text);
}

/* Whether MPI, which counts in int, can send so many bytes. */
static ng_status can_send(void *with, size_t bytes)
{
    if (*(MPI_Comm *)with == MPI_COMM_NULL)
        return ng_fail(NG_ESTATE, "ng_mpi_group_new: a process has no group");
    if (bytes <= INT_MAX) return NG_OK;
    return ng_fail(NG_EVALUE, "ng_mpi_group_new: %zu bytes from one rank, expected at most %d",
                   bytes, INT_MAX);
}

static ng_status mpi_all_to_all(void *with, const void *mine, void *all, size_t bytes)
{
    const ng_status status = can_send(with, bytes);
    if (status) return status;
    return status_of("MPI_Alltoall", MPI_Alltoall(mine, (int)bytes, MPI_BYTE, all, (int)bytes,
                                                  MPI_BYTE, *(MPI_Comm *)with));
}

static ng_status mpi_all_gather(void *with, const void *mine, void *all, size_t bytes)
{
    const ng_status status = can_send(with, bytes);
    if (status) return status;
    return status_of("MPI_Allgather", MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes,
                                                    MPI_BYTE, *(MPI_Comm *)with));
}

static void mpi_close(void *with)
{
    MPI_Comm *own = with;
    if (*own != MPI_COMM_NULL) MPI_Comm_free(own);
    free(own);
}

ng_status ng_mpi_begin(int *argc, char ***argv)
{
    int level = MPI_THREAD_SINGLE;
    const ng_status status =
        status_of("MPI_Init_thread", MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &level));
    if (status || level >= MPI_THREAD_FUNNELED) return status;
    return ng_fail(NG_ESTATE, "ng_mpi_begin: this MPI allows no threads beside the one that "
                              "calls it");
}

/* Whether this thread may call MPI, while the library's own threads compute. */
static ng_status can_use_mpi(const char *function)
{
    int begun = 0, ended = 0, level, first;
    MPI_Initialized(&begun), MPI_Finalized(&ended);
    if (!begun || ended)
        return ng_fail(NG_ESTATE, "%s: %s", function,
                       ended ? "after MPI_Finalize" : "before MPI_Init (see ng_mpi_begin)");
    MPI_Query_thread(&level), MPI_Is_thread_main(&first);
    if (level > MPI_THREAD_FUNNELED || (level == MPI_THREAD_FUNNELED && first)) return NG_OK;
    return ng_fail(NG_ESTATE, "%s: MPI was begun with %s (see ng_mpi_begin)", function,
                   level == MPI_THREAD_SINGLE
                       ? "MPI_THREAD_SINGLE, expected MPI_THREAD_FUNNELED or more"
                       : "MPI_THREAD_FUNNELED, but this is not its first thread");
}

/* The communicator follows when all processes have memory for a group. */
ng_group *ng_mpi_group_new(MPI_Comm communicator)
{
    static const char function[] = "ng_mpi_group_new";
    if (can_use_mpi(function)) return NULL;
    MPI_Comm *own = malloc(sizeof *own);
    ng_group_link link = {.with = own,
                          .all_to_all = mpi_all_to_all,
                          .all_gather = mpi_all_gather,
                          .close = mpi_close};
    MPI_Comm_rank(communicator, &link.rank), MPI_Comm_size(communicator, &link.size);
    if (own)
        *own = MPI_COMM_NULL;
    else
        ng_fail(NG_ENOMEM, "%s: out of memory", function);
    ng_group *group = own ? ng_group_over_new(&link) : NULL;
    int made = group != NULL, all = 0;
    if (!status_of(function, MPI_Allreduce(&made, &all, 1, MPI_INT, MPI_MIN, communicator)) &&
        all && !status_of(function, MPI_Comm_dup(communicator, own))) {
        MPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
        return group;
    }
    if (!group) free(own);
    ng_group_free(group); /* its last call fails: there is no communicator */
    return NULL;
}
