#!/bin/sh
# Runs the suites, each in a process of its own, as many at once as there are processors.
#
#     tests/scripts/suites.sh RUNNER      all suites, or the one that CK_RUN_SUITE names
set -eu
export RUN_UNDER="${RUN_UNDER-}" # valgrind, or nothing
runner=$1
[ -z "${CK_RUN_SUITE-}" ] || exec $RUN_UNDER "$runner"

# The longest files first: what takes long is not begun last.
logs=$(dirname "$runner")/suites
rm -rf "$logs"
mkdir -p "$logs"
ls -S tests/*/test_*.c | sed 's|.*/test_||; s|\.c$||' |
    xargs -P "$(getconf _NPROCESSORS_ONLN)" -I % sh -c '
        CK_RUN_SUITE=% $RUN_UNDER "$1" >"$2/%.log" 2>&1 ||
            { echo "suite %:"; cat "$2/%.log"; touch "$2/%.failed"; }' sh "$runner" "$logs"

grep -h '^skipped: ' "$logs"/*.log | sort | uniq -c | sed 's/^ *\([0-9]*\) skipped: \(.*\)/skipped: \2 (\1 times)/'
cat "$logs"/*.log | awk -F'[ ,:%]+' '
    /^[0-9]+%: Checks: / { checks += $3; failures += $5; errors += $7 }
    END { printf "%d%%: Checks: %d, Failures: %d, Errors: %d\n",
        checks ? int(100 * (checks - failures - errors) / checks) : 0, checks, failures, errors }'
for failed in "$logs"/*.failed; do [ ! -e "$failed" ] || exit 1; done
