#!/bin/sh
# The shared library exports the names of src/normgrad.symbols, no more and no fewer.
#
#     tests/scripts/symbols.sh LIBRARY
set -eu
listed=$(sed '/^#/d; s/ .*//' src/normgrad.symbols)
exported=$(nm -D --defined-only "$1" | awk '{ print $3 }')
wrong=$({ echo "$listed" | sed 's/^/listed /'; echo "$exported" | sed 's/^/exported /'; } |
    awk '{ where[$2] = where[$2] $1 } END { for (name in where)
        if (where[name] == "listed") print name " is listed and not exported"
        else if (where[name] == "exported") print name " is exported and not listed" }' | sort)
[ -z "$wrong" ] || { echo "$wrong" | sed 's|^|lint: src/normgrad.symbols: |' >&2; exit 1; }
