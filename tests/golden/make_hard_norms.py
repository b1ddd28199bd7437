"""Writes hard_norms.npz: rows on which norms lose digits, and their results, correctly rounded.

    python3 tests/golden/make_hard_norms.py        needs the standard library alone

Everything is computed in fractions; 1 / sqrt(var + eps) is one of 700 bits. tests/accuracy/README.md
says what the arrays are."""
import math
import os
import random
import struct
import zipfile
from fractions import Fraction

N = 37
EPS = Fraction(1, 2**17)
FORMATS = {"f32": ("<f", "<f4", 24, -149), "f64": ("<d", "<f8", 53, -1074)}


def rounded(x, format):
    """The nearest number of the format, ties to even; the largest ones are never reached."""
    _, _, bits, least = FORMATS[format]
    if x == 0:
        return 0.0
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - bits + 1, least)
    whole, rest = divmod(size, unit)
    # What is rounded is a fraction of 700 bits: it must not be next to a tie.
    assert rest == unit / 2 or abs(rest / unit - Fraction(1, 2)) > Fraction(1, 2**300)
    if rest > unit / 2 or (rest == unit / 2 and whole % 2):
        whole += 1
    return math.copysign(float(whole * unit), x)


def inverse_root(x):
    """1 / sqrt(x) to 700 bits."""
    shift = 700 + max(0, x.numerator.bit_length() - x.denominator.bit_length())
    return Fraction(math.isqrt((1 << 2 * shift) * x.denominator // x.numerator), 1 << shift)


def mean(values):
    return sum(values) / len(values)


def norm(x, gamma, beta, dy, v, rms):
    """y, the gradients dx and dgamma, and those of sum(v dx) with respect to x and dy."""
    middle = 0 if rms else mean(x)
    off = [a - middle for a in x]
    square = mean([a * a for a in off]) + EPS
    rstd = inverse_root(square)
    g = [a * b for a, b in zip(gamma, dy)]
    dot = lambda a, b: mean([c * d for c, d in zip(a, b)])
    centre = lambda a: 0 if rms else mean(a)

    def passed(a):
        along = dot(a, off) / square
        return [b - centre(a) - c * along for b, c in zip(a, off)]

    w = [dot(g, off) * a + dot(v, off) * b for a, b in zip(v, g)]
    both = dot(v, g) - centre(v) * centre(g) - dot(v, off) * dot(g, off) / square
    return {
        "y": [a * rstd * b + c for a, b, c in zip(off, gamma, beta)],
        "dx": [rstd * a for a in passed(g)],
        "dgamma": [a * b * rstd for a, b in zip(dy, off)],
        "d2x": [-rstd / square * (a * both + b) for a, b in zip(off, passed(w))],
        "d2dy": [a * rstd * b for a, b in zip(gamma, passed(v))],
    }


def rows_of(format, draw):
    """The rows x and, where it matters, gamma and dy."""
    single = format == "f32"
    z = lambda: [draw.gauss(0, 1) for _ in range(N)]
    step = 2.0**-10 if single else 2.0**-39  # of numbers from 8192 to 16384
    rows = [[m + a for a in z()] for m in (0, 1e2, 1e4, 1e6, 1e7)]
    rows += [[s * a for a in z()] for s in (1e-30, 1e-10, 1e10, 1e30)]
    rows += [[1e6] + z()[1:], [1e4 + a for a in z()[1:]] + [-1e6]]
    rows += [[1.1] * N, [1e4] * (N - 1) + [1e4 + step]]
    rows += [[1e4 + step * draw.randrange(2) for _ in range(N)]]
    rows += [[(1e-40 if single else 1e-149) * (a + math.copysign(0.1, a)) for a in z()]]
    rows += [[(3.4e38 if single else 1e150) * a / (1 + abs(a)) for a in z()]]
    return [(x, None, None) for x in rows] + [(z(), [1] * N, [1] * N), (z(), [1] * N, "xhat")]


def main():
    arrays = {}
    for format in FORMATS:
        draw = random.Random(1)
        near = lambda values: [rounded(Fraction(a), format) for a in values]
        for x, gamma, dy in rows_of(format, draw):
            x = near(x)
            gamma = near(gamma or [1 + draw.gauss(0, 0.25) for _ in range(N)])
            beta, v = (near([draw.gauss(0, 1) for _ in range(N)]) for _ in range(2))
            if dy == "xhat":
                middle, deviation = sum(x) / N, math.sqrt(sum(a * a for a in x) / N)
                dy = [(a - middle) / deviation for a in x]
            dy = near(dy or [draw.gauss(0, 1) for _ in range(N)])
            given = {"x": x, "gamma": gamma, "beta": beta, "dy": dy, "v": v}
            for name, row in given.items():
                arrays.setdefault(f"{format}_{name}", []).append(row)
            exact = {name: [Fraction(a) for a in row] for name, row in given.items()}
            for kind in ("layer", "rms"):
                for name, row in norm(**exact, rms=kind == "rms").items():
                    arrays.setdefault(f"{format}_{kind}_{name}", []).append(near(row))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hard_norms.npz")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in arrays.items():
            pack, descr, _, _ = FORMATS[name[:3]]
            head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(rows)}, {N}), }}"
            head += " " * (-(len(head) + 11) % 64) + "\n"
            data = b"".join(struct.pack(pack, a) for row in rows for a in row)
            file = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
            file.compress_type = zipfile.ZIP_STORED
            archive.writestr(
                file, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data
            )


main()
