#!/bin/sh
# A C++ program outside the tree compiles without warnings, links and runs; and the calls in the headers
# and README.md have their settings in the order that C++ requires.
#
#     tests/scripts/cxx.sh FOLDER quick|full LIBRARIES
#
# quick: $CXX in C++17; full: g++ and clang++ where found, from C++17 to C++23.
set -eu
folder=$1
mode=$2
libraries=$3
mkdir -p "$folder"
if [ "$mode" = full ]; then
    compilers='g++ clang++' standards='c++17 c++20 c++2b'
else
    compilers=${CXX:-c++} standards=c++17
fi

awk -f tests/scripts/order.awk include/normgrad/*.h include/normgrad.h README.md src/README.md >&2

tried=0
for compiler in $compilers; do
    command -v "$compiler" >/dev/null || { echo "skipped: there is no $compiler"; continue; }
    for standard in $standards; do
        $compiler -std=$standard -Wall -Wextra -pedantic -Werror -Iinclude tests/outside/program.cc \
            $libraries -o "$folder/program" || {
            echo "cxx: $compiler -std=$standard does not compile tests/outside/program.cc" >&2
            exit 1
        }
        "$folder/program" >"$folder/output" || {
            echo "cxx: the program made by $compiler -std=$standard fails" >&2
            exit 1
        }
        tried=$((tried + 1))
    done
done
[ "$tried" -gt 0 ] || { echo "cxx: there is no C++ compiler: $compilers" >&2; exit 1; }
echo "cxx: $tried C++ compilers and standards: $(cat "$folder/output")"
