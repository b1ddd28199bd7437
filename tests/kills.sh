#!/bin/sh
# Kills trainings that save at every step, a thousand times for each optimizer or as often as told, and
# compares what they end with with a training that nobody has disturbed. A part of the suite does it
# a few times.
#
#     tests/kills.sh RUNNER [TIMES]
set -eu
NORMGRAD_KILLS=${2:-1000} CK_RUN_SUITE=training CK_RUN_CASE=kills exec "$1"
