#!/bin/sh
# What computes a training calls no function of the C library whose last bits differ from one library
# to another: its results have the same bits everywhere. Square roots, roundings, remainders and powers
# of two are exact.
#
#     tests/scripts/libm.sh OBJECT...
set -eu
functions='a?(sin|cos|tan)h?|atan2|sincos|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|hypot|cbrt|erf|erfc|[lt]gamma'
found=$(nm -A -u "$@" | grep -E " U (_ZGV.*|($functions)[fl]?)\$" | grep -vE '/src/(check|plot)/') || exit 0
echo "$found" | sed 's/^/calls the C library: /' >&2
exit 1
