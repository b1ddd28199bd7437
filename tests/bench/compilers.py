#!/usr/bin/env python3
"""Least times of the library by each compiler that is found, in one process and in turns.

For each compiler the library and the rows of compilers.c become a shared object FOLDER/NAME.so. Those
that are there already take part too, such as those of another system's compilers. All are loaded. On
a row that one takes more than 1.15 times the best time for, they get further turns, so that only
lasting differences are marked."""
import argparse
import ctypes
import glob
import os
import shutil
import subprocess
import sys

LIMIT, TURNS, ROUNDS = 1.15, 6, 20


def run(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def build(folder):
    candidates = [cc + version for cc in ("gcc", "clang")
                  for version in ("", *(f"-{n}" for n in range(11, 24)))]
    built = set()
    for cc in filter(shutil.which, candidates):
        name = f"{cc.split('-')[0]}-{run(cc, '-dumpversion').split('.')[0].strip()}"
        if name in built:
            continue
        built.add(name)
        print(f"building with {cc}", file=sys.stderr)
        library = f"{folder}/{name}/release/libnormgrad.a"
        run("make", "-s", f"-j{os.cpu_count()}", f"BUILD={folder}/{name}", f"CC={cc}", library)
        run(cc, "-std=c11", "-D_DEFAULT_SOURCE", "-O2", "-fPIC", "-shared", "-pthread", "-Iinclude",
            "tests/bench/compilers.c", library, "-lz", "-lm", "-Wl,--exclude-libs,ALL", "-o",
            f"{folder}/{name}.so")


def load(path):
    library = ctypes.CDLL(path)
    library.row_open.restype = library.row_run.restype = ctypes.c_bool
    library.least = (ctypes.c_double * 2)()
    return library


def measure(libraries, row, milliseconds):
    """The row's name, and its least times forward and backward by each; None after the last."""
    name = ctypes.create_string_buffer(64)
    for library in libraries:
        library.least[:] = 1e30, 1e30
        if not library.row_open(row, name) or not library.row_run(2, library.least):
            return None
    count = min(max(int(1e3 * milliseconds / TURNS / sum(libraries[0].least)), 1), 100)
    for _ in range(ROUNDS):
        for _ in range(TURNS):
            for library in libraries:
                library.row_run(count, library.least)
        ways = list(zip(*(library.least for library in libraries)))
        if all(max(times) <= LIMIT * min(times) for times in ways):
            break
    return name.value.decode(), ways


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="where the builds are")
    parser.add_argument("--isa", help="the instruction set: avx512, avx2, baseline")
    parser.add_argument("--milliseconds", type=float, default=12, help="for a row and compiler")
    parser.add_argument("--build", action="store_true", help="only build")
    parser.add_argument("--marked", action="store_true", help="print only rows over the limit")
    options = parser.parse_args()
    if options.isa:
        os.environ["NORMGRAD_ISA"] = options.isa
    build(options.folder)
    if options.build:
        return
    paths = sorted(glob.glob(f"{options.folder}/*.so"))
    names = [os.path.basename(path)[:-3] for path in paths]
    libraries, over, rows = [load(path) for path in paths], dict.fromkeys(names, 0), 0
    print(f"| {options.isa or ''} | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
    while (measured := measure(libraries, rows // 2, options.milliseconds)):
        for way, times in zip(("forward", "backward"), measured[1]):
            rows += 1
            marked = [t > LIMIT * min(times) for t in times]
            for name, mark in zip(names, marked):
                over[name] += mark
            cells = [f"**{t:.4g}**" if mark else f"{t:.4g}" for t, mark in zip(times, marked)]
            if any(marked) or not options.marked:
                print(f"| {measured[0]} {way} | {' | '.join(cells)} |", flush=True)
    print(f"\nOf {rows} rows over {LIMIT} times the best: "
          + ", ".join(f"{name} {count}" for name, count in over.items()))


if __name__ == "__main__":
    main()
