#!/bin/bash
# Would the tests notice? Applies one small fault of tests/mutations/list.txt at a time to a copy of
# the tree, builds it (unoptimised kernels, of one instruction set) and runs the suites, those that
# look at the room first, until one fails: then the fault is killed. What survives every suite needs
# a test, or a line in the list that says why it changes nothing.
#
#     tests/mutations/run.sh FOLDER [-j JOBS] [-n FROM[-TO]] [-s STEP] [-q] [-a | -A] [TEXT...]
#     tests/mutations/run.sh -l [TEXT...]
#
# -l: only whether the list still fits the sources: each fault's text stands there once.
# TEXT: only the faults in files whose path contains one of these. -n: only those with these numbers.
# -s: only one of so many.
# What has a result in FOLDER/results is not run again, so that a run that was broken off goes on;
# -a runs what survived again, -A everything. -q leaves it at the suites of the room: what survives
# them is run again without it. LEVEL is that of nice, 10 unless told.
set -eu
short='core optim tape nulls files ops nn networks norms losses transformer golden numpy io operands
    functions derivatives recurrent group parallel statistics check-long'
long='memory training numbers threads tables conv kernels norm check'
nice="nice -n ${LEVEL:-10}"
# A library with a fault in it may replace what it must not: it is never root.
if [ "$(id -u)" = 0 ]; then
    command -v setpriv >/dev/null ||
        { echo 'mutations: not as root, and there is no setpriv to become nobody with' >&2; exit 2; }
    nice="$nice setpriv --reuid=65534 --regid=65534 --clear-groups"
fi
first_for() { # PATH: the suites that look at it first; check-long is check without what is long
    case $1 in
    src/core/rng.c | src/core/tensor.c | src/core/error.c) echo core numbers nulls memory ;;
    src/core/pool.c | src/core/threads.c | src/core/workspace.c | src/kernels/parallel*) echo threads core ;;
    src/core/*) echo core memory tape nulls ;;
    src/kernels/gemm* | src/kernels/walk* | src/kernels/select.c) echo tables kernels ;;
    src/group/*) echo group parallel ;;
    src/optim/parallel.c) echo parallel group ;;
    src/kernels/conv.c | src/kernels/image.inc) echo conv tables kernels ;;
    src/kernels/resize.inc) echo conv tables ;;
    src/kernels/attention.inc | src/kernels/dropout.h) echo transformer tables ;;
    src/kernels/pointwise.inc) echo tables kernels losses ops ;;
    src/kernels/*norm*) echo tables kernels norms numbers norm ;;
    src/kernels/update.inc) echo tables optim kernels ;;
    src/kernels/*) echo tables kernels ops ;;
    src/tape/*) echo tape memory ops optim ;;
    src/ops/*norm* | src/ops/batch*) echo norms ops golden norm operands ;;
    src/ops/losses.c) echo losses ops ;;
    src/ops/derivatives.c) echo derivatives ;;
    src/ops/group*) echo group operands ;;
    src/*/recurrent*) echo recurrent operands tables ;;
    src/ops/conv*.c | src/ops/image.c | src/ops/window.c | src/ops/upsample.c) echo conv ops ;;
    src/ops/attention.c | src/ops/rotary.c) echo transformer ops ;;
    src/ops/*) echo ops operands ;;
    src/nn/*norm*) echo norms nn networks ;;
    src/nn/transformer.c | src/nn/attention.c | src/nn/feed_forward.c) echo transformer nn ;;
    src/nn/module.c) echo nn networks optim ;;
    src/nn/*) echo nn networks ;;
    src/optim/*) echo optim training ;;
    src/check/*) echo check-long check ;;
    src/io/training*) echo training ;;
    src/io/inflate.c | src/io/np*) echo numpy ;;
    src/io/safetensors.c | src/io/checkpoint.c) echo files training ;;
    src/io/history.c) echo io training ;;
    src/io/*) echo io files ;;
    esac
}

usage() {
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

[ $# -ge 1 ] || usage
work=
if [ "$1" != -l ]; then
    mkdir -p "$1"
    work=$(cd "$1" && pwd)
fi
shift
jobs=1 from=1 to=1000000 step=1 again= others="$short $long"
while getopts 'j:n:s:qaA' option; do
    case $option in
    j) jobs=$OPTARG ;;
    n) from=${OPTARG%-*} to=${OPTARG#*-} ;;
    s) step=$OPTARG ;;
    q) others= ;;
    a | A) again=$option ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tests/mutations
results=$work/results
scratch=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)/normgrad-mutations-XXXXXX")
chmod 711 "$scratch"
pids=
trap 'rm -rf "$scratch"' EXIT
trap 'kill $pids 2>/dev/null; exit 130' INT TERM

# One line for each that is wanted: number, path, old, new, explanation, between tabs.
wanted() {
    awk -v from="$from" -v to="$to" -v step="$step" -v only="$*" '
        function emit() {
            if (number >= from && number <= to && number % step == 0 && chosen)
                printf "%d\t%s\t%s\t%s\t%s\n", number, path, old, new, reason
            chosen = 0
        }
        /^ *$/ || /^#/ { next }
        /^src\// { emit(); path = $1; next }
        /^ *because: / { sub(/^ *because: /, ""); reason = $0; next }
        /^ *~ / { sub(/^ *~ */, ""); reason = reason " " $0; next }
        !/ ==>/ { print "mutations: not to be understood: " $0 > "/dev/stderr"; exit 1 }
        {
            emit()
            at = index($0, " ==>")
            old = substr($0, 1, at - 1); new = substr($0, at + 4); reason = ""
            gsub(/^ +| +$/, "", old); gsub(/^ +| +$/, "", new)
            number++
            chosen = only == ""
            n = split(only, texts, " ")
            for (i = 1; i <= n; i++) chosen = chosen || index(path, texts[i])
        }
        END { emit() }' "$here/list.txt"
}

