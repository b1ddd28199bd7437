#!/bin/sh
# The debug library, installed and linked as src/README.md says, stops a program at the line where it
# uses a tensor after the reset of its tape, or after it was freed.
#
#     tests/scripts/debug_library.sh FOLDER [make's arguments]
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
program=tests/outside/stale.c

grep -q 'make VARIANT=asan install PREFIX=' src/README.md || {
    echo 'debug_library: src/README.md does not say how the debug library is installed' >&2
    exit 1
}
make "$@" VARIANT=asan install PREFIX="$folder/root" >"$folder/install.log"
PKG_CONFIG_PATH=$folder/root/lib/pkgconfig
export PKG_CONFIG_PATH
${CC:-cc} -g $program $(pkg-config --cflags --libs normgrad) -Wl,-rpath,"$folder/root/lib" \
    -o "$folder/stale"

line=0
for moment in reset free; do
    line=$(awk -v after="$line" 'NR > after && /this line/ { print NR; exit }' $program)
    if ASAN_OPTIONS=detect_leaks=0 "$folder/stale" $moment >"$folder/said" 2>&1 ||
        ! grep -q "stale.c:$line" "$folder/said"; then
        cat "$folder/said" >&2
        echo "debug_library: a tensor used after $moment was not caught at line $line" >&2
        exit 1
    fi
done
echo 'debug_library: a tensor used after reset or free is caught at its line'
