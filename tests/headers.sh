#!/bin/sh
# Each public header alone compiles, pedantic and without a warning, in every C since C99 and, where
# there is a compiler for it, every C++ since C++17.
set -eu
for header in include/normgrad.h include/normgrad/*.h; do
    for std in c99 c11 c17 c2x; do
        $CC -std=$std -pedantic -Werror -Iinclude -fsyntax-only -x c - <<H
#include <${header#include/}>
H
    done
    for std in c++17 c++20 c++2b; do
        [ -z "$CXX" ] || $CXX -std=$std -Wall -Wextra -pedantic -Werror -Iinclude -fsyntax-only -x c++ - <<H
#include <${header#include/}>
H
    done
done
