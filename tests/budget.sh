#!/bin/bash
# Prints the lines of each directory and its budget; more lines are a warning. Two static functions of
# the same name in src/ are an error.
set -euo pipefail
cd "$(dirname "$0")/.."

lines() { cat "$@" | wc -l; }
code() { find "$@" -name '*.[ch]' -o -name '*.inc' -o -name '*.def'; }

over=
row() { # NAME BUDGET FILE...
    local name=$1 budget=$2 count
    shift 2
    count=$(lines "$@")
    printf '%-16s %7d %7d\n' "$name" "$count" "$budget"
    [ "$count" -le "$budget" ] || over+=" $name ($((count - budget)))"
}

# The catalogue has 900 lines of its own for norms, 500 for optimizers, 400 for ops; figures have 700.
printf '%-16s %7s %7s\n' directory lines budget
row core 1500 $(code src/core)
row kernels 6000 $(code src/kernels)
row group+mpi 1200 $(code src/group src/mpi)
row tape 1000 $(code src/tape)
row ops 8600 $(code src/ops)
row nn+norms 5900 $(code src/nn src/norms)
row optim 1750 $(code src/optim)
row check 1700 $(code src/check)
row io 3400 $(code src/io)
row plot 700 $(code src/plot)
row src 32000 $(code src)
# Its own files and the folders of suites.
row tests 22000 $(find tests -maxdepth 1 -type f) $(find tests/*/ -type f -path '*/test_*.c' -printf '%h\n' | sort -u | xargs -I% find % -type f)
row Makefile 200 Makefile
row README.md 225 README.md
[ -z "$over" ] || echo "lint: warning: lines over budget:$over"

# Names of static functions, each once: normgrad.c includes all files. A body may stand under #if and
# #else of one file, and each isa_*.h has the same functions.
twice=$(for file in $(code src | grep -v isa_); do
    sed -nE 's/__attribute__\(\([a-z]*\)\)//; s/^(static|NG_INLINE)( +[a-z_0-9]+)*[ *]+([a-z_0-9]+)\(.*/\3/p' "$file" | sort -u
done | sort | uniq -d)
[ -z "$twice" ] || { echo "lint: static functions with one name in several files:" $twice; exit 1; }
