# Sourced by tests that compile a program of their own:
#
#     compile SOURCE PROGRAM COMPILER FLAGS... -- LIBRARIES...
compile() (
    source=$1 program=$2 command=
    shift 2
    while [ "$1" != -- ]; do
        command="$command $1"
        shift
    done
    shift
    $command "$source" "$@" -o "$program"
)
