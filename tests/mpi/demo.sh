#!/bin/bash
# The digits on two processes, and again on one, which gives the same table to the last bit.
#
#     tests/mpi/demo.sh PROGRAM
set -euo pipefail
mpirun=$(dirname "$0")/mpirun.sh
two=$(mktemp) one=$(mktemp)
trap 'rm -f "$two" "$one"' EXIT
"$mpirun" 2 "$1" | tee "$two"
"$mpirun" 1 "$1" >"$one"
if cmp -s <(tail -n +2 "$two") <(tail -n +2 "$one"); then
    echo 'One process gives the same bits.'
else
    echo 'One process gives other bits:'
    cat "$one"
    exit 1
fi
