#!/bin/bash
# Programs are made of the two files alone, outside the tree: by gcc and clang in C11 to C23, by g++ and
# clang++, with each option, and by the projects of examples/embed (processors.sh has musl and ARM). The
# archive builds and passes a suite of its tests.
#
#     tests/scripts/dist.sh DIST FOLDER
set -euo pipefail
tree=$PWD
mkdir -p "$2"
dist=$(cd "$1" && pwd)
folder=$(cd "$2" && pwd)
rm -rf "$folder"/*
cd "$folder"
fail() { echo "dist: $*" >&2; exit 1; }
run() { "./$1" >"$1.out" || fail "$1: the program fails"; }

cp "$dist"/normgrad.[ch] "$tree"/tests/outside/program.c "$tree"/tests/outside/program.cc .
! grep -nE '.{101}|#include "(core|tape|ops|nn|io|kernels)/|#include <normgrad' normgrad.h normgrad.c ||
    fail 'a line has more than 100 columns, or a file of the tree is included'

strict='-O2 -I. -Wall -Wextra -Werror'
for cc in gcc clang; do
    command -v $cc >/dev/null || { echo "skipped: there is no $cc"; continue; }
    $cc -std=c11 $strict -c normgrad.c -o $cc.o
    for standard in c11 c17 c2x gnu17; do
        $cc -std=$standard $strict program.c $cc.o -lm -lpthread -o $cc-$standard
    done
    run $cc-c11
    $cc -std=c11 $strict "$tree/tests/digest/digest.c" $cc.o -lm -lpthread -o $cc-digest
    "$tree/tests/digest/digest.sh" ./$cc-digest
    cxx=${cc/%gcc/g}++
    command -v $cxx >/dev/null || { echo "skipped: there is no $cxx"; continue; }
    $cxx -std=c++17 $strict program.cc $cc.o -lm -lpthread -o $cxx-17
    run $cxx-17
done
gcc -std=c2x $strict -DNG_NO_SIMD -fsyntax-only normgrad.c
for option in NO_IO NO_THREADS NO_SIMD; do
    gcc -O1 -I. -Wall -Wextra -Werror -DNG_$option program.c normgrad.c -lm -lpthread -o $option
    run $option
done
for source in "$tree"/examples/*.c "$tree"/examples/more/*.c; do
    gcc -O1 -I. "$source" gcc.o -lm -lpthread -o example || fail "$source does not compile"
done

# The project's own rules and not ours: make hands --no-builtin-rules on.
cp -r "$tree"/examples/embed . && cp normgrad.[ch] embed
MAKEFLAGS= make --no-print-directory -C embed CFLAGS='-O1 -DNG_NO_SIMD' >embed.out 2>&1 && embed/main ||
    { cat embed.out >&2; fail "examples/embed/Makefile does not build"; }
! command -v cmake >/dev/null || { cmake -S embed -B cmake -DCMAKE_C_FLAGS=-DNG_NO_SIMD &&
    cmake --build cmake; } >embed.out 2>&1 || { cat embed.out >&2; fail "examples/embed/CMakeLists.txt does not build"; }

tar -xzf "$dist"/normgrad-*.tar.gz
cd normgrad-*/
CK_RUN_SUITE=tape make --no-print-directory BUILD=build build/dist/normgrad.c suite >../archive.out 2>&1 ||
    { tail -n 20 ../archive.out >&2; fail 'the archive does not build, or its tests fail'; }
echo 'dist: all programs run'
