#!/bin/bash
# Groups of processes on MPI: the same bits on 1, 2, 3, 4 and 8, also after a stop and on another
# number; sums in MPI's order near them; a transformer; bad data, or no memory, on one an error on
# all; a killed process ends the job. Everything within a limit of time.
#
#     tests/mpi/run.sh FOLDER PROGRAM    with FOLDER/check, and transformer_mpi
set -u
folder=$1 program=$2
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

# In MPI's order: all 200 losses within 1e-6 of those of one process, in double within 1e-12.
for mode in fast fast-f64; do
    run 1 $mode >"$folder/$mode.1"
    for n in 2 3 4 8; do
        run $n $mode >"$folder/$mode.$n"
        paste "$folder/$mode.1" "$folder/$mode.$n" |
            awk -v within=$([ $mode = fast ] && echo 1e-6 || echo 1e-12) '
                { d = ($1 - $2) / $1; if (d < 0) d = -d; if (!(d <= within)) bad = 1 }
                END { exit bad || NR != 200 }' ||
            { fail "in MPI's order: the losses of $n processes are not those of one ($mode)"; cat "$folder/errors" >&2; }
    done
done

# A transformer of 0.8 million weights: the same table on one process and on two.
for n in 1 2; do
    timeout 100 "$mpirun" $n "$program" --steps 8 2>"$folder/errors" | tail -n +2 >"$folder/transformer.$n"
done
[ -s "$folder/transformer.1" ] && cmp -s "$folder/transformer.1" "$folder/transformer.2" ||
    { fail 'a transformer learns other weights on two processes'; cat "$folder/errors" "$folder"/transformer.? >&2; }

for mode in fail hunger; do
    said='x is (5, 5)'
    [ $mode = fail ] || said='out of memory: [0-9]* elements'
    run 3 $mode >/dev/null
    [ $? -ne 124 ] || fail "$mode: a process hangs"
    [ "$(grep -c "^process [012]: .*$said" "$folder/errors")" = 3 ] ||
        { fail "$mode: not an error on all"; cat "$folder/errors" >&2; }
done

run 2 kill >/dev/null
status=$?
[ $status -ne 0 ] && [ $status -ne 124 ] || fail "a killed process: status $status"
[ $failed = 0 ] && echo 'check-mpi: the same bits on 1, 2, 3, 4 and 8 processes'
exit $failed
