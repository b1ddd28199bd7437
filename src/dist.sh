#!/bin/sh
# Compiles normgrad.c of the folder with each of its options, and prints seconds and bytes.
#
#     src/dist.sh FOLDER
set -eu
cd "$1"
printf '%-40s %8s %10s\n' "${CC:-cc} -O2 normgrad.c, and" seconds stripped
for options in '' -DNG_NO_IO -DNG_NO_THREADS -DNG_NO_SIMD '-DNG_NO_SIMD -DNG_NO_IO -DNG_NO_THREADS'; do
    begin=$(date +%s.%N)
    ${CC:-cc} -O2 $options -c normgrad.c -o size.o
    end=$(date +%s.%N)
    strip size.o
    bytes=$(size size.o | awk 'NR == 2 { print $1 + $2 }')
    printf '%-40s %8.1f %7d kB\n' "${options:-all of it}" "$(echo "$end $begin" | awk '{ print $1 - $2 }')" \
        $((bytes / 1000))
done
rm -f size.o
