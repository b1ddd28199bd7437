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

# say PROCESSOR RESULT
say() { printf '%-8s %s\n' "$@"; }

# check_for DEBIAN_NAME FOLDER: unpacks Check for that processor.
check_for() (
    [ -d "$2/usr" ] && exit
    mkdir -p "$2" && cd "$2" && apt-get download "check:$1" "libsubunit-dev:$1" && for package in *.deb; do
        dpkg-deb -x "$package" . || exit
    done
) >/dev/null 2>&1

# built PROCESSOR MAKE'S ARGUMENTS...
built() {
    local name=$1 log=build/$1.log
    shift
    mkdir -p build
    if make BUILD="build/$name" WERROR=1 "$@" >"$log" 2>&1; then return 0; fi
    say "$name" "FAILED: make BUILD=build/$name $* (see $log)"
    tail -n 20 "$log"
    failed=1
    return 1
}

# cross PROCESSOR DEBIAN_NAME FOLDER_OF_LIBRARIES RUN_WITH...
cross() {
    local name=$1 prefix=$1-linux-gnu root=build/$1/check log=build/$1.log run=("${@:4}")
    command -v "$prefix-gcc" >/dev/null || { say "$name" "passed over: no $prefix-gcc"; return; }
    local tools=(CC="$prefix-gcc" AR="$prefix-ar" ZLIB=0 WITH_MPI=)
    built "$name" "${tools[@]}" all || return
    # The same bits as here.
    [ "$name" != aarch64 ] || ! command -v "${run[0]}" >/dev/null || {
        local digest=build/$name/release/tests/digest/digest
        built "$name" "${tools[@]}" LDFLAGS=-static "$digest" && tests/digest/digest.sh "$digest" "${run[0]}" || failed=1
    }
    check_for "$2" "$root" || { say "$name" "built; not run: no Check for $2 (dpkg --add-architecture $2, apt-get update)"; return; }
    command -v "${run[0]}" >/dev/null || { say "$name" "built; not run: no ${run[0]}"; return; }
    built "$name" "${tools[@]}" CFLAGS="-I$root/usr/include ${CFLAGS-}" \
        CHECK_LIBS="-L$root/usr/lib/$3 -l:libcheck.a -l:libsubunit.a -lrt -lm" \
        "build/$name/release/tests/runner" || return
    local left_out=
    case ${run[0]} in qemu-*) left_out=fork ;; esac # it ends the child of many threads itself
    if CK_EXCLUDE_TAGS=$left_out "${run[@]}" "build/$name/release/tests/runner" >"$log" 2>&1; then
        say "$name" "$(grep Checks: "$log" | tail -n 1)"
    else
        say "$name" "FAILED (see $log)"
        tail -n 20 "$log"
        failed=1
    fi
}

# A processor for 64-bit x86 runs programs for 32 bits itself.
lib32=/usr/i686-linux-gnu/lib
run_i686=(qemu-i386 -L "${lib32%/lib}")
[ "$(uname -m)" != x86_64 ] || run_i686=("$lib32/ld-linux.so.2" --library-path "$lib32")

# A program of musl's runs here as it is.
musl() {
    command -v musl-gcc >/dev/null || { say musl 'passed over: no musl-gcc'; return; }
    built musl CC=musl-gcc ZLIB=0 WITH_MPI= LDFLAGS=-static all && build/musl/examples/1_xor >build/musl.log 2>&1 &&
        say musl 'built, and examples/1_xor runs' || failed=1
}

for name in "${@:-aarch64 s390x i686 musl}"; do
    for one in $name; do
        case $one in
        aarch64) cross aarch64 arm64 aarch64-linux-gnu qemu-aarch64 -L /usr/aarch64-linux-gnu ;;
        s390x) cross s390x s390x s390x-linux-gnu qemu-s390x -L /usr/s390x-linux-gnu ;;
        i686) cross i686 i386 i386-linux-gnu "${run_i686[@]}" ;;
        musl) musl ;;
        *) echo "tests/scripts/processors.sh: no processor is called $one" >&2; exit 2 ;;
        esac
    done
done
exit $failed
