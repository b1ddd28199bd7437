"""Writes numpy*.npy and numpy*.npz: arrays as NumPy saves them, for test_numpy.c.

    python3 tests/golden/make_numpy.py              writes the files
    python3 tests/golden/make_numpy.py read FILE    prints the arrays of a file that the library saved

Element i of an array, row by row, is 3 i - 7, halved where the dtype has halves, 3 i where it has no
sign, and i odd for bool.
"""
import io
import os
import sys
import zipfile
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def array(dtype, *shape, order="C"):
    dtype = np.dtype(dtype)
    i = np.arange(int(np.prod(shape)))
    value = {"f": (3 * i - 7) / 2, "i": 3 * i - 7, "u": 3 * i, "b": i % 2 == 1}[dtype.kind]
    return np.asarray(value.reshape(shape), dtype=dtype, order=order)


def path(name):
    return os.path.join(HERE, name)


def write_all():
    np.save(path("numpy.npy"), array("<f4", 3, 4))
    for version in (1, 2, 3):
        with open(path("numpy%d.npy" % version), "wb") as out:
            np.lib.format.write_array(out, array(">f8", 2, 3, 4, order="F"), version=(version, 0))
    arrays = {name: array(name, 3, 4) for name in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1".split()}
    arrays["big"] = array(">i2", 3, 4)
    arrays["fortran"] = array("f2", 2, 3, 5, order="F")
    arrays["scalar"] = array("f8")
    arrays["row"] = array("f4", 5)
    arrays["none"] = array("f4", 0, 3)
    arrays["x"] = array("u1", 6, 2, 2)
    arrays["y"] = array("u1", 6)
    np.savez(path("numpy.npz"), **arrays)
    np.savez_compressed(path("numpy_compressed.npz"), **arrays)
    # A byte after the array that its header and the directory do not count.
    content = io.BytesIO()
    np.save(content, array("f4", 3))
    with zipfile.ZipFile(path("numpy_longer.npz"), "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("x.npy", content.getvalue() + b"!")
    with open(path("numpy_longer.npz"), "r+b") as out:
        entry = out.read().rindex(b"PK\1\2")
        out.seek(entry + 24)
        out.write(len(content.getvalue()).to_bytes(4, "little"))
    steps = np.arange(16 * 65536) // 4096
    np.savez_compressed(path("numpy_steps.npz"), x=steps.astype("f4").reshape(16, 65536))


if len(sys.argv) == 3 and sys.argv[1] == "read":
    found = np.load(sys.argv[2])
    for key, value in (found.items() if hasattr(found, "items") else [("", found)]):
        print(key, value.dtype, value.shape, value.tolist())
else:
    write_all()
