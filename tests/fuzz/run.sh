#!/bin/sh
# Runs each fuzzer for so many seconds, as many at once as there are processors, from what earlier
# runs have found and the seeds in the repository. A reader that asks for more than 64 MB has
# believed a file of 4 KB: that is a finding. What a fuzzer finds stands in FOLDER/NAME-crash-...
#
#     tests/fuzz/run.sh FOLDER SECONDS FUZZER...
set -eu
folder=$1 seconds=$2 fuzzer=$3
if [ $# -gt 3 ]; then
    shift 2
    printf '%s\n' "$@" | xargs -n 1 -P "$(getconf _NPROCESSORS_ONLN)" "$0" "$folder" "$seconds"
    exit
fi
name=$(basename "$fuzzer")
mkdir -p "$folder/$name"
"$fuzzer" -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=2048 \
    -malloc_limit_mb=64 -artifact_prefix="$folder/$name-" "$folder/$name" \
    "tests/fuzz/corpus/$name" >"$folder/$name.log" 2>&1 || {
    echo "fuzz: $name has found something: $folder/$name.log" >&2
    grep -m 3 -E 'ERROR|runtime error|Test unit written' "$folder/$name.log" >&2
    exit 1
}
echo "fuzz: $name: $(tail -n 1 "$folder/$name.log")"
