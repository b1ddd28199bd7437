#!/bin/sh
# Runs a program on so many processes, whichever MPI there is, also as root and on few processors:
#
#     tests/mpi/mpirun.sh COUNT PROGRAM [arguments]
#
# MPIRUN names another mpirun than the first in the path; with MPI_BIND=core each process has a core
# of its own.
count=$1
shift
set -- -n "$count" "$@"
mpirun=${MPIRUN:-mpirun}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if "$mpirun" --version 2>/dev/null | grep -q 'Open MPI'; then
    # To read another process's memory is forbidden in many containers.
    set -- --mca btl_vader_single_copy_mechanism none "$@"
    case ${MPI_BIND:-none} in
    none) set -- --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@" ;;
    *) set -- --bind-to "$MPI_BIND" "$@" ;;
    esac
    exec "$mpirun" "$@"
fi
[ "${MPI_BIND:-none}" = none ] || set -- -bind-to "$MPI_BIND" "$@"
exec "$mpirun" "$@"
