#!/bin/bash
# Checks src/README.md: every file that it names exists, its table has every directory, and files
# include only from their own directory and those above it in the table.
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
above=
for directory in $directories; do
    above="$above|$directory"
    grep -d skip -nE '^#include "[a-z]+/' "$directory"/* | grep -vE "\"(${above#|})/" && wrong "that is below $directory"
done
exit $failed
