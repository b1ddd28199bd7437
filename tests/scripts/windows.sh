#!/bin/bash
# The two files are compiled for Windows by MinGW-w64 and run under Wine: a training, the checker, files, the
# digests of the kernels that it has, and figures: without gnuplot, and with a program in its place.
#
#     tests/scripts/windows.sh DIST FOLDER COMPILER WINE
set -euo pipefail
tree=$PWD
mkdir -p "$2"
dist=$(cd "$1" && pwd)
cd "$2"
cc=$3 wine=$4
export LC_ALL=C.UTF-8 WINEPREFIX=$PWD/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='
fail() { echo "windows: $*" >&2; exit 1; }
run() { timeout 300 "$wine" "$@" </dev/null; }

# gcc cannot align the stack for its vectors on Windows (bug 54412); the assembler's option makes that harmless.
simd='-DNG_UNALIGNED -Wa,-muse-unaligned-vector-move'
flags="-O1 -std=c11 -Wall -Wextra -Werror -I$dist"
$cc $flags $simd -c "$dist/normgrad.c" -o normgrad.o
for program in "$tree"/tests/outside/program.c "$tree"/tests/outside/files.c "$tree"/tests/digest/digest.c \
    "$tree"/examples/gradcheck.c "$tree"/examples/3_own_norm.c; do
    $cc $flags "$program" normgrad.o -lm -static -o "$(basename "$program" .c).exe"
done
[ -d "$WINEPREFIX" ] || run wineboot --init >/dev/null 2>&1 || true

run program.exe || fail 'a training fails'
run gradcheck.exe >gradcheck.out || fail "gradcheck: $(tail -n 3 gradcheck.out)"
run 3_own_norm.exe >own.out || fail "3_own_norm: $(tail -n 3 own.out)"
mkdir -p 'wine/drive_c/new folder'
run files.exe 'C:\new folder\' || fail 'files on drive C'
run files.exe "Z:$PWD/" || fail 'files on drive Z'
cat >gnuplot.c <<'END'
#include <stdio.h>
int main(void) { fputs("<svg/>", stdout); return fputs("normgrad: drawn\n", stderr) < 0; }
END
$cc gnuplot.c -o gnuplot.exe
run files.exe 'C:\new folder\' with_gnuplot || fail 'a figure'
rm gnuplot.exe
"$tree/tests/digest/digest.sh" ./digest.exe "$wine"
echo 'windows: all programs run'
