/* Processes of MPI as ranks of a group: libnormgrad-mpi, compiled and linked with mpicc.
 *
 *     if (ng_mpi_begin(&argc, &argv)) return 1;
 *     ng_group *group = ng_mpi_group_new(MPI_COMM_WORLD);
 *     ng_status status = group ? train(group, &settings) : ng_error_status(); // see group.h
 *     ng_group_free(group);
 *     MPI_Finalize();
 *
 * A failure of MPI is an error of the call that met it, with MPI's own message; the library never
 * ends the job. When a process dies, mpirun ends the others. */
#ifndef NORMGRAD_MPI_H
#define NORMGRAD_MPI_H

#include <mpi.h>
#include <normgrad/group.h>

NG_BEGIN_C

/* MPI_Init_thread, with a level that ng_mpi_group_new can use. NG_ESTATE if this MPI has none.
 * MPI_Finalize ends it as always. */
NG_API NG_MUST_CHECK ng_status ng_mpi_begin(int *argc, char ***argv);

/* The processes of a communicator as a group, one rank each; yours. All of its processes call it
 * together, and all get a group or none does. The communicator is duplicated.
 *
 * NG_ESTATE before MPI_Init and after MPI_Finalize; where the level of threads is
 * MPI_THREAD_SINGLE, since the library computes on threads of its own (they do not call MPI); and
 * where it is MPI_THREAD_FUNNELED, on a thread that MPI does not know as its first. One call sends
 * less than 2 GB from each rank; more is NG_EVALUE. */
NG_API ng_group *ng_mpi_group_new(MPI_Comm communicator);

NG_END_C

#endif
