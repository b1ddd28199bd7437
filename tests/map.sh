#!/bin/bash
# What of the map (src/README.md) a script can check: every file it names exists, every room stands in
# its table, and a room's files include those of rooms above it only. Of make help: it tells each target's
# sentence whole, and the targets that README.md names.
set -uo pipefail
cd "$(dirname "$0")/../src"
failed=0
wrong() { echo "src/README.md: $*"; failed=1; }

rooms=$(sed -n 's/^| `\([a-z]*\)\/` |.*/\1/p' README.md)
for room in */; do
    grep -qx "${room%/}" <<<"$rooms" || wrong "the room $room is not in the table"
done

# What a room begins with stands there; other files may be named with their room or without.
for name in $(grep -oE '`[a-z_/]+\.(c|h|inc|def)`' README.md | tr -d '`' | sort -u); do
    [ -e "$name" ] || [ -e "../include/normgrad/$name" ] || [ -e "../$name" ] ||
        compgen -G "*/$name" >/dev/null || wrong "there is no $name"
done
for file in kernels/*; do
    grep -qF "\`${file#*/}\`" README.md || wrong "$file is not named"
done
while IFS='|' read -r _ room _ first _; do
    file=$(tr -d ' `' <<<"$room$first")
    [ -e "$file" ] || wrong "there is no $file"
done < <(grep -E '^\| `[a-z]+/` \|' README.md)

above=
for room in $rooms; do
    above="$above $room"
    while IFS=: read -r file line include; do
        other=$(sed 's/.*"\([a-z]*\)\/.*/\1/' <<<"$include")
        [[ " $above " == *" $other "* ]] ||
            { echo "src/$file:$line: $room/ stands above $other/ and includes from it"; failed=1; }
    done < <(grep -d skip -nE '^#include "[a-z]+/' "$room"/*)
done

help=$(MAKEFLAGS= make -s -C .. help)
while IFS= read -r sentence; do
    grep -qF -- "$sentence" <<<"$help" || { echo "make help does not tell: $sentence"; failed=1; }
done < <(sed -n 's/^## [a-z-]*: //p' ../Makefile mpi/mpi.mk)
for target in $(grep -oE '`make [a-z][a-z-]*' ../README.md | sed 's/.* //' | sort -u); do
    grep -q "^$target " <<<"$help" || { echo "README.md: make help tells no $target"; failed=1; }
done
exit $failed
