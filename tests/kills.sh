#!/bin/sh
# Kills trainings that save at every step, 1,000 times or TIMES for each optimizer, and compares their
# end with that of an undisturbed training. make check does this a few times.
#
#     tests/kills.sh RUNNER [TIMES]
set -eu
NORMGRAD_KILLS=${2:-1000} CK_RUN_SUITE=training CK_RUN_CASE=kills exec "$1"
