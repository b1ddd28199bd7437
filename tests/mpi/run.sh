#!/bin/bash
# Groups of processes on MPI: the same bits on 1, 2, 3, 4 and 8, also after a stop and on another
# number; sums in MPI's order near them; bad data on one an error on all; a killed process ends the
# job. Everything within a limit of time.
#
#     tests/mpi/run.sh FOLDER    with the program FOLDER/check
set -u
folder=$1
mpirun=$(dirname "$0")/mpirun.sh
failed=0
fail() { echo "check-mpi: $*" >&2; failed=1; }
run() { timeout 100 "$mpirun" "$1" "$folder/check" "${@:2}" 2>"$folder/errors"; }

one=$(run 1 train)
[ -n "$one" ] || { cat "$folder/errors" >&2; fail 'no training on one process'; }
for n in 2 3 4 8; do
    digest=$(run $n train)
    [ "$digest" = "$one" ] || { fail "$n processes: $digest, one: $one"; cat "$folder/errors" >&2; }
    [ ! -s "$folder/errors" ] || { fail "$n processes say:"; cat "$folder/errors" >&2; }
done

rm -f "$folder"/state.*
run 2 stop "$folder/state" >/dev/null
digest=$(run 4 go-on "$folder/state")
[ "$digest" = "$one" ] || { fail "stopped on 2, taken up on 4: $digest, one: $one"; cat "$folder/errors" >&2; }

fast1=$(run 1 fast) fast4=$(run 4 fast)
awk -v a="$fast1" -v b="$fast4" 'BEGIN { d = a - b; exit !(a > 0 && d * d < 1e-6 * a * a) }' ||
    fail "in MPI's order: $fast4 on 4, $fast1 on one"

run 3 fail >/dev/null
[ $? -ne 124 ] || fail 'bad data: a process hangs'
[ "$(grep -c '^process [012]: .*x is (5, 5)' "$folder/errors")" = 3 ] ||
    { fail 'bad data: not an error on all'; cat "$folder/errors" >&2; }

run 2 kill >/dev/null
status=$?
[ $status -ne 0 ] && [ $status -ne 124 ] || fail "a killed process: status $status"
[ $failed = 0 ] && echo 'check-mpi: the same bits on 1, 2, 3, 4 and 8 processes'
exit $failed
