#!/bin/bash
# Ranks on processes of MPI: the same bits as on threads, also after a stop; a transformer; bad data
# or no memory on one rank, or one that leaves early, is an error on all; a killed process ends the
# job; what MPI cannot do is refused. Everything within a limit of time.
#
#     tests/mpi/run.sh FOLDER PROGRAM    with FOLDER/check, and transformer_mpi
set -u
folder=$1 program=$2
mpirun=$(dirname "$0")/mpirun.sh
failed=0
fail() { echo "check-mpi: $*" >&2; cat "$folder/errors" >&2; failed=1; }
threads() { timeout 100 "$folder/check" "$2" "$1" "${@:3}" 2>"$folder/errors"; }
processes() { timeout 100 "$mpirun" "$1" "$folder/check" "$2" 0 "${@:3}" 2>"$folder/errors"; }

for n in 1 2 3 4 8; do
    expected=$(threads $n train)
    [ -n "$expected" ] || fail "no training on $n threads"
    digest=$(processes $n train)
    [ "$digest" = "$expected" ] || fail "$n processes: $digest, $n threads: $expected"
    [ ! -s "$folder/errors" ] || fail "$n processes say something"
done

expected=$(threads 4 train)
rm -f "$folder"/state.*
processes 4 stop "$folder/state" >/dev/null
for way in processes threads; do
    mkdir -p "$folder/again" && cp "$folder"/state.* "$folder/again"
    digest=$($way 4 go-on "$folder/again/state")
    [ "$digest" = "$expected" ] || fail "stopped on 4 processes, resumed on 4 $way: $digest, not $expected"
done

# A transformer of 0.8 million weights: the same table on two threads and on two processes.
timeout 100 "$program" --threads 2 --steps 8 2>"$folder/errors" >"$folder/transformer.threads"
timeout 100 "$mpirun" 2 "$program" --steps 8 2>>"$folder/errors" >"$folder/transformer.processes"
[ -s "$folder/transformer.threads" ] && cmp -s "$folder"/transformer.{threads,processes} ||
    { fail 'a transformer learns other weights on two processes'; cat "$folder"/transformer.* >&2; }

# on_all MODE WORDS: each of three processes says these words.
on_all() {
    processes 3 "$1" >/dev/null
    [ $? -ne 124 ] || fail "$1: a process hangs"
    [ "$(grep -c "$2" "$folder/errors")" = 3 ] || fail "$1: not an error on all"
}
on_all fail '^rank [012]: .*x is (5, 5)'
on_all hunger '^rank [012]: .*out of memory: [0-9]* elements'
on_all leave 'rank 1 of 3 calls ng_group_free'
on_all large '^rank [012]: .*expected at most'

processes 2 kill >/dev/null
status=$?
[ $status -ne 0 ] && [ $status -ne 124 ] || fail "a killed process: status $status"
for mode in single funneled; do
    [ "$(processes 1 $mode)" = refused ] || fail "MPI begun as $mode was not refused"
done
[ $failed = 0 ] && echo 'check-mpi: the same bits on threads and on processes of MPI'
exit $failed
