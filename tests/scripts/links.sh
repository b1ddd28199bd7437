#!/bin/sh
# Every link in a folder of HTML pages leads to a file, and to an anchor in it if it names one.
#
#     tests/scripts/links.sh FOLDER
set -eu
cd "$1"
grep -oE '(href|src)="[^"]*"' ./*.html | sed -E 's/^\.\///; s/:(href|src)="/ /; s/"$//' |
    grep -vE ' ([a-z]+:|#$)' | sort -u | while read -r page link; do
    file=${link%%#*}
    [ -e "${file:-$page}" ] || { echo "links: $page leads to $file, which is not there"; continue; }
    case $link in
    *.html\#* | \#*) grep -qE "(id|name)=\"${link#*#}\"" "${file:-$page}" || echo "links: $page: there is no $link" ;;
    esac
done >links.txt
[ ! -s links.txt ] || { cat links.txt >&2; exit 1; }
rm links.txt
