#!/usr/bin/env python3
"""Runs the programs of this folder on GradBench's inputs, beside other tools that speak its protocol.

    gradbench.py [--only MODULE] [--tool NAME=COMMAND]...

A tool is a command, in which {} stands for the name of a module. All outputs are compared with
golden.json. A row gives, for each tool, the least time of its runs in milliseconds.

    --golden   writes golden.json from the outputs of the first tool, which was PyTorch
"""
import argparse
import json
import math
import os
import random
import shlex
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


# ---- Inputs of the benchmark's distributions and sizes, the same in every run ---------------------


def draw(number, *shape):
    return [draw(number, *shape[1:]) for _ in range(shape[0])] if shape else number()


def uniform(rng, *shape):
    return draw(rng.random, *shape)


def normal(rng, *shape):
    return draw(lambda: rng.gauss(0, 1), *shape)


def gmm(rng, d, k, n):
    return {"d": d, "k": k, "n": n, "x": normal(rng, n, d), "m": 0, "gamma": 1.0,
            "alpha": normal(rng, k), "mu": uniform(rng, k, d), "q": normal(rng, k, d),
            "l": normal(rng, k, d * (d - 1) // 2)}


# Characters of text as 14 bits, as the benchmark's text needs.
def lstm(rng, layers, characters):
    text = [[float(c == "1") for c in format(rng.choice(range(97, 123)), "014b")]
            for _ in range(characters)]
    return {"main_params": uniform(rng, 2 * layers, 56), "extra_params": uniform(rng, 3, 14),
            "state": uniform(rng, 2 * layers, 14), "sequence": text}


def kmeans(rng, k, n, d):
    points = uniform(rng, n, d)
    return {"points": points, "centroids": points[-k:]}


# One camera, point and observation, as the benchmark repeats one.
def ba(rng, n, m, p):
    return {"n": n, "m": m, "p": p,
            "cam": [0.02, -0.13, 0.002, -0.34, -0.51, 1.13, 751.5, 3.6, -1.2, -4e-4, 6e-8],
            "x": [-0.61, 0.57, -1.85], "w": 0.97, "feat": [-332.65, 262.09]}


# A hand of 22 bones: a wrist, five fingers of four, a forearm. Each vertex follows four of them.
def ht(rng, vertices, n):
    def matrix():
        return [normal(rng, 4) for _ in range(3)] + [[0.0, 0.0, 0.0, 1.0]]

    def weights():
        drawn = uniform(rng, 4)
        row = [0.0] * 22
        for bone, weight in zip(rng.sample(range(22), 4), drawn):
            row[bone] = weight / sum(drawn)
        return row
    model = {"bone_count": 22, "bone_names": [str(i) for i in range(22)],
             "parents": [-1] + [0 if i % 4 == 1 else i - 1 for i in range(1, 22)],
             "base_relatives": [matrix() for _ in range(22)],
             "inverse_base_absolutes": [matrix() for _ in range(22)],
             "base_positions": [normal(rng, 3) + [1.0] for _ in range(vertices)],
             "weights": [weights() for _ in range(vertices)],
             "triangles": [rng.sample(range(vertices), 3) for _ in range(2 * vertices)],
             "is_mirrored": False}
    data = {"model": model, "correspondences": [rng.randrange(2 * vertices) for _ in range(n)],
            "points": normal(rng, n, 3)}
    return {"theta": normal(rng, 26), "data": data, "us": [[x / 2 for x in uniform(rng, 2)]
                                                            for _ in range(n)]}


# For each module the input, the functions (the primal, the gradient, and others that have the
# gradient's output) and the sizes.
MODULES = {
    "hello": (lambda rng: 3.0, ("square", "double"), [()]),
    "gmm": (gmm, ("objective", "jacobian"), [(2, 5, 1000), (10, 25, 10000), (64, 200, 1000)]),
    "lstm": (lstm, ("objective", "jacobian"), [(2, 1024), (6, 8192)]),
    "kmeans": (kmeans, ("cost", "dir"), [(10, 1000, 8), (1000, 10000, 16)]),
    "ba": (ba, ("objective", "jacobian"), [(49, 7776, 31843), (257, 65132, 225911)]),
    "det": (lambda rng, n: {"A": uniform(rng, n * n), "ell": n}, ("primal", "gradient"),
            [(6,), (8,), (10,)]),
    "llsq": (lambda rng, n, m: {"x": uniform(rng, m), "n": n}, ("primal", "gradient"),
             [(16, 128), (16392, 128)]),
    "lse": (lambda rng, n: {"x": uniform(rng, n)}, ("primal", "gradient"), [(2500,), (1280000,)]),
    "ode": (lambda rng, n, s: {"x": uniform(rng, n), "s": s}, ("primal", "gradient"),
            [(1000, 10), (10000, 100)]),
    "ht": (ht, ("objective", "jacobian"), [(544, 1600), (10000, 6400)]),
    "particle": (lambda rng: {"w": 0.0}, (None, "rr", "rf", "fr", "ff"), [()]),
    "saddle": (lambda rng: {"start": [1.0, 1.0]}, (None, "rr", "rf", "fr", "ff"), [()])}


# ---- A tool ---------------------------------------------------------------------------------------


class Tool:
    """A process that answers messages; `present` tells whether it has the module. glibc is told to
    keep what was freed, as bench.py does, so that PyTorch's times have no page faults from the
    second run on."""

    def __init__(self, name, command, module):
        environment = dict(os.environ, OMP_NUM_THREADS="1", MALLOC_MMAP_MAX_="0",
                           MALLOC_TRIM_THRESHOLD_=str(10**12), MALLOC_TOP_PAD_=str(1 << 26))
        self.name, self.id = name, 0
        self.process = subprocess.Popen(shlex.split(command.replace("{}", module)), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment)
        self.present = (self.ask(kind="start", eval=module) is not None
                        and bool(self.ask(kind="define", module=module).get("success")))

    def ask(self, **message):
        message["id"] = self.id
        self.id += 1
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (BrokenPipeError, ValueError):
            return None

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def flat(output):
    """The numbers of an output, row by row, members of objects in order of their names."""
    if isinstance(output, dict):
        return [x for name in sorted(output) for x in flat(output[name])]
    if isinstance(output, list):
        return [x for part in output for x in flat(part)]
    return [float(output)]


def digest(output):
    """An output of any size as five numbers: its length, the largest element, and projections."""
    x = flat(output)
    return [len(x), max(map(abs, x)), math.fsum(x),
            math.fsum(v * math.cos(i) for i, v in enumerate(x)),
            math.fsum(v * math.sin(3 * i) for i, v in enumerate(x))]


def difference(a, b):
    """Of two digests, relative to the sums and to the largest element times the root of the length."""
    if a[0] != b[0]:
        return math.inf
    scale = max(b[1] * math.sqrt(b[0]), *map(abs, b[2:]), 1e-300)
    return max(abs(x - y) for x, y in zip(a[1:], b[1:])) / scale


# ---- The run --------------------------------------------------------------------------------------


def measure(tool, module, functions, problem):
    """The least milliseconds and the digest of each function; nothing where the tool fails."""
    answers = {}
    for function in functions:
        answer = tool.ask(kind="evaluate", module=module, function=function, input=problem)
        if not answer or not answer.get("success"):
            print(f"{module}: {(answer or {}).get('error', 'no answer')}", file=sys.stderr)
            return {}
        times = [t["nanoseconds"] for t in answer["timings"] if t["name"] == "evaluate"]
        answers[function] = min(times, default=0) / 1e6, digest(answer["output"])
    return answers


def figure(x):
    return "-" if x is None else f"{x:.3g}" if x < 99.95 else f"{x:.0f}"


def measure_case(tools, name, functions, problem, golden):
    """A row of the table: primal, gradient and ratio of the first tool, the gradient of the others;
    and how many outputs differ from golden's."""
    primal, gradient, *others = functions
    row, wrong = [], 0
    for i, tool in enumerate(tools):
        asked = [gradient] if i else [f for f in (primal, gradient, *others) if f]
        if i and isinstance(problem, dict):
            problem["min_runs"] = 2
        answers = measure(tool, name.split()[0], asked, problem) if tool.present else {}
        wrong += not i and not answers
        for function, (_, got) in answers.items():
            key = f"{name} {gradient if function in others else function}"
            off = difference(got, golden.setdefault(key, got))
            if not off < 1e-11:
                wrong += 1
                print(f"{name} {function}: {tool.name} differs by {off:.1e}", file=sys.stderr)
        times = [answers.get(function, [None])[0] for function in (primal, gradient)]
        row += times[i > 0:]
        if i == 0:
            row.append(times[1] / times[0] if all(times) else None)
    return row, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--only", help="one module")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a function, at least")
    parser.add_argument("--runs", type=int, default=5, help="of a function, at least")
    parser.add_argument("--golden", action="store_true")
    options = parser.parse_args()
    golden_path = os.path.join(FOLDER, "golden.json")
    golden = {} if options.golden else json.load(open(golden_path))
    wrong = 0
    print("| | primal | gradient | ratio |"
          + "".join(f" {tool.split('=')[0]} |" for tool in options.tool[1:]))
    print("|---|" + "---|" * (2 + len(options.tool)))
    for module, (make, functions, cases) in MODULES.items():
        if options.only not in (None, module):
            continue
        tools = [Tool(*tool.split("=", 1), module) for tool in options.tool]
        for case in cases:
            name = f"{module} {' '.join(map(str, case))}".strip()
            problem = make(random.Random(name), *case)
            if isinstance(problem, dict):
                problem |= {"min_runs": options.runs, "min_seconds": options.seconds}
            asked = functions[:2] if options.golden else functions
            row, off = measure_case(tools, name, asked, problem, golden)
            wrong += off
            print(f"| {name} | " + " | ".join(map(figure, row)) + " |", flush=True)
        for tool in tools:
            tool.close()
    if options.golden:
        with open(golden_path, "w") as file:
            file.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}"
                                          for k, v in golden.items()) + "\n}\n")
    print(f"outputs that differ: {wrong}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
