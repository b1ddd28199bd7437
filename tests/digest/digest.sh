#!/bin/sh
# Compares the digests of a program built from digest.c with those in digests.txt, for each instruction
# set with fused multiply-add that the program and the processor have, and those of the kernels without
# it ("baseline") with unfused.txt; with an emulator, which is slow, those after 8 steps.
#
#     tests/digest/digest.sh PROGRAM [EMULATOR...]      tests/digest/digest.sh digest-arm qemu-aarch64
set -eu
program=$1 here=$(dirname "$0") seen= short=
shift
if [ $# -gt 0 ]; then
    short=short
    export OMP_NUM_THREADS=1
fi
for isa in avx512 avx2 neon baseline; do
    if NORMGRAD_ISA=$isa "$@" "$program" $short >"$program.out" 2>"$program.err"; then
        expected=$here/digests.txt
        [ $isa != baseline ] || expected=$here/unfused.txt
        if [ "$short" ]; then cut -d ' ' -f 1,3- "$expected"; else cat "$expected"; fi >"$program.expected"
        tr -d '\r' <"$program.out" | diff "$program.expected" - || { echo "digest: $isa: other bits than $expected" >&2; exit 1; }
        seen="$seen $isa"
    else
        grep -q 'NORMGRAD_ISA is' "$program.err" || { cat "$program.err" >&2; exit 1; }
    fi
done
echo "digest:$seen"
