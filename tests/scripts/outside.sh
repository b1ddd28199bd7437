#!/bin/sh
# Programs outside the tree find the installed library: through pkg-config and through CMake, shared
# and static, and that for MPI, where it was installed and where the installation has been moved to, with a space in
# the path. When it is uninstalled, nothing is left of it. The lines of README.md install in an empty home.
#
#     tests/scripts/outside.sh FOLDER [make's arguments]
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
outside=$PWD/tests/outside
fail() { echo "outside: $*" >&2; exit 1; }

# found NAME ROOT: builds and runs tests/outside with the installation in ROOT, by pkg-config and by
# CMake. What pkg-config says is quoted for a shell: hence eval.
found() {
    mkdir -p "$folder/$1"
    flags="env PKG_CONFIG_PATH='$2/lib/pkgconfig' pkg-config"
    export LD_LIBRARY_PATH="$2/lib"
    eval ${CC:-cc} -std=c99 -Wall -Wextra -pedantic -Werror "'$outside/program.c'" \
        "$(eval "$flags" --cflags --libs normgrad)" -o "'$folder/$1/shared'"
    eval ${CC:-cc} "'$outside/program.c'" "$(eval "$flags" --static --cflags --libs normgrad |
        sed "s|-lnormgrad|'$2/lib/libnormgrad.a'|")" -o "'$folder/$1/static'"
    "$folder/$1/shared" && "$folder/$1/static" || fail "$1: a program built by pkg-config fails"
    mpi=
    if [ -e "$2/lib/libnormgrad-mpi.so" ]; then
        mpi=mpi
        OMPI_CC=${CC:-cc} MPICH_CC=${CC:-cc} eval ${MPICC:-mpicc} -std=c99 -Wall -Wextra -pedantic -Werror \
            "'$outside/ranks.c'" "$(eval "$flags" --cflags --libs normgrad-mpi normgrad)" -o "'$folder/$1/ranks'"
        "$outside/../mpi/mpirun.sh" 2 "$folder/$1/ranks" || fail "$1: the program on two processes fails"
    fi
    command -v cmake >/dev/null || { echo 'skipped: there is no cmake'; return 0; }
    cmake -S "$outside" -B "$folder/$1/cmake" -DCMAKE_PREFIX_PATH="$2" -DCOMPONENTS=$mpi \
        -DMPI_C_COMPILER="$(command -v "${MPICC:-mpicc}" || echo no)" >"$folder/cmake.log" 2>&1 &&
        cmake --build "$folder/$1/cmake" >>"$folder/cmake.log" 2>&1 || fail "$1: $(cat "$folder/cmake.log")"
    "$folder/$1/cmake/shared" && "$folder/$1/cmake/static" || fail "$1: a program built by CMake fails"
}
# Nothing is left where it was installed.
uninstalled() {
    make "$@" >/dev/null
    [ -z "$(find "$root" ! -type d)" ] || fail "left behind: $(find "$root" ! -type d)"
}

root="$folder/a place"
rm -rf "$root" "$folder/moved" "$folder/tree" "$folder/home" "$folder"/found*
make "$@" install PREFIX="$root" >"$folder/install.log"
found found "$root"
uninstalled "$@" uninstall PREFIX="$root"
make "$@" install DESTDIR="$root" PREFIX=/usr >"$folder/install.log"
mv "$root/usr" "$folder/moved"
found found_moved "$folder/moved"
mv "$folder/moved" "$root/usr"
uninstalled "$@" uninstall DESTDIR="$root" PREFIX=/usr

mkdir -p "$folder/tree" "$folder/home"
ln -s "$PWD"/* "$folder/tree"
sed -n '/^make install PREFIX=\$HOME\/\.local/,/^```$/p' README.md | sed '$d' >"$folder/lines"
(cd "$folder/tree" && HOME=$folder/home sh -eu "$folder/lines") >"$folder/output" 2>&1 &&
    grep -q '^loaded: 9' "$folder/output" || fail "the lines of README.md: $(tail -n 5 "$folder/output")"
echo 'outside: found by pkg-config and CMake, shared and static, with a space in the path, and moved'
