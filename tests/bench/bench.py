#!/usr/bin/env python3
"""normgrad beside its peers and beside what the machine allows, in one run.

Each engine is a process of its own for each number of threads (engine.h). For each case all engines
make their buffers. Then they take turns, a short burst of runs each, for several rounds. A burst
gives the median of its runs, the rounds the median of these. So other work on the machine and the
clock's changes meet all engines alike.

The table has microseconds of normgrad, with 1 and 2 threads. The other columns are times divided by
normgrad's of as many threads: a peer above 1 is slower. The roof is a copy, or with two inputs a
triad, of arrays of the same size; for a step its matrix products at the rate of a large square one."""
import argparse
import functools
import glob
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TITLE = {"normgrad": "normgrad", "roof": "roof", "pytorch": "PyTorch", "compiled": "torch.compile",
         "onednn": "oneDNN"}
PEERS = ("pytorch", "compiled", "onednn")
CPUINFO = open("/proc/cpuinfo").read()

# What sets an instruction set: of normgrad and the roof, of PyTorch and torch.compile, of oneDNN and of
# OpenBLAS. An OpenBLAS older than the processor does not find its wide registers by itself.
ISAS = {"avx512": ("avx512", "avx512", "DEFAULT", "SkylakeX"),
        "avx2": ("avx2", "avx2", "AVX2", "Haswell"),
        "baseline": ("baseline", "default", "SSE41", "Nehalem")}
