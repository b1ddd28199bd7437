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

fail() {
    echo "outside: $*" >&2
    exit 1
}

# by_pkg_config NAME ROOT, by_cmake NAME ROOT: builds and runs tests/outside with the installation
# in ROOT. What pkg-config says is quoted for a shell: hence eval.
by_pkg_config() {
    mkdir -p "$folder/$1"
    found="env PKG_CONFIG_PATH='$2/lib/pkgconfig' pkg-config"
    eval ${CC:-cc} -std=c99 -Wall -Wextra -pedantic -Werror "'$outside/program.c'" \
        "$(eval "$found" --cflags --libs normgrad)" -o "'$folder/$1/shared'"
    LD_LIBRARY_PATH=$2/lib "$folder/$1/shared" || fail "$1: the program with the shared library fails"
    eval ${CC:-cc} "'$outside/program.c'" "$(eval "$found" --static --cflags --libs normgrad |
        sed "s|-lnormgrad|'$2/lib/libnormgrad.a'|")" -o "'$folder/$1/static'"
    "$folder/$1/static" || fail "$1: the program with the static library fails"
    [ -e "$2/lib/libnormgrad-mpi.so" ] || { echo 'skipped: there is no MPI'; return 0; }
    OMPI_CC=${CC:-cc} MPICH_CC=${CC:-cc} eval ${MPICC:-mpicc} -std=c99 -Wall -Wextra -pedantic -Werror \
        "'$outside/ranks.c'" "$(eval "$found" --cflags --libs normgrad-mpi normgrad)" -o "'$folder/$1/ranks'"
    LD_LIBRARY_PATH=$2/lib "$outside/../mpi/mpirun.sh" 2 "$folder/$1/ranks" ||
        fail "$1: the program on two processes fails"
}

by_cmake() {
    command -v cmake >/dev/null || { echo 'skipped: there is no cmake'; return 0; }
    mpi=
    [ ! -e "$2/lib/libnormgrad-mpi.so" ] || mpi=mpi
    cmake -S "$outside" -B "$folder/$1" -DCMAKE_PREFIX_PATH="$2" -DCOMPONENTS=$mpi \
        -DMPI_C_COMPILER="$(command -v "${MPICC:-mpicc}" || echo no)" >"$folder/cmake.log" 2>&1 &&
        cmake --build "$folder/$1" >>"$folder/cmake.log" 2>&1 || {
        cat "$folder/cmake.log" >&2
        fail "$1: the CMake project does not build"
    }
    "$folder/$1/shared" && "$folder/$1/static" || fail "$1: a program built by CMake fails"
    [ ! -e "$folder/$1/ranks" ] || LD_LIBRARY_PATH=$2/lib "$outside/../mpi/mpirun.sh" 2 "$folder/$1/ranks" ||
        fail "$1: a program built by CMake fails on two processes"
    mkdir -p "$folder/older"
    ! cmake -S "$outside" -B "$folder/older" -DCMAKE_PREFIX_PATH="$2" -DVERSION=0.1 \
        >"$folder/older.log" 2>&1 && grep -q normgradConfig.cmake "$folder/older.log" ||
        fail "a program for version 0.1 was given this library"
    ! cmake -S "$outside" -B "$folder/other" -DCMAKE_PREFIX_PATH="$2" -DCOMPONENTS=other \
        >"$folder/other.log" 2>&1 && grep -q 'no component other' "$folder/other.log" ||
        fail "a program was given a component that there is not"
}

root="$folder/a place"
rm -rf "$root" "$folder/moved" "$folder"/by_*
make "$@" install PREFIX="$root" >"$folder/install.log"
by_pkg_config by_pkg_config "$root"
by_cmake by_cmake "$root"

make "$@" uninstall PREFIX="$root" >/dev/null
[ -z "$(find "$root" ! -type d)" ] || fail "left behind: $(find "$root" ! -type d)"

make "$@" install DESTDIR="$root" PREFIX=/usr >"$folder/install.log"
mv "$root/usr" "$folder/moved"
by_pkg_config by_pkg_config_moved "$folder/moved"
by_cmake by_cmake_moved "$folder/moved"
mv "$folder/moved" "$root/usr"
make "$@" uninstall DESTDIR="$root" PREFIX=/usr >/dev/null
[ -z "$(find "$root" ! -type d)" ] || fail "left behind: $(find "$root" ! -type d)"

rm -rf "$folder/tree" "$folder/home"
mkdir -p "$folder/tree" "$folder/home"
ln -s "$PWD"/* "$folder/tree"
sed -n '/^make install PREFIX=\$HOME\/\.local/,/^```$/p' README.md | sed '$d' >"$folder/lines"
(cd "$folder/tree" && HOME=$folder/home sh -eu "$folder/lines") >"$folder/output" 2>&1 &&
    grep -q '^loaded: 9' "$folder/output" || fail "the lines of README.md: $(tail -n 5 "$folder/output")"
echo 'outside: found by pkg-config and CMake, shared and static, with a space in the path, and moved'
