#!/bin/sh
# Each public header alone compiles, pedantic and without a warning, in every C since C99 and, where
# there is a compiler for it, every C++ since C++17. It begins with an example of at most ten lines,
# which compiles in C and in C++, where settings must stand in their order; it has at most 300 lines.
set -eu
fail() { echo "headers: $*" >&2; exit 1; }
# The example in FILE: the first lines of its first comment that are set in.
example() { awk '/^ \*     [^ ]|^ \*      /{ print substr($0, 8); shown = 1; next } shown || /\*\//{ exit }' "$1"; }

for header in include/normgrad.h include/normgrad/*.h; do
    strict='-pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only'
    for std in c99 c11 c17 c2x c++17 c++20 c++2b; do
        case $std in c++*) compiler=$CXX language=c++ ;; *) compiler=$CC language=c ;; esac
        [ -z "$compiler" ] || echo "#include <${header#include/}>" | $compiler -std=$std $strict -x $language -
    done
    [ "$(wc -l <"$header")" -le 300 ] || fail "$header has more than 300 lines"
    case $(example "$header" | wc -l) in [1-9] | 10) ;; *) fail "$header has no example of at most ten lines" ;; esac
    example=$(
        cat <<'H'
#include <normgrad.h>
static ng_tensor *x, *y, *a, *b, *gamma, *beta, *running_mean, *running_var, *weight, *bias, *table, *mask;
static ng_tensor *labels, *lengths, *logits, *images, *kernels, *condition, *input, *start, *vector;
ng_tensor *cube(ng_tape *tape, ng_tensor *const *inputs, void *context);
static ng_module *net, *layer; static ng_tape *tape; static ng_optimizer *adam; static ng_history *history;
static ng_dataset *train, *shard; static ng_group *group; static ng_batch batch;
static ng_recurrent_weights weights; static ng_rng rng;
H
        case $(example "$header") in
        static* | typedef*) example "$header" ;;
        *) printf '%s\n' 'void begin(void);' 'void begin(void) {' "$(example "$header")" '}' ;;
        esac
    )
    printf "%s\n" "$example" | $CC -w -Werror=implicit-function-declaration -std=c11 -Iinclude -fsyntax-only -x c - &&
        { [ -z "$CXX" ] || printf "%s\n" "$example" | $CXX -w -fpermissive -std=c++20 -Iinclude -fsyntax-only -x c++ -; } ||
        fail "the example of $header does not compile"
done