id_of() { printf '%s\t' "$@" | cksum | tr ' ' -; }

# A copy of the tree that is the tree again.
refresh() { # TREE
    mkdir -p "$1"
    (cd "$root" && find Makefile README.md include src tests examples -type f) | while read -r file; do
        if ! cmp -s "$root/$file" "$1/$file"; then
            mkdir -p "$(dirname "$1/$file")"
            cp "$root/$file" "$1/$file"
        fi
    done
    (cd "$1" && find include src tests examples -type f) | while read -r file; do
        [ -e "$root/$file" ] || rm "$1/$file"
    done
}

build() { # TREE ISA
    timeout 900 nice -n "${LEVEL:-10}" make -C "$1" -j1 BUILD=build ISAS="$2" CFLAGS='-O1 -g0 -w' KERNEL= \
        ${CC:+CC="$CC"} build/release/tests/runner >"$1/log" 2>&1
}

# A limit of processor time ends what runs for ever, one of the clock what waits for ever.
run_suite() { # TREE PROGRAM SUITE USUAL
    local tag=
    case $3 in *-long) tag=long ;; esac
    mkdir -p "$scratch/$(basename "$1")"
    chmod 1777 "$scratch/$(basename "$1")"
    (
        cd "$1"
        ulimit -t $((20 + 5 * $4))
        export TMPDIR="$scratch/$(basename "$1")" CK_FORK=no CK_RUN_SUITE="${3%-long}" CK_EXCLUDE_TAGS=$tag
        exec timeout -s KILL $((120 + 20 * $4)) $nice "$2" >said 2>&1
    ) 2>/dev/null
}

# How long a suite takes where nothing is wrong; it must pass there, which is tried when it is first
# wanted.
usual_seconds() { # TREE SUITE
    local begin=$SECONDS known
    known=$(awk -v suite="$2" '$1 == suite { last = $2 } END { print last }' "$1/times")
    [ -z "$known" ] || { echo "$known"; return; }
    run_suite "$1" ./clean "$2" 300 || {
        { tail -n 20 "$1/said"; echo "mutations: suite $2 fails as it is"; } >&2
        return 1
    }
    known=$((SECONDS - begin + 1))
    echo "$2 $known" | tee -a "$1/times" | cut -d ' ' -f 2
}

prepare() { # TREE ISA
    refresh "$1"
    build "$1" "$2" || { tail -n 20 "$1/log" >&2; echo 'mutations: the tree does not build' >&2; return 1; }
    echo "$2" >"$1/isa"
    cmp -s "$1/build/release/tests/runner" "$1/clean" && return
    cp "$1/build/release/tests/runner" "$1/clean"
    : >"$1/times"
}

verdict_on() { # TREE PATH: the suite that has killed it, or nothing
    local tried=' ' suite usual
    for suite in $(first_for "$2") $others; do
        case $tried in *" $suite "*) continue ;; esac
        tried="$tried$suite "
        usual=$(usual_seconds "$1" "$suite") || return
        run_suite "$1" build/release/tests/runner "$suite" "$usual" || { echo "$suite"; return; }
    done
}

