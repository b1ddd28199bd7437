#!/bin/sh
# Runs a program on so many processes, whichever MPI there is, also as root and on few processors:
#
#     tests/mpi/mpirun.sh COUNT PROGRAM [arguments]
count=$1
shift
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    exec mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \
        --mca btl_vader_single_copy_mechanism none -n "$count" "$@"
fi
exec mpirun -n "$count" "$@"
