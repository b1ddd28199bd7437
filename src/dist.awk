# Writes the library as two files. What a file includes by "..." is put in its place; a header with a
# guard stands once. The kernels, which normgrad.c includes for each instruction set and dtype, stand
# once as well, at the end: there the written file includes itself.
#
#     awk -v version=0.3.0 -v file=normgrad.h -f src/dist.awk HEADER... > normgrad.h
#     awk -v version=0.3.0 -v file=normgrad.c -v names=names.h -f src/dist.awk HEADER... > normgrad.c
#
# names.h is written by names.awk.
# The headers are all of include/normgrad/, in the order in which they are to be read.

function fail(text)
{
    print "dist: " text > "/dev/stderr"
    failed = 1
    exit 1
}

# Prints a file and what it includes.
function put(path,    line, name, guard, lines, i, n)
{
    while ((getline line < path) > 0) {
        lines[++n] = line
        if (guard == "" && match(line, /^#ifndef (NG|NORMGRAD)_[A-Z0-9_]+_H$/)) guard = substr(line, 9)
    }
    close(path)
    if (guard != "" && seen[guard]++) return
    if (n == 0) fail(path " is missing or empty")
    if (public && guard != "") # its last line ends the guard
        while (lines[n] != "#endif") n--
    for (i = 1; i <= n; i++) {
        line = lines[i]
        if (public && guard != "" && (line == "#ifndef " guard || line == "#define " guard || i == n)) continue
        if (line ~ /^#include <normgrad\//) {
            if (!public) continue
            name = substr(line, 11)
            sub(/>.*/, "", name)
            put("include/" name)
        } else if (line == "#include \"kernels/table.c\"") {
            if (!tables++) print "#define NG_TABLE"
            print "#include NG_FILE"
        } else if (line == "#include \"names.h\"") {
            put(names)
        } else if (line ~ /^#include "/) {
            name = substr(line, 11)
            sub(/".*/, "", name)
            put("src/" name)
        } else {
            print line
        }
    }
}

# The comment at the head of include/normgrad.h.
function put_introduction(    line)
{
    while ((getline line < "include/normgrad.h") > 0 && line !~ /^#ifndef/) print line
}

# Whether all of a header belongs to data sets, histories and files.
function is_of_files(path) { return path ~ /\/(data|evaluate|history|plot|training)\.h$/ }

function put_header(    i)
{
    public = 1
    print "/* normgrad " version " in two files: cc -O2 program.c normgrad.c -lm -lpthread builds a program."
    print " * Programs in C++ (from C++17 on) include this header; normgrad.c is compiled as C. With -DNG_NO_IO"
    print " * nothing of files is declared. normgrad.c lists all options. */"
    put_introduction()
    print "#ifndef NORMGRAD_H"
    print "#define NORMGRAD_H"
    for (i = 1; i < ARGC; i++) {
        if (is_of_files(ARGV[i])) print "\n#ifndef NG_NO_IO"
        print ""
        put(ARGV[i])
        if (is_of_files(ARGV[i])) print "#endif /* NG_NO_IO */"
    }
    print "\n#endif"
}

function put_source()
{
    print "/* normgrad " version ", the library, for gcc or clang: cc -O2 program.c normgrad.c -lm -lpthread builds"
    print " * a program. Options for the compiler are listed below. The file includes itself, once for each"
    print " * instruction set and dtype: under another name, define NG_FILE as that, -DNG_FILE='\"other.c\"'. */"
    print "#ifndef NG_FILE\n#define NG_FILE \"normgrad.c\"\n#endif"
    print "#ifndef NG_TABLE"
    print "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif"
    print "#include \"normgrad.h\""
    put("src/normgrad.c")
    print "#else /* a table of kernels */"
    put("src/kernels/table.c")
    print "#endif"
}

BEGIN {
    if (file == "normgrad.h") put_header()
    else put_source()
    exit failed
}
