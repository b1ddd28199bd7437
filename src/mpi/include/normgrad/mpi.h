/* Groups of processes on MPI: libnormgrad-mpi, compiled and linked with mpicc. */
#ifndef NORMGRAD_MPI_H
#define NORMGRAD_MPI_H

#include <mpi.h>
#include <normgrad/group.h>

NG_BEGIN_C

/* MPI_Init_thread for programs whose ranks are threads (ng_group_run): NG_ESTATE where MPI does
 * not let one thread after the other call it. MPI_Finalize ends it as always. */
NG_API NG_MUST_CHECK ng_status ng_mpi_begin(int *argc, char ***argv);

/* The processes of a communicator as a group, one rank each; yours. The communicator is duplicated,
 * by all of its processes at once. A message has less than 2 GB. A failure of MPI itself ends the
 * job, as MPI's errors do: so does a process that is killed, and one that cannot make its group. */
NG_API ng_group *ng_mpi_group(MPI_Comm communicator);

NG_END_C

#endif
