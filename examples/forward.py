#!/usr/bin/env python3
"""A forward operator that dpg knows nothing about: exec:./examples/forward.py

Each request is one NPY array on stdin (float32, C order, [N, C, H, W], values in [-1, 1]); the answer is one NPY array
on stdout (float32, C order, [N, ...]). Messages belong on stderr. Needs nothing but Python; with NumPy, read() and
write() are np.lib.format.read_array(sys.stdin.buffer) and np.lib.format.write_array(sys.stdout.buffer, y).
"""
import array
import ast
import math
import struct
import sys


def read():
    """The next request as (shape, numbers), or None at the end."""
    start = sys.stdin.buffer.read(10)
    if len(start) < 10:
        return None
    header = ast.literal_eval(sys.stdin.buffer.read(struct.unpack("<H", start[8:])[0]).decode())
    numbers = array.array("f")
    numbers.frombytes(sys.stdin.buffer.read(4 * math.prod(header["shape"])))
    return header["shape"], numbers


def write(shape, numbers):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}).encode() + b"\n"
    sys.stdout.buffer.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + numbers.tobytes())
    sys.stdout.buffer.flush()  # without this the answer waits in a buffer, and dpg waits for it


def forward(shape, x):
    """Half the resolution on a sensor that clips at half the range: put your own here."""
    n, c, h, w = shape
    y = array.array("f")
    for image in range(n * c):
        for row in range(0, h - 1, 2):
            i = (image * h + row) * w
            above, below = x[i:i + w], x[i + w:i + 2 * w]
            squares = zip(above[0::2], above[1::2], below[0::2], below[1::2])
            means = [(p + q + r + s) / 4 for p, q, r, s in squares]
            y.extend([-0.5 if m < -0.5 else 0.5 if m > 0.5 else m for m in means])
    return (n, c, h // 2, w // 2), y


while (request := read()) is not None:
    write(*forward(*request))
