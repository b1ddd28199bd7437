#!/bin/bash
# Builds the library without warnings for 64-bit ARM (NEON), s390x (big-endian), 32-bit x86 and musl,
# where their cross compilers are found. Runs the tests, under qemu where needed, if Debian has Check
# for that processor; its packages are unpacked in the build folder, not installed. All tests run in
# one process unless CK_FORK=yes, because qemu is slow to start one for each.
#     tests/scripts/processors.sh [aarch64] [s390x] [i686] [musl]       CK_RUN_SUITE and CFLAGS are passed on
set -uo pipefail
export CK_FORK=${CK_FORK-no}
cd "$(dirname "$0")/../.."
failed=0
say() { printf '%-8s %s\n' "$@"; }

# check_for DEBIAN_NAME FOLDER: unpacks Check for that processor.
check_for() (
    [ -d "$2/usr" ] && exit
    mkdir -p "$2" && cd "$2" && apt-get download "check:$1" "libsubunit-dev:$1" && for package in *.deb; do
        dpkg-deb -x "$package" . || exit
    done
) >/dev/null 2>&1

# succeeds PROCESSOR COMMAND...
succeeds() {
    local log=build/$1.log
    mkdir -p build
    "${@:2}" >"$log" 2>&1 || { say "$1" "FAILED: ${*:2} (see $log)"; tail -n 20 "$log"; failed=1; return 1; }
}

# cross PROCESSOR DEBIAN_NAME FOLDER_OF_LIBRARIES RUN_WITH...
cross() {
    local name=$1 prefix=$1-linux-gnu out=build/$1/release/tests root=build/$1/check run=("${@:4}") left_out=
    command -v "$prefix-gcc" >/dev/null || { say "$name" "passed over: no $prefix-gcc"; return; }
    local make=(make BUILD="build/$name" WERROR=1 CC="$prefix-gcc" AR="$prefix-ar" ZLIB=0 WITH_MPI=)
    succeeds "$name" "${make[@]}" all || return
    command -v "${run[0]}" >/dev/null || { say "$name" "built; not run: no ${run[0]}"; return; }
    [ "$name" != aarch64 ] || { succeeds "$name" "${make[@]}" LDFLAGS=-static "$out/digest/digest" &&
        tests/digest/digest.sh "$out/digest/digest" "${run[0]}" || failed=1; }
    check_for "$2" "$root" || { say "$name" "built; not run: no Check for $2 (dpkg --add-architecture $2, apt-get update)"; return; }
    case ${run[0]} in qemu-*) left_out=fork ;; esac # it ends the child of many threads itself
    succeeds "$name" "${make[@]}" CFLAGS="-I$root/usr/include ${CFLAGS-}" \
        CHECK_LIBS="-L$root/usr/lib/$3 -l:libcheck.a -l:libsubunit.a -lrt -lm" "$out/runner" &&
        CK_EXCLUDE_TAGS=$left_out succeeds "$name" "${run[@]}" "$out/runner" &&
        say "$name" "$(grep Checks: "build/$name.log" | tail -n 1)"
}

for name in ${*:-aarch64 s390x i686 musl}; do
    case $name in
    aarch64) cross aarch64 arm64 aarch64-linux-gnu qemu-aarch64 -L /usr/aarch64-linux-gnu ;;
    s390x) cross s390x s390x s390x-linux-gnu qemu-s390x -L /usr/s390x-linux-gnu ;;
    # A processor for 64-bit x86 runs programs for 32 bits itself.
    i686) cross i686 i386 i386-linux-gnu /usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib ;;
    musl) command -v musl-gcc >/dev/null || { say musl 'passed over: no musl-gcc'; continue; }
        succeeds musl make BUILD=build/musl WERROR=1 CC=musl-gcc ZLIB=0 WITH_MPI= LDFLAGS=-static all &&
            succeeds musl build/musl/examples/1_xor && say musl 'built, and examples/1_xor runs' ;;
    *) echo "tests/scripts/processors.sh: no processor is called $name" >&2; exit 2 ;;
    esac
done
exit $failed
