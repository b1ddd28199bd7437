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

fail() { echo "programs: $*" >&2; exit 1; }

# fails STATUS TEXT COMMAND...: the command ends with this status and prints this text on stderr.
fails() {
    status=$1 text=$2
    shift 2
    got=0
    "$@" >"$folder/output" 2>"$folder/said" || got=$?
    [ "$got" -eq "$status" ] || fail "$* ended with $got, expected $status"
    grep -q -- "$text" "$folder/said" || fail "$* printed: $(cat "$folder/said"), expected: $text"
}

into_full() { "$@" >/dev/full; }

rm -rf "$folder/here" "$folder/prefix" "$folder/steps"
mkdir -p "$folder/here/plots" "$folder/here/build" "$folder/prefix/bin" "$folder/steps/build" "$folder/steps/examples"
for program; do
    "$program" --help | grep -q usage || fail "$program --help shows no usage"
    fails 2 'help' "$program" --nothing-like-it
    if [ -w /dev/full ]; then fails 1 'cannot write to standard' into_full "$program" --help; fi
done
programs=$(cd "$(dirname "$1")" && pwd)
# The six steps of examples/README.md and README's program, which run in the project's directory.
ln -s "$tree/examples/data" "$folder/steps/examples/data"
cd "$folder/steps"
shows() { # PATTERN PROGRAM ARGUMENTS: the program prints a line of this pattern
    pattern=$1 program=$2
    shift 2
    "$programs/$program" "$@" >"$folder/output" || fail "$program ended with $?: $(cat "$folder/output")"
    grep -q -- "$pattern" "$folder/output" || fail "expected '$pattern' in: $(cat "$folder/output")"
}
shows '^4 of 4 answers are right$' 1_xor
shows 'weights loaded' 2_digits
shows '^the formula is right, 3 of 3 mistakes are caught$' 3_own_norm
shows '\[\.\.\.\]' 5_transformer 60
shows '^loaded: 9' quickstart
shows '^20 of 20 layers have right gradients$' gradcheck
shows '^3 of 3 planted faults were found$' gradcheck GELU
if command -v gnuplot >/dev/null; then
    shows layer_norm 4_compare_norms
    shows '^residual .* ok$' 6_second_order
    grep -q '</svg>' build/4_compare_norms.svg && grep -q '</svg>' build/6_second_order.svg || fail 'a step draws no figure'
fi

# Short runs in a directory of their own: data from the tree, results in build/.
cd "$folder/here"
small='--seeds 1 --epochs 1'
quiet() { "$@" >"$folder/output" || fail "$* ended with $?"; }
quiet "$programs/digits" $small
quiet "$programs/gallery"
quiet "$programs/digits_cnn" --seeds 1 --epochs 1
quiet "$programs/char_transformer" --layers 1 --width 16 --heads 2 --context 16 --batch 200 --epochs 1
quiet "$programs/ngpt" --steps 2
for program in wgan_gp maml vae; do quiet "$programs/$program" --steps 20; done
for result in convergence digits_cnn char_transformer ngpt wgan_gp maml vae; do
    grep -q '^# what: ' "build/$result.dat" || fail "no build/$result.dat"
done
[ -z "$(ls plots)" ] || fail "without --out plots/ the programs wrote plots/$(ls plots)"
if [ -w /dev/full ]; then
    fails 1 'cannot write to standard output' into_full "$programs/digits" $small
    ! into_full "$programs/gradcheck" GELU || fail 'gradcheck succeeds on a full disk'
fi
fails 2 'expected --images and --labels' "$programs/digits_cnn" --images train-images-idx3-ubyte.gz

# A training that is stopped and resumed many times gives the results of one that is not stopped.
transformer="$programs/char_transformer --layers 1 --width 32 --heads 2 --context 32"
training="$transformer --batch 40 --epochs 2 --dropout 0.1 --norm layer_norm,none"
quiet $training --out whole
got=130 pause=400
while [ "$got" -ne 0 ]; do
    got=0
    timeout -s TERM $((pause / 1000)).$(printf %03d $((pause % 1000))) \
        $training --out parts --checkpoint state --resume >"$folder/output" 2>&1 || got=$?
    case $got in 0 | 124 | 130) ;; *) fail "$training ended with $got: $(cat "$folder/output")" ;; esac
    pause=$((pause + pause / 50)) # longer each time, for slow machines
    [ "$pause" -lt 20000 ] || fail "$training did not end"
done
cmp whole.dat parts.dat || fail "$training: stopped and resumed, it gives other results"
fails 2 'expected --checkpoint' $transformer --resume
quiet $transformer --batch 400 --epochs 1 --checkpoint other
fails 1 'ng_training_resume' $transformer --batch 400 --epochs 1 --checkpoint other --resume --lr 0.1

# A learning rate at which every training diverges.
fails 1 'the training has diverged' "$programs/digits" $small --norm none,layer_norm --optimizer sgd --lr 1e30

# Data: in the directory that NORMGRAD_DATA names, or in the project's.
cp "$programs/digits" "$folder/prefix/bin"
fails 1 'there is no examples/data/digits.csv' env NORMGRAD_DATA=/nowhere "$folder/prefix/bin/digits"

# A file that cannot be written is a failure before the training.
fails 1 'no/such' "$programs/digits" $small --out no/such/prefix
fails 1 'no/such' "$programs/outliers" --quick --out no/such/file
fails 2 "--norm '': expected some of" "$programs/digits" --norm ''

echo 'programs: --help, data, output files, resumed trainings and error messages are right'
