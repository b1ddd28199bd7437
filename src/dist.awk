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

# The guard of a header, or "".
function guard_of(path,    line, found)
{
    while (found == "" && (getline line < path) > 0)
        if (match(line, /^#ifndef (NG|NORMGRAD)_[A-Z0-9_]+_H$/)) found = substr(line, 9)
    close(path)
    return found
}

# Prints a file of the directory `base` and what it includes.
function put(path,    line, name, guard, lines, i, n)
{
    guard = guard_of(path)
    if (guard != "") {
        if (guard in seen) return
        seen[guard] = 1
    }
    while ((getline line < path) > 0) lines[++n] = line
    close(path)
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

# The comment at the head of include/normgrad.h, and whether each header that it includes is listed.
function put_introduction(    line, i, listed)
{
    for (i = 1; i < ARGC; i++) listed[ARGV[i]] = 1
    while ((getline line < "include/normgrad.h") > 0) {
        if (line ~ /^#ifndef/) introduced = 1
        if (!introduced) print line
        if (line !~ /^#include/) continue
        sub(/.*</, "include/", line)
        sub(/>.*/, "", line)
        if (!(line in listed)) fail(line " is not in the list of headers")
    }
    close("include/normgrad.h")
}

# Whether all of a header belongs to data sets, histories and files.
function is_of_files(path) { return path ~ /\/(data|evaluate|history|plot|training)\.h$/ }

function put_header(    i)
{
    public = 1
    print "/* normgrad " version " in two files. To build a program:"
    print " *"
    print " *     cc -O2 program.c normgrad.c -lm -lpthread"
    print " *"
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
    print "/* normgrad " version ", the whole library. To build a program:"
    print " *"
    print " *     cc -O2 program.c normgrad.c -lm -lpthread"
    print " *"
    print " * gcc or clang, C11 or later. On x86-64 the program chooses kernels for AVX-512, AVX2 or neither"
    print " * when it runs. Options, for the compiler's command line:"
    print " *"
    print " *     -DNG_NO_IO       leaves out data sets, histories and files"
    print " *     -DNG_NO_SIMD     leaves out all kernels but those for any processor of the architecture"
    print " *     -DNG_NO_THREADS  leaves out the thread pool: a kernel runs on the thread that calls it"
    print " *     -DNG_WITH_ZLIB   reads compressed files; needs zlib and -lz"
    print " *"
    print " * The file includes itself, once for each instruction set and dtype. If it has another name, define"
    print " * NG_FILE as that: -DNG_FILE='\"other.c\"'. */"
    print "#ifndef NG_FILE"
    print "#define NG_FILE \"normgrad.c\""
    print "#endif"
    print "#ifndef NG_TABLE"
    print "#ifndef _GNU_SOURCE"
    print "#define _GNU_SOURCE"
    print "#endif"
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
