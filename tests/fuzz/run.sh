#!/bin/sh
# Runs each fuzzer for so many seconds, as many at once as there are processors, from what earlier
# runs have found and the seeds in the repository. A reader that asks for more than 64 MB has
# believed a file of 4 KB: that is a finding. Ops and layers are asked for anything, with any settings,
# and are refused it.
# What a fuzzer finds stands in FOLDER/NAME-crash-...
#
#     tests/fuzz/run.sh FOLDER SECONDS FUZZER...
set -eu
if [ $# -gt 3 ]; then
    folder=$1 seconds=$2
    shift 2
    printf '%s\n' "$@" | xargs -n 1 -P "$(getconf _NPROCESSORS_ONLN)" "$0" "$folder" "$seconds"
    exit
fi
folder=$1 seconds=$2 fuzzer=$3
name=$(basename "$fuzzer")
mkdir -p "$folder/$name"
limit=64 options=
if [ "$name" = settings ]; then
    limit=1000000 options=allocator_may_return_null=1:max_allocation_size_mb=64
fi
if ASAN_OPTIONS=$options "$fuzzer" -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=2048 \
    -malloc_limit_mb="$limit" -artifact_prefix="$folder/$name-" "$folder/$name" \
    "tests/fuzz/corpus/$name" >"$folder/$name.log" 2>&1; then
    echo "fuzz: $name: $(tail -n 1 "$folder/$name.log")"
else
    echo "fuzz: $name has found something: $folder/$name.log" >&2
    grep -m 3 -E 'ERROR|runtime error|Test unit written' "$folder/$name.log" >&2 || true
    exit 1
fi
