#!/bin/sh
# Compilers object to each call of tests/outside/wrong.txt, and compile tests/outside/program.cc, which runs.
#
#     tests/scripts/misuse.sh FOLDER quick|full LIBRARIES
#
# quick: $CC and $CXX; full: gcc, clang, g++ and clang++, from C99 to C2x and from C++17 to C++23.
set -eu
folder=$1 mode=$2 libraries=$3
mkdir -p "$folder"
fail() { echo "misuse: $*" >&2; exit 1; }

! grep -nE '\(ng_[a-z0-9_]+_options\) *\{' include/normgrad/*.h >&2 || fail 'options that are not NG_NAMED'
wrong=$(grep -n '^    (void)' tests/outside/wrong.txt)

# attempt LANGUAGE STANDARD COMPILER...
attempt() {
    language=$1 standard=$2
    shift 2
    "$@" -std="$standard" -fsyntax-only -x "$language" /dev/null 2>/dev/null || {
        echo "skipped: there is no $1 -std=$standard"
        return 0
    }
    case $("$@" --version) in *clang*) all=-ferror-limit=0 ;; *) all=-fmax-errors=0 ;; esac
    ! "$@" -std="$standard" -w $all -Iinclude -fsyntax-only -x "$language" tests/outside/wrong.txt >"$folder/said" 2>&1 ||
        fail "$* -std=$standard compiles wrong calls"
    echo "$wrong" | while IFS=: read -r line call; do
        grep -q "wrong\.txt:$line:" "$folder/said" || fail "$* -std=$standard says nothing of $call"
    done
    [ "$language" = c++ ] || return 0
    "$@" -std="$standard" -Wall -Wextra -pedantic -Werror -Iinclude tests/outside/program.cc $libraries -o "$folder/program" &&
        "$folder/program" >"$folder/output" || fail "$* -std=$standard: tests/outside/program.cc fails"
}

if [ "$mode" = full ]; then
    for standard in c99 c11 c17 c2x; do for compiler in gcc clang; do attempt c $standard $compiler; done; done
    for standard in c++17 c++20 c++2b; do for compiler in g++ clang++; do attempt c++ $standard $compiler; done; done
else
    attempt c c99 ${CC:-cc}
    [ -z "$CXX" ] || attempt c++ c++17 $CXX
fi
echo "misuse: $(echo "$wrong" | wc -l) wrong calls are noticed"