ISA_VARIABLES = ("NORMGRAD_ISA", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE")


# ---- The cases: group, name, shape ----------------------------------------------------------------

NORMS = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm", "batch_norm": "BatchNorm"}
# Kernel and stride; images as batch x channels x side, and the channels that come out.
CONVOLUTIONS = [("conv5/2", "64x16x14>32"), ("depthwise3/1", "32x64x16>64"),
                ("depthwise7/1", "8x96x32>96")]
# A^T and B^T lie in memory the other way. A linear layer multiplies x W^T, its gradients dy W and dy^T x.
PRODUCTS = [("AB", "16x16x16"), ("AB", "32x128x64"), ("AB", "1024x1024x1024"), ("AB^T", "32x128x64"),
            ("AB^T", "32x128x128"), ("AB^T", "64x128x128"), ("AB^T", "256x1024x784"),
            ("A^TB", "128x128x32"), ("A^TB", "1024x784x256")]
# Widths and batch of a network with LayerNorm and ReLU; batch and side of the images, text or steps.
STEPS = [("mlp", "64-32-10@32"), ("mlp", "64-128*2-10@32"), ("mlp", "784-256*2-10@64"),
         ("mlp", "784-1024*2-10@256"), ("mlp", "64-128*32-10@64"), ("cnn", "64x28"),
         ("transformer-4x128", "8x128"), ("lstm-64", "64x50")]
SECOND = [(norm, "1024x768") for norm in NORMS] + [(step, "64-128*2-10@64")
                                                   for step in ("penalty", "maml", "hvp")]
WAYS = ("forward", "backward")
COMPILED = tempfile.TemporaryDirectory(prefix="inductor-")
SIDE = 1536  # of the square product whose rate is the roof of a step


def all_cases(quick):
    norm_shapes = ("32x64", "128x128", "1024x768", "4096x768", "8192x4096")[:4 if quick else 5]
    pointwise = ("gelu", "softmax", "cross_entropy", "bias_add", "residual_add")
    depths, batches = ((2, 16), (1, 16, 256, 4096)) if quick else \
        ((2, 4, 8, 16, 32, 64), (1, 4, 16, 64, 256, 1024, 4096))
    yield from ((f"norm_{way}", n, shape) for way in WAYS for n in NORMS for shape in norm_shapes)
    yield from (("second", *case) for case in SECOND)
    yield from ((f"pointwise_{way}", op, "4096x768") for op in pointwise for way in WAYS)
    yield from ((f"conv_{way}", *case) for case in CONVOLUTIONS for way in WAYS)
    yield from (("product", *case) for case in PRODUCTS)
    yield from (("step", *case) for case in STEPS)
    yield from (("scale", "depth", f"64-128*{depth}-10@64") for depth in depths)
    yield from (("scale", "batch", f"64-128*2-10@{batch}") for batch in batches)


GROUPS = sorted({re.sub("_(for|back)ward", "", group) for group, *_ in all_cases(True)})


def label(case):
    group, name, shape = case
    way = group.partition("_")[2]
    shape = shape.replace("*", "x").replace("@", ", batch ").replace(">", " to ")
    if group == "second":
        group = "gradient of a gradient,"
    elif group != "step":
        group = ""
    return " ".join(filter(None, (group, NORMS.get(name, name.replace("_", " ")), way, shape)))


def takes_part(engine, case, quick):
    """Which cases an engine is asked for. To compile one takes half a minute, 32 layers many."""
    group, _, shape = case
    if engine == "compiled":
        return not quick and (group == "step" and shape in ("784-256*2-10@64", "64x28", "8x128") or
                              group.startswith("norm") and shape.endswith("x768"))
    return engine != "roof" or roof_of(case)[0] is not None


def flops(name, shape):
    """Multiplications and additions of the products of a step: each three times (forward, and two
    backward), but of the first layer two. Of the attention a causal mask leaves half."""
    if name.startswith("lstm"):
        batch, steps, n = *map(int, shape.split("x")), int(name[5:])
        return 2 * 5 * batch * steps * 4 * n * n
    if name.startswith("transformer"):
        layers, dim, batch, length = map(int, re.findall(r"\d+", f"{name} {shape}"))
        return batch * length * (layers * (72 * dim * dim + 6 * length * dim) + 6 * dim * 96)
    if name == "cnn":
        batch = int(shape.split("x")[0])
        return 2 * batch * (2 * 25 * 16 * 14**2 + 3 * 25 * 16 * 32 * 7**2 + 3 * 49 * 32 * 10)
    widths, batch = shape.split("@")
    sizes = [int(w) for part in widths.split("-")
             for w in part.split("*")[:1] * int((part.split("*") + [1])[1])]
    products = [n * m for n, m in zip(sizes, sizes[1:])]
    return int(batch) * (6 * sum(products) - 2 * products[0])


def roof_of(case):
    """The case that the roof measures in place of this one, None for none, and what part of its time
    counts."""
    group, name, shape = case
    back = group.endswith("backward")
    if group == "step":
        return ("product", "AB", f"{SIDE}x{SIDE}x{SIDE}"), flops(name, shape) / (2 * SIDE**3)
    if not re.match("norm|pointwise", group) or back and name.endswith("add"):
        return None, 1
    two = back != (name == "residual_add") and name != "cross_entropy"
    return ("stream", "triad" if two else "copy", shape), 1


# ---- An engine ------------------------------------------------------------------------------------


def environment(engine, threads, spin, isa):
    """Threads of an idle engine must not take the processors from the one that is timed, but those
    of a busy one start fast only if they spin for a while. So they spin for a millisecond or two,
    and the driver pauses for longer than that after each answer. Threads of OpenMP that spin hold
    up those of OpenBLAS, which take turns with them in a step: there they spin shortly.

    PyTorch takes a tensor's memory from malloc each time. glibc is told to keep what was freed, so
    that the same comes again. What torch.compile compiles calls Sleef, which Debian's PyTorch hides
    inside; what it compiled for another instruction set may crash, so each run begins anew."""
    values = dict(os.environ, OMP_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads,
                  GOMP_SPINCOUNT=spin, KMP_BLOCKTIME=1, OPENBLAS_THREAD_TIMEOUT=20)
    for name in ("OMP_WAIT_POLICY", *ISA_VARIABLES):
        values.pop(name, None)
    if isa:
        values.update(zip(ISA_VARIABLES, ISAS[isa]))
    if engine in ("pytorch", "compiled"):
        values.update(MALLOC_MMAP_MAX_=0, MALLOC_TRIM_THRESHOLD_=10**12, MALLOC_TOP_PAD_=1 << 26)
        if not isa and "avx512f" in CPUINFO:
            values["OPENBLAS_CORETYPE"] = "SkylakeX"
    sleef = glob.glob("/usr/lib/*/libsleef.so.3")
    if engine == "compiled":
        values["LD_PRELOAD"] = " ".join(sleef)
        values["TORCHINDUCTOR_CACHE_DIR"] = COMPILED.name
    return {name: str(value) for name, value in values.items()}


class Engine:
    """A process that times a case when it is asked to. `missing`: why it cannot be had."""

    def __init__(self, name, threads, spin, isa, folder):
        command = {"normgrad": [f"{folder}/engine", name], "roof": [f"{folder}/engine", name],
                   "onednn": [f"{folder}/engine_onednn"]}.get(
                       name, [sys.executable, f"{HERE}/engine_torch.py", name])
        self.name, self.threads, self.missing = name, threads, "it is missing; make deps-bench"
        try:
            self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE,
                                            env=environment(name, threads, spin, isa))
        except FileNotFoundError:
            return
        state, _, self.title = self.process.stdout.readline().strip().partition(" ")
        if state == "ready":
            self.missing = None
        elif state == "no":
            self.missing = self.title

    def ask(self, *words):
        """The answer to a line; "" from one that is missing, or has died, which is then missing."""
        if self.missing:
            return ""
        try:
            print(*words, file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.missing = "it has ended"
            print(f"{self.title} has ended, and is left out from here on", file=sys.stderr)
        time.sleep(0.003)
        return answer


@functools.cache
def start(*settings):
    return Engine(*settings)


def engines_of(case, options):
    short = not re.match("norm|pointwise", case[0])
    for name in TITLE:
        if takes_part(name, case, options.quick):
            spin = 3000 if short and name in ("pytorch", "compiled") else 30000
            for threads in options.threads:
                yield start(name, threads, spin, options.isa, options.engines)


# ---- Measuring ------------------------------------------------------------------------------------


def burst_of(case, options):
    """Milliseconds without a pause. A training goes on and on, so that its step is timed when the
    clock, the caches and the threads' help are those of a run that is under way. Of large arrays a
    short burst has two or three runs, the first in caches full of another's."""
    return options.milliseconds * (4 if case[0] == "step" or case[2] == "8192x4096" else 1)


def measure(case, options):
    """Median microseconds by engine and number of threads."""
    times, part = {}, {}
    for engine in engines_of(case, options):
        asked, share = roof_of(case) if engine.name == "roof" else (case, 1)
        if engine.ask("open", *asked) == "ok":
            times[engine], part[engine] = [], share
    begin = time.monotonic()
    for done in range(options.rounds):
        if done and time.monotonic() - begin > options.patience:
            break
        for engine in times:
            answer = engine.ask("time", burst_of(case, options), options.least)
            if answer:
                times[engine].append(float(answer) * part[engine])
    for engine in times:
        engine.ask("close")
    return {(engine.name, engine.threads): statistics.median(values)
            for engine, values in times.items() if values}


# ---- What is printed and written ------------------------------------------------------------------


def figure(x):
    return f"{x:.3g}" if x < 99.95 else f"{x:.0f}"


def print_row(case, times, columns, threads):
    cells = []
    for name in columns:
        values = [times.get((name, n)) for n in threads]
        if name != "normgrad":
            values = [x and x / times["normgrad", n] for x, n in zip(values, threads)]
        cells.append(" / ".join(figure(x) if x else "-" for x in values) if any(values) else "")
    print(f"| {label(case):47} | " + " | ".join(f"{cell:15}" for cell in cells) + " |", flush=True)


def print_standing(results, threads):
    """On how many rows no peer is faster; the others, with the peer's time by normgrad's."""
    rows, behind = 0, []
    for case, times in results.items():
        for n in threads:
            peer, fastest = min(((p, times[p, n]) for p in PEERS if (p, n) in times),
                                key=lambda pair: pair[1], default=(None, 0))
            rows += peer is not None
            if peer and fastest < times["normgrad", n]:
                behind.append(f"{label(case)} on {n} ({TITLE[peer]} "
                              f"{fastest / times['normgrad', n]:.2f})")
    print(f"\n{rows} rows beside a peer: first on {rows - len(behind)}, behind on {len(behind)}"
          + (": " if behind else "") + "; ".join(behind))


def write_results(results, options):
    os.makedirs(options.output, exist_ok=True)
    with open(f"{options.output}/results.tsv", "w") as file:
        print("group", "case", "shape", "threads", "engine", "median_us", sep="\t", file=file)
        for case, times in results.items():
            for (name, threads), value in times.items():
                print(*case, threads, name, f"{value:.6g}", sep="\t", file=file)


def write_figure(results, head, options):
    """How many times as fast as its peers, each with the number of threads that suits it best."""
    with open(f"{options.output}/bench_ratio.dat", "w") as file:
        threads = "one thread" if options.threads == [1] else "each at its best number of threads"
        print(f"# what: float, {threads}, {head}", file=file)
        print('"case"', *(f'"{TITLE[peer]}"' for peer in PEERS), file=file)
        for case, times in results.items():
            if case[0] != "step" and not (case[0].startswith("norm") and
                                          case[2] in ("128x128", "4096x768")):
                continue
            best = {name: min((times[name, n] for n in options.threads if (name, n) in times),
                              default=None) for name in ("normgrad", *PEERS)}
            ratios = (f"{best[peer] / best['normgrad']:.4g}" if best[peer] else "?" for peer in PEERS)
            print(f'"{label(case)}"', *ratios, file=file)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", required=True, help="folder of the engines' programs")
    parser.add_argument("--group", help=f"only these of {','.join(GROUPS)}")
    parser.add_argument("--isa", choices=ISAS, help="the instruction set of all engines")
    parser.add_argument("--quick", action="store_true", help="shorter, without torch.compile")
    parser.add_argument("--threads", help="numbers of threads (default 1,2)",
                        default="1,2" if os.cpu_count() > 1 else "1")
    parser.add_argument("--output", default="build/bench", help="folder of results.tsv")
    options = parser.parse_args()
    options.threads = [int(count) for count in options.threads.split(",")]
    options.rounds, options.least, options.milliseconds, options.patience = \
        (3, 2, 5, 0.4) if options.quick else (5, 3, 15, 6)
    return options


def main():
    options = parse_options()
    groups = options.group.split(",") if options.group else GROUPS
    if not set(groups) <= set(GROUPS):
        sys.exit(f"bench: --group={options.group}, expected some of {', '.join(GROUPS)}")
    cases = [case for case in all_cases(options.quick)
             if re.sub("_(for|back)ward", "", case[0]) in groups]
    started = {engine.name: engine for case in cases for engine in engines_of(case, options)}
    for name, engine in started.items():
        if engine.missing:
            print(f"Without {TITLE[name]}: {engine.missing}")
    columns = [name for name in TITLE if name in started and not started[name].missing]
    if "normgrad" not in columns:
        sys.exit("bench: normgrad does not run")
    model = re.findall("model name.*: (.*)", CPUINFO)[:1]
    head = "; ".join(model + [started[name].title for name in columns if name != "roof"])
    titles = [f"{TITLE[name]} {options.isa or ''}" for name in columns]
    print(f"{head}\n\n| {'':47} | " + " | ".join(f"{title:15}" for title in titles) + " |")
    print("|---" * (1 + len(columns)) + "|", flush=True)
    results = {}
    for case in cases:
        times = measure(case, options)
        if all(("normgrad", n) in times for n in options.threads):
            results[case] = times
            print_row(case, times, columns, options.threads)
    write_results(results, options)
    write_figure(results, head, options)
    print_standing(results, options.threads)


if __name__ == "__main__":
    main()
