#!/bin/sh
# Every public declaration has its sentence, and every function its man page, which formats without a
# warning; and the script that says so can say no.
#
#     tests/reference.sh FOLDER
set -eu
folder=$1
rm -rf "$folder"
mkdir -p "$folder/man3"
failed=0

for header in include/*.h include/normgrad/*.h; do
    awk -v lint=1 -f src/reference.awk "$header" >&2 || failed=1
    awk -v man="$folder/man3" -f src/reference.awk "$header"
done

sed -n 's/^NG_API .*[ *]\(ng_[a-z0-9_]*\)(.*/\1/p; s/^# *define \(ng_[a-z0-9_]*\)(.*/\1/p' \
    include/normgrad/*.h | sort -u >"$folder/functions"
while read -r name; do
    [ -s "$folder/man3/$name.3" ] || { echo "reference: $name has no man page" >&2; failed=1; }
done <"$folder/functions"
if command -v groff >/dev/null; then
    grep -L '^\.so' "$folder"/man3/*.3 | xargs groff -man -ww -z >"$folder/groff" 2>&1 || true
    [ ! -s "$folder/groff" ] || { cat "$folder/groff" >&2; failed=1; }
fi

# A function, a constant and a member without a word.
cat >"$folder/mute.h" <<'H'
/* A header. */
NG_API void ng_mute(void);

#define NG_MUTE 1

/* A struct with one that is told. */
typedef struct {
    int told; /* this one */
    int mute;
} ng_pair;
H
awk -v lint=1 -f src/reference.awk "$folder/mute.h" >"$folder/mute" && failed=1
[ "$(sed 's/.*: \(.*\) has no sentence/\1/' "$folder/mute" | tr '\n' ' ')" = 'ng_mute NG_MUTE ng_pair.mute ' ] || {
    echo 'reference: of a header without sentences it says:' >&2
    cat "$folder/mute" >&2
    failed=1
}
[ $failed = 0 ] || exit 1
echo "reference: every declaration has its sentence, $(wc -l <"$folder/functions") functions their man page"
