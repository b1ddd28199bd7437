#!/bin/bash
# Programs are made of the two files alone, outside the tree: by gcc and clang in C11 to C23, by g++ and
# clang++, with each option, and by the projects of examples/embed (processors.sh has musl and ARM). The
# archive builds, passes its tests and writes the same two files.
#
#     tests/scripts/dist.sh DIST FOLDER
set -euo pipefail
tree=$PWD
mkdir -p "$2"
dist=$(cd "$1" && pwd)
folder=$(cd "$2" && pwd)
archive=$(ls "$dist"/normgrad-*.tar.gz)
rm -rf "$folder"/*
cd "$folder"

fail() { echo "dist: $*" >&2; exit 1; }
skip() { echo "skipped: $*"; }

# run NAME: the program of that name, whose losses are the same wherever it is built.
run() {
    local name=$1
    "./$name" >"$name.out" || fail "$name: the program fails"
    echo "  $name: $(tail -n 1 "$name.out")"
}

cp "$dist"/normgrad.[ch] .
digest=$tree/tests/digest
cp "$tree"/tests/outside/program.c "$tree"/tests/outside/program.cc .
! grep -nE '.{101}' normgrad.h normgrad.c || fail 'a line has more than 100 columns'
! grep -nE '#include "(core|tape|ops|nn|io|kernels)/|#include <normgrad' normgrad.h normgrad.c ||
    fail 'a file of the tree is included'

strict='-O2 -I. -Wall -Wextra -Werror'
for cc in gcc clang; do
    command -v $cc >/dev/null || { skip "there is no $cc"; continue; }
    $cc -std=c11 $strict -c normgrad.c -o $cc.o
    for standard in c11 c17 c2x gnu17; do
        $cc -std=$standard $strict program.c $cc.o -lm -lpthread -o $cc-$standard
    done
    run $cc-c11
    $cc -std=c11 $strict "$digest/digest.c" $cc.o -lm -lpthread -o $cc-digest
    "$digest/digest.sh" ./$cc-digest
    cxx=${cc/gcc/g}++
    [ $cc = gcc ] && cxx=g++
    command -v $cxx >/dev/null || { skip "there is no $cxx"; continue; }
    $cxx -std=c++17 $strict program.cc $cc.o -lm -lpthread -o $cxx-17
    run $cxx-17
done
# The newest C changes meanings: the library itself in it, quickly.
gcc -std=c2x $strict -DNG_NO_SIMD -fsyntax-only normgrad.c

for option in NO_IO NO_THREADS NO_SIMD; do
    gcc -O1 -I. -Wall -Wextra -Werror -DNG_$option program.c normgrad.c -lm -lpthread -o $option
    run $option
done

# Every example, without the tree's headers and library.
mkdir examples
for source in "$tree"/examples/*.c "$tree"/examples/more/*.c; do
    name=$(basename "$source" .c)
    gcc -O1 -I. "$source" $(grep -q cases/cases.h "$source" && echo "$tree"/tests/cases/*.c) gcc.o -lm -lpthread -o "examples/$name" || fail "$source does not compile"
done
examples/1_xor >xor.out || fail 'examples/1_xor fails'

for project in Makefile CMakeLists.txt; do
    mkdir "embed-$project"
    cp "$tree"/examples/embed/{main.c,$project} normgrad.[ch] "embed-$project"
    cd "embed-$project"
    if [ $project = Makefile ]; then
        make --no-print-directory CFLAGS='-O1 -DNG_NO_SIMD' >../embed.out 2>&1
    elif command -v cmake >/dev/null; then
        cmake -B . -DCMAKE_C_FLAGS=-DNG_NO_SIMD >../embed.out 2>&1 && cmake --build . >>../embed.out 2>&1
    else
        skip 'there is no cmake'
    fi || { cat ../embed.out >&2; fail "examples/embed/$project does not build"; }
    [ ! -e main ] || ./main
    cd ..
done

# The archive: the same two files, and a suite of its tests.
tar -xzf "$archive"
cd normgrad-*/
[ -z "$(find plots -name '*.svg' -o -name '*.png')" ] || fail 'the archive has drawn figures'
make --no-print-directory BUILD=build build/dist/normgrad.c build/dist/normgrad.h >/dev/null
cmp -s build/dist/normgrad.c "$dist/normgrad.c" && cmp -s build/dist/normgrad.h "$dist/normgrad.h" ||
    skip 'the two files of the archive are others: what is not committed is not in it'
CK_RUN_SUITE=tape make --no-print-directory suite >../archive.out 2>&1 ||
    { tail -n 20 ../archive.out >&2; fail 'the tests of the archive fail'; }
grep -E '^[0-9]+%: Checks' ../archive.out
echo 'dist: all programs run'
