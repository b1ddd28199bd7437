# Names of the kernels with their instruction set and dtype: normgrad.c includes the kernels once for
# each of them, and no two static functions, types or constants of one file may have the same name.
#
#     awk -f src/names.awk src/kernels/*.inc src/kernels/*.h > names.h

function put(name) { if (!(name in seen)) print "#define " name " NG_OF_TABLE(" name ")"; seen[name] }

BEGIN {
    print "#define NG_OF_TABLE_NAMED(name, isa, real) name##_##isa##_##real"
    print "#define NG_OF_TABLE_OF(name, isa, real) NG_OF_TABLE_NAMED(name, isa, real)"
    print "#define NG_OF_TABLE(name) NG_OF_TABLE_OF(name, ISA, REAL)"
}
/^#ifndef .*_H$/ { shared = FILENAME } # a header with a guard, of which there is one copy
FILENAME == shared { next }
/^}/ { in_enum = 0 }
in_enum && / = / { put($1) }
/^enum/ { in_enum = 1 }
# The last word before parentheses, brackets, a value or the end.
/^(static|NG_INLINE|NG_APART|typedef|}) ./ {
    gsub(/__attribute__\(\(.*\)\)/, "")
    sub(/[(\[=;].*/, "")
    gsub(/\*/, " ")
    if ($NF != "{") put($NF)
}
