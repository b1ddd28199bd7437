#!/bin/sh
# With the debug library, installed and linked as src/README.md says, each wrong use of memory in
# tests/outside/lifetimes.c is stopped with a report that names its line.
#
#     tests/scripts/lifetimes.sh FOLDER
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
program=tests/outside/lifetimes.c
fail() { echo "lifetimes: $*" >&2; exit 1; }

grep -q 'make VARIANT=asan install PREFIX=' src/README.md || fail 'src/README.md does not say how it is installed'
make VARIANT=asan install PREFIX="$folder/root" >"$folder/install.log"
PKG_CONFIG_PATH=$folder/root/lib/pkgconfig
export PKG_CONFIG_PATH ASAN_OPTIONS=detect_leaks=0
${CC:-cc} -g $program $(pkg-config --cflags --libs normgrad) -Wl,-rpath,"$folder/root/lib" -o "$folder/lifetimes"
for name in $(sed -n 's|.*/\* wrong: \([a-z_]*\) \*/.*|\1|p' $program); do
    line=$(sed -n "\|/\* wrong: $name \*/|=" $program)
    ! "$folder/lifetimes" "$name" >"$folder/report" 2>&1 || fail "$name is not caught"
    grep -q "lifetimes.c:$line" "$folder/report" || fail "$name: no report of line $line: $(head -n 5 "$folder/report")"
done
"$folder/lifetimes" right || fail 'the correct program is stopped'
echo "lifetimes: each use of memory after its life is caught at its line"
