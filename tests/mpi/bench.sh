#!/bin/bash
# What data-parallel training costs on two processes pinned to a core each, and, reckoned from that,
# what it would cost on up to 1,024 (scaling.awk), with plots/mpi_scaling.dat for the figure.
#
#     tests/mpi/bench.sh PROGRAM RESULTS.tsv ROUNDS [SCALING.dat]
set -euo pipefail
folder=$(dirname "$0")
[ "$(nproc)" -ge 2 ] || { echo 'bench-mpi: two processors are needed' >&2; exit 1; }
export MPI_BIND=core MPI_COPY=direct
said=$("$folder/mpirun.sh" 2 "$1" "$2" 1 '1 MB one way' 2>&1 || echo 'it failed')
[ -z "$said" ] || MPI_COPY=
"$folder/mpirun.sh" 2 "$1" "$2" "$3"
awk -f "$folder/report.awk" "$2"
awk -f "$folder/scaling.awk" -v seen="$(uname -m), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)" \
    -v out="${4:-}" "$2"
