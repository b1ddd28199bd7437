#!/bin/bash
# Checks src/README.md: every file that it names exists, its table has every directory, and files
# include only from their own directory and those above it in the table. Checks that make help prints
# the whole sentence of each target and has every target that README.md names.
set -uo pipefail
cd "$(dirname "$0")/../../src"
failed=0
wrong() { echo "src/README.md: $*"; failed=1; }

directories=$(sed -n 's/^| `\([a-z]*\)\/` |.*/\1/p' README.md)
for directory in */; do
    grep -qx "${directory%/}" <<<"$directories" || wrong "the directory $directory is not in the table"
done

# Other files may be named with or without their directory.
for name in $(grep -oE '`[a-z_/]+\.(c|h|inc|def)`' README.md | tr -d '`' | sort -u); do
    [ -e "$name" ] || [ -e "../include/normgrad/$name" ] || [ -e "../$name" ] ||
        compgen -G "*/$name" >/dev/null || wrong "there is no $name"
done
for file in kernels/*; do
    grep -qF "\`${file#*/}\`" README.md || wrong "$file is not named"
done
while IFS='|' read -r _ directory _ first _; do
    file=$(tr -d ' `' <<<"$directory$first")
    [ -e "$file" ] || wrong "there is no $file"
done < <(grep -E '^\| `[a-z]+/` \|' README.md)

above=
for directory in $directories; do
    above="$above $directory"
    while IFS=: read -r file line include; do
        other=$(sed 's/.*"\([a-z]*\)\/.*/\1/' <<<"$include")
        [[ " $above " == *" $other "* ]] ||
            { echo "src/$file:$line: $directory/ includes from $other/, which is below it in the table"; failed=1; }
    done < <(grep -d skip -nE '^#include "[a-z]+/' "$directory"/*)
done

help=$(MAKEFLAGS= make -s -C .. help)
while IFS= read -r sentence; do
    grep -qF -- "$sentence" <<<"$help" || { echo "make help does not print: $sentence"; failed=1; }
done < <(sed -n 's/^## [a-z-]*: //p' ../Makefile *.mk mpi/*.mk ../tests/*/*.mk ../examples/*.mk ../examples/*/*.mk)
for target in $(grep -oE '`make [a-z][a-z-]*[` ]' ../README.md | tr -d '`' | awk '{ print $2 }' | sort -u); do
    grep -q "^$target " <<<"$help" || { echo "README.md: make help has no $target"; failed=1; }
done
exit $failed