try() { # TREE NUMBER PATH OLD NEW ID
    local verdict suite isa=baseline
    case $3 in *isa_*.h) isa=${3##*isa_} isa=${isa%.h} ;; esac
    if ! OLD=$4 NEW=$5 awk -f "$here/apply.awk" "$root/$3" >"$scratch/$2" 2>"$scratch/$2.said"; then
        verdict="error: $(cat "$scratch/$2.said")"
    elif [ "$(cat "$1/isa")" != "$isa" ] && ! prepare "$1" "$isa"; then
        verdict="error: the tree does not build for $isa alone"
    else
        cp "$scratch/$2" "$1/$3"
        if ! build "$1" "$isa"; then
            verdict='error: it does not compile'
        else
            if ! suite=$(verdict_on "$1" "$3"); then
                verdict='error: a suite fails as it is'
            else
                verdict=${suite:+killed by ${suite%-long}}
                [ -n "$verdict" ] || [ -z "$others" ] || verdict=survived
            fi
        fi
        cp "$root/$3" "$1/$3"
    fi
    rm -rf "${scratch:?}/$(basename "$1")"
    verdict=${verdict:-survived its room}
    printf '%s\t%s\n' "$6" "$verdict" >>"$results"
    echo "$2 $3: $4 ==> $5: $verdict"
}

# What survived its room is known to a quick run only.
is_known() { # ID
    local last
    last=$(grep "^$1	" "$results" | tail -n 1 | cut -f2)
    case $last in '') return 1 ;; *room) [ -z "$others" ] ;; esac
}

work_through() { # JOB
    local tree=$work/tree$1 number path old new reason id first
    prepare "$tree" baseline || exit 1
    first=$((($1 - 1) * $(wc -l <"$scratch/wanted") / jobs + 1))
    while IFS=$'\t' read -r number path old new reason; do
        id=$(id_of "$path" "$old" "$new")
        # Whoever makes the folder has it.
        is_known "$id" && continue
        mkdir "$scratch/taken$number" 2>/dev/null || continue
        try "$tree" "$number" "$path" "$old" "$new" "$id" </dev/null
    done < <(tail -n +$first "$scratch/wanted"; head -n $((first - 1)) "$scratch/wanted")
}

wanted "$@" | sed 's/\t\t/\t \t/g' >"$scratch/wanted"
[ -s "$scratch/wanted" ] || { echo 'mutations: none is wanted' >&2; exit 2; }
if [ -z "$work" ]; then
    bad=0
    while IFS=$'\t' read -r number path old new _; do
        OLD=$old NEW=$new awk -f "$here/apply.awk" "$root/$path" 2>&1 >/dev/null |
            sed "s|^|mutations: $number $path: ${old//[\\|&]/.}: |" >"$scratch/said"
        [ ! -s "$scratch/said" ] || { cat "$scratch/said" >&2; bad=1; }
    done <"$scratch/wanted"
    exit $bad
fi
touch "$results"
while IFS=$'\t' read -r _ path old new _; do
    id=$(id_of "$path" "$old" "$new")
    case $again in
    A) echo "$id" ;;
    a) grep "^$id	" "$results" | grep -qv '	killed' && echo "$id" ;;
    esac
done <"$scratch/wanted" >"$scratch/forget"
grep -v -F -f "$scratch/forget" "$results" >"$scratch/kept" || true
[ -z "$again" ] || cp "$scratch/kept" "$results"

for job in $(seq "$jobs"); do
    work_through "$job" &
    pids="$pids $!"
done
failed=0
for pid in $pids; do wait "$pid" || failed=1; done
[ $failed = 0 ] || exit 1

killed=0 explained=0 bad=0
while IFS=$'\t' read -r number path old new reason; do
    verdict=$(grep "^$(id_of "$path" "$old" "$new")	" "$results" | tail -n 1 | cut -f2)
    reason=${reason# }
    case $verdict in
    killed*)
        killed=$((killed + 1))
        [ -z "$reason" ] || { echo "mutations: $number is $verdict, and its explanation is wrong"; bad=$((bad + 1)); } ;;
    survived)
        if [ -n "$reason" ]; then
            explained=$((explained + 1))
        else
            echo "mutations: $number survives: $path: $old ==> $new"
            bad=$((bad + 1))
        fi ;;
    *) echo "mutations: $number $path: $old ==> $new: ${verdict:-no result}" && bad=$((bad + 1)) ;;
    esac
done <"$scratch/wanted"
all=$(wc -l <"$scratch/wanted")
awk -v all="$all" -v killed=$killed -v explained=$explained -v bad=$bad 'BEGIN {
    printf "mutations: %d of %d killed (%.1f %%), %d survive with a reason, %d are to be looked at\n",
        killed, all, 100 * killed / all, explained, bad }'
[ $bad = 0 ]
