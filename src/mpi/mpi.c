/* A group's link over MPI: a library of its own, of the public interface alone. */
#include <limits.h>
#include <normgrad/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(ng_group_request), "a request holds MPI's");

static MPI_Comm of(void *with) { return *(MPI_Comm *)with; }

static void keep(ng_group_request *request, MPI_Request mpi) { memcpy(request, &mpi, sizeof mpi); }

/* MPI counts in int. */
static int count_of(void *with, int64_t count)
{
    if (count <= INT_MAX) return (int)count;
    fprintf(stderr, "ng_mpi_group: a message of %lld, expected at most %d\n", (long long)count,
            INT_MAX);
    MPI_Abort(of(with), 1);
    return 0;
}

static void mpi_send(void *with, int to, int tag, const void *data, size_t bytes,
                     ng_group_request *request)
{
    MPI_Request mpi;
    MPI_Isend(data, count_of(with, (int64_t)bytes), MPI_BYTE, to, tag, of(with), &mpi);
    keep(request, mpi);
}

static void mpi_receive(void *with, int from, int tag, void *data, size_t bytes,
                        ng_group_request *request)
{
    MPI_Request mpi;
    MPI_Irecv(data, count_of(with, (int64_t)bytes), MPI_BYTE, from, tag, of(with), &mpi);
    keep(request, mpi);
}

static bool mpi_test(void *with, ng_group_request *request)
{
    (void)with;
    MPI_Request mpi;
    int done = 0;
    memcpy(&mpi, request, sizeof mpi);
    MPI_Test(&mpi, &done, MPI_STATUS_IGNORE);
    keep(request, mpi);
    return done;
}

static void mpi_sum(void *with, void *data, int64_t count, ng_dtype dtype,
                    ng_group_request *request)
{
    MPI_Request mpi;
    MPI_Iallreduce(MPI_IN_PLACE, data, count_of(with, count),
                   dtype == NG_F32 ? MPI_FLOAT : MPI_DOUBLE, MPI_SUM, of(with), &mpi);
    keep(request, mpi);
}

static void mpi_close(void *with)
{
    MPI_Comm_free(with);
    free(with);
}

ng_status ng_mpi_begin(int *argc, char ***argv)
{
    int given = MPI_THREAD_SINGLE;
    MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &given);
    if (given >= MPI_THREAD_SERIALIZED) return NG_OK;
    return ng_fail(NG_ESTATE, "ng_mpi_begin: this MPI lets only its first thread call it");
}

ng_group *ng_mpi_group(MPI_Comm communicator)
{
    static const char function[] = "ng_mpi_group";
    int begun = 0;
    MPI_Initialized(&begun);
    if (!begun) {
        ng_fail(NG_ESTATE, "%s: before MPI_Init (see ng_mpi_begin)", function);
        return NULL;
    }
    MPI_Comm *own = malloc(sizeof *own);
    if (!own) ng_fail(NG_ENOMEM, "%s: out of memory", function);
    ng_group_link link = {.with = own,
                          .send = mpi_send,
                          .receive = mpi_receive,
                          .test = mpi_test,
                          .sum = mpi_sum,
                          .close = mpi_close};
    if (own) {
        MPI_Comm_dup(communicator, own);
        MPI_Comm_rank(*own, &link.rank);
        MPI_Comm_size(*own, &link.size);
    }
    ng_group *group = own ? ng_group_over(&link) : NULL;
    if (!group) {
        fprintf(stderr, "%s\n", ng_error_text());
        MPI_Abort(communicator, 1);
    }
    return group;
}
