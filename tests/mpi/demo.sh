#!/bin/bash
# The digits on two processes, and again on two threads, which give the same table to the last bit.
#
#     tests/mpi/demo.sh PROGRAM
set -euo pipefail
mpirun=$(dirname "$0")/mpirun.sh
processes=$(mktemp) threads=$(mktemp)
trap 'rm -f "$processes" "$threads"' EXIT
"$mpirun" 2 "$1" | tee "$processes"
"$1" --threads 2 >"$threads"
if cmp -s "$processes" "$threads"; then
    echo 'Two threads give the same bits.'
else
    echo 'Two threads give other bits:'
    cat "$threads"
    exit 1
fi
