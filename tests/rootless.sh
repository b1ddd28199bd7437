#!/bin/sh
# Installs without root as README.md says, as an ordinary user with an empty home.
#
#     tests/rootless.sh FOLDER [VARIABLES FOR MAKE]
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)

fail() {
    echo "rootless: $*" >&2
    exit 1
}

# The block of README.md that begins with its first line.
sed -n '/^make install PREFIX=\$HOME\/\.local/,/^```$/p' README.md | sed '$d' >"$folder/lines"
[ "$(grep -c . "$folder/lines")" -ge 3 ] || fail 'README.md has no lines that begin with make install'

# A copy of the tree, as the user would have it; what is built comes along, to spare the time.
rm -rf "$folder/tree" "$folder/home"
mkdir -p "$folder/tree" "$folder/home"
built=$([ -d build/release ] && echo build/release)
tar -c --exclude=rootless --exclude=outside Makefile README.md include src examples $built |
    tar -x -C "$folder/tree"

as_user=
if [ "$(id -u)" = 0 ]; then
    if command -v setpriv >/dev/null; then
        as_user='setpriv --reuid=65534 --regid=65534 --clear-groups'
        chown -R 65534:65534 "$folder/tree" "$folder/home"
        $as_user test -w "$folder/home" || as_user= # a folder above is closed to them
    fi
    [ "$as_user" ] || echo 'skipped: there is no ordinary user to be here; as root'
fi

cd "$folder/tree"
if ! $as_user env -i HOME="$folder/home" PATH="$PATH" MAKEFLAGS="${2+-- $2}" sh -eu "$folder/lines" \
    >"$folder/output" 2>&1; then
    tail -n 30 "$folder/output" >&2
    fail 'the lines of README.md fail'
fi
grep -q '^loaded: 9' "$folder/output" ||
    fail "the program said: $(tail -n 1 "$folder/output")"
echo 'rootless: installed in an empty home, and a program built with it, as README.md says'
