#!/bin/sh
# Tests of the example programs: --help, unknown options, a full disk, data found from any folder,
# output files, interrupted and resumed trainings, trainings that diverge, and refused settings.
#
#     tests/scripts/programs.sh FOLDER PROGRAM...
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
tree=$PWD

fail() {
    echo "programs: $*" >&2
    exit 1
}

# fails STATUS TEXT COMMAND...: the command ends with this status and prints this text on stderr.
fails() {
    status=$1 text=$2
    shift 2
    got=0
    "$@" >"$folder/output" 2>"$folder/said" || got=$?
    [ "$got" -eq "$status" ] || fail "$* ended with $got, expected $status"
    grep -q -- "$text" "$folder/said" || fail "$* printed: $(cat "$folder/said"), expected: $text"
}

# Runs a command with standard output on a full disk.
into_full() {
    "$@" >/dev/full
}

place() { # the directory of a program, from any directory
    case $1 in /*) dirname "$1" ;; *) dirname "$tree/$1" ;; esac
}

rm -rf "$folder/here" "$folder/prefix"
mkdir -p "$folder/here/plots" "$folder/here/build" "$folder/prefix/bin"
for program; do
    "$program" --help | grep -q usage || fail "$program --help shows no usage"
    fails 2 'help' "$program" --nothing-like-it
    if [ -w /dev/full ]; then fails 1 'cannot write to standard' into_full "$program" --help; fi
done
programs=$(cd "$(place "$1")" && pwd)
# Programs built outside the tree cannot find the data by their own path.
case $programs in "$tree"/*) ;; *) export NORMGRAD_DATA="$tree/examples/data" ;; esac

# The six steps of examples/README.md and README's program, which run in the project's directory.
rm -rf "$folder/steps"
mkdir -p "$folder/steps/build" "$folder/steps/examples"
ln -s "$tree/examples/data" "$folder/steps/examples/data"
cd "$folder/steps"
step() { # PROGRAM ARGUMENTS: runs it into $folder/output
    "$programs/$1" ${2:-} >"$folder/output" || fail "$1 ended with $?: $(cat "$folder/output")"
}
says() { # PATTERN: $folder/output has it
    grep -q -- "$1" "$folder/output" || fail "expected '$1' in: $(cat "$folder/output")"
}
step 1_xor
says '^4 of 4 answers are right$'
step 2_digits
awk '/^ +15 / { trained = $3 } /weights drawn/ { drawn = $(NF - 1) } /weights loaded/ { loaded = $(NF - 1) }
    /^ +[0-9] / && NF == 11 { row = $1; for (i = 2; i <= NF; i++) { all += $i; if (i - 2 == row) right += $i } }
    END { exit !(trained > 95 && drawn < 50 && loaded == trained && all == 360 &&
                 sprintf("%.1f", 100 * right / all) == loaded) }' "$folder/output" ||
    fail "2_digits: accuracies and confusion matrix do not agree: $(cat "$folder/output")"
step 3_own_norm
says '^the formula .* ok'
says '^the formula is right, 3 of 3 mistakes are caught$'
awk '/^mistake/ { mistake = $2; order[$2] = $0 ~ /1, 2  / ? 2 : 1; failed += /FAILED: 12 wrong/ }
    /off by a constant in each row/ { constant = constant mistake }
    /off by a multiple of x - mean in each row/ { line = line mistake }
    END { exit !(failed == 3 && constant == "1:" && line == "2:3:" && order["1:"] == 1 && order["3:"] == 2) }' \
    "$folder/output" || fail "3_own_norm: the checker is to say what is wrong: $(cat "$folder/output")"
step 5_transformer 60
awk '/^ +1 / { first = $3 } /^ +60 / { last = $3 } / \[\.\.\.\] / { written = 1 }
    END { exit !(first > 4 && last < 3.2 && written) }' "$folder/output" ||
    fail "5_transformer has not learned: $(cat "$folder/output")"
if command -v gnuplot >/dev/null; then
    step 4_compare_norms
    awk 'NF > 5 && $NF > 0 { if (/^none/) none = $(NF - 4); else if (/_norm/) { rows++; worse += $(NF - 4) < none } }
        END { exit !(none > 80 && rows == 5 && worse == 0) }' "$folder/output" ||
        fail "4_compare_norms: expected five norms better than none: $(cat "$folder/output")"
    step 6_second_order
    says '^residual .* ok$'
    awk '/^ +3000 / { exit !($3 < 0.01) }' "$folder/output" || fail "6_second_order: $(cat "$folder/output")"
    for figure in 4_compare_norms 6_second_order; do
        grep -q '</svg>' "build/$figure.svg" || fail "$figure draws no figure"
    done
fi
step quickstart
says '^loaded: 9'

# Short runs in a directory of their own: data from the tree, results in build/.
cd "$folder/here"
small='--seeds 1 --epochs 1'
tiny='--layers 1 --width 16 --heads 2 --context 16 --steps 20 --sample 10'
quiet() { "$@" >"$folder/output" || fail "$* ended with $?"; }
quiet "$programs/digits" $small
quiet "$programs/digits_cnn" --seeds 1 --epochs 1
quiet "$programs/char_transformer" $tiny
quiet "$programs/ngpt" --steps 2
for program in outliers regularization; do quiet "$programs/$program" --quick; done
for program in wgan_gp maml vae lstm; do quiet "$programs/$program" --steps 20; done
for result in convergence digits_cnn char_transformer ngpt outliers regularization wgan_gp maml vae lstm; do
    grep -q '^# what: ' "build/$result.dat" || fail "no build/$result.dat"
done
[ -z "$(ls plots)" ] || fail "without --out plots/ the programs wrote plots/$(ls plots)"
quiet "$programs/digits" $small --norm none --out plots/
[ "$(ls plots)" = convergence.dat ] || fail "--out plots/ wrote $(ls plots), expected convergence.dat"
if [ -w /dev/full ]; then
    fails 1 'cannot write to standard output' into_full "$programs/digits" $small
    fails 1 'cannot write to standard output' into_full "$programs/gradcheck" --only tanh --fast
    fails 1 'cannot write to standard output' into_full "$programs/outliers" --quick
fi
# The first failure is reported, not its consequences.
fails 1 'NORMGRAD_ISA is "none"' env NORMGRAD_ISA=none "$programs/1_xor"

# 400 digits in MNIST's file format, their pixels (0 to 16) times 15.
idx() { # AWK-PROGRAM: writes the bytes that it prints as octal numbers
    printf '%b' "$(head -n 400 "$tree/examples/data/digits.csv" | awk -F, "$1")"
}
idx 'BEGIN { printf "\\0\\0\\010\\003\\0\\0\\001\\0220\\0\\0\\0\\010\\0\\0\\0\\010" }
    { for (i = 1; i <= 64; i++) printf "\\0%03o", $i * 15 }' >images
idx 'BEGIN { printf "\\0\\0\\010\\001\\0\\0\\001\\0220" } { printf "\\0%03o", $65 }' >labels
gzip -kf images labels
mnist="$programs/mnist --epochs 4"
without_times() { sed 's/[0-9.]* s$//' "$folder/output"; }
quiet $mnist --images images --labels labels --train 300
without_times >plain
quiet $mnist --images images.gz --labels labels.gz --train 300
without_times >packed
cmp plain packed || fail 'mnist: compressed files give other results'
awk '/^batch_norm +epoch +4 / { exit !($7 > 80) }' packed || fail "mnist: accuracy below 80 %: $(cat packed)"
quiet $mnist --images images --labels labels --test-images images --test-labels labels --norm none --epochs 1
fails 2 'expected --images and --labels' "$programs/mnist"
fails 1 'ng_dataset_read_idx' $mnist --images nowhere --labels labels

# A training that is stopped and resumed many times gives the results of one that is not stopped.
same_curves() { # COMMAND...
    quiet "$@" --out whole
    times=0 got=130 pause=400
    rm -f state*
    while [ "$got" -ne 0 ]; do
        got=0
        seconds=$((pause / 1000)).$(printf %03d $((pause % 1000)))
        timeout -s TERM "$seconds" "$@" --out parts --checkpoint state --resume >"$folder/output" 2>&1 || got=$?
        case $got in 0 | 124 | 130) ;; *) fail "$* ended with $got: $(cat "$folder/output")" ;; esac
        times=$((times + 1)) pause=$((pause + pause / 50)) # longer each time, for slow machines
        [ "$times" -lt 200 ] || fail "$* did not end in 200 resumed runs"
    done
    cmp whole.dat parts.dat || fail "$*: stopped and resumed, it gives other results"
}
transformer="$programs/char_transformer --layers 1 --width 32 --heads 2 --context 32 --sample 0"
same_curves $transformer --steps 150 --dropout 0.1 --norm layer_norm,none
for count in 1 3; do
    quiet "$programs/digits" --epochs 1 --seeds 3 --norm none,layer_norm --at-once $count --out "by$count"
done
cmp by1.dat by3.dat || fail 'digits: --at-once changes the results'
# With other settings it is refused.
fails 2 'expected --checkpoint' $transformer --resume
quiet $transformer --steps 10 --checkpoint other
fails 1 'ng_training_resume' $transformer --steps 10 --checkpoint other --resume --lr 0.1

# A learning rate at which every training diverges.
fails 1 'the training has diverged' "$programs/digits" $small --norm none,layer_norm --optimizer sgd --lr 1e30
fails 1 'the training has diverged' "$programs/char_transformer" $tiny --norm none --lr 999

# Data: in the directory that NORMGRAD_DATA names, or in the project's.
cp "$programs/digits" "$folder/prefix/bin"
fails 1 'there is no examples/data/digits.csv' env NORMGRAD_DATA=/nowhere "$folder/prefix/bin/digits"
quiet env NORMGRAD_DATA="$tree/examples/data" "$folder/prefix/bin/digits" $small --norm none
printf '1,2,0\n3,4,1\n' >two.csv
quiet "$programs/digits" $small --norm none --lr 0.01 --data two.csv
fails 1 'more than one value per channel' "$programs/digits" $small --norm batch_norm --data two.csv

# A file that cannot be written is a failure before the training.
fails 1 'no/such' "$programs/digits" $small --out no/such/prefix
fails 1 'no/such/file' "$programs/outliers" --quick --verdicts no/such/file
[ ! -s "$folder/output" ] || fail 'outliers starts although it cannot write its verdicts'
fails 1 'no/such/file' $transformer --checkpoint no/such/file

# Settings without sense.
fails 2 "--out '': expected something" "$programs/digits" $small --out ''
fails 2 "--seeds '': expected a whole number" "$programs/digits" --seeds ''
fails 2 "--norm '': expected some of" "$programs/digits" --norm ''
fails 2 "--optimizer adam,sgd: expected one of" "$programs/digits" --optimizer adam,sgd
fails 2 'expected a whole number from 1 to 256' "$programs/outliers" --threads 257
fails 2 '--steps 7: expected a multiple of 8' "$programs/without_norm" --quick --steps 7
fails 2 'from 1 to 1437' "$programs/sharpness" --quick --images 5000
# More steps than the text has batches: the text is read again.
quiet "$programs/placement" --quick --layers 3 --width 4 --steps 720

echo 'programs: --help, data, output files, resumed trainings and error messages are right'
