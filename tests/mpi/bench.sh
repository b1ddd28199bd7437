#!/bin/bash
# What data-parallel training costs on two processes pinned to a core each.
#
#     tests/mpi/bench.sh PROGRAM RESULTS.tsv ROUNDS
set -euo pipefail
folder=$(dirname "$0")
[ "$(nproc)" -ge 2 ] || { echo 'bench-mpi: two processors are needed' >&2; exit 1; }
export MPI_BIND=core MPI_COPY=direct
said=$("$folder/mpirun.sh" 2 "$1" "$2" 1 'of the same bytes' 2>&1 || echo 'it failed')
[ -z "$said" ] || MPI_COPY=
"$folder/mpirun.sh" 2 "$1" "$2" "$3"
awk -f "$folder/report.awk" "$2"
