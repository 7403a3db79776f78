"""Vectors of a stream: noise as the mechanisms draw it, and samples without replacement."""

from __future__ import annotations

import math

import numpy as np

from ..compilation.compiled import compiled
from .laws import gamma, integers, laplace, normal, uniform
from .philox import ALLOCATING, EXACT

BLOCK = 128
"""Numbers that NumPy adds up without halving them."""
SCANNED = 32
"""Samples without replacement up to this size are searched for repetitions one by one."""


@compiled(**EXACT)
def fill_uniform(stream, out):  # pragma: no cover - compiled
    """Fill a (k,) float64 array as ``Generator.random(k)``."""
    for k in range(len(out)):
        out[k] = uniform(stream)


@compiled(**EXACT)
def fill_normal(stream, scale, out):  # pragma: no cover - compiled
    """Fill a (k,) float64 array as ``Generator.normal(0.0, scale, k)``: the noise of mechanism ``gaussian``."""
    for k in range(len(out)):
        out[k] = normal(stream, scale)


@compiled(**EXACT)
def fill_laplace(stream, scale, out):  # pragma: no cover - compiled
    """Fill a (k,) float64 array as ``Generator.laplace(0.0, scale, k)``: the noise of mechanism ``laplace``."""
    for k in range(len(out)):
        out[k] = laplace(stream, scale)


@compiled(**EXACT)
def fill_spherical(stream, scale, out):  # pragma: no cover - compiled
    """Fill a (p,) float64 array with the noise of mechanism ``gamma``: a uniform direction, a norm Gamma(p, scale)."""
    fill_normal(stream, 1.0, out)
    _lengthen(stream, scale, out)


@compiled(**EXACT)
def fill_spherical_rows(stream, scale, out):  # pragma: no cover - compiled
    """Fill the rows of a (k, p) float64 array so, as that mechanism does: all directions are drawn first."""
    for row in range(len(out)):
        fill_normal(stream, 1.0, out[row])
    for row in range(len(out)):
        _lengthen(stream, scale, out[row])


@compiled(**EXACT)
def _lengthen(stream, scale, towards):  # pragma: no cover - compiled
    """Give a direction a norm that is Gamma(p, scale)."""
    factor = gamma(stream, np.float64(len(towards)), scale) / math.sqrt(_sum_of_squares(towards))
    for k in range(len(towards)):
        towards[k] *= factor


@compiled(**EXACT)
def _sum_of_squares(values):  # pragma: no cover - compiled
    """As NumPy adds up the squares of a row."""
    return _sum_at_once(values, 0, len(values)) if len(values) <= BLOCK else _sum_by_halves(values)


@compiled(**ALLOCATING)
def _sum_by_halves(values):  # pragma: no cover - compiled
    """The sum of the left half plus that of the right one, each made so until few are left."""
    starts, counts = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64)
    sums = np.empty(64)
    start, count, depth = 0, len(values), 0
    while True:
        while count > BLOCK:
            half = count // 2 - count // 2 % 8
            starts[depth], counts[depth] = start + half, count - half
            count = half
            depth += 1
        total = _sum_at_once(values, start, count)
        while depth > 0 and counts[depth - 1] == 0:
            depth -= 1
            total = sums[depth] + total
        if depth == 0:
            return total
        start, count = starts[depth - 1], counts[depth - 1]
        sums[depth - 1], counts[depth - 1] = total, 0


@compiled(**EXACT)
def _sum_at_once(values, start, count):  # pragma: no cover - compiled
    """Eight sums side by side."""
    total = 0.0
    whole = count - count % 8 if count >= 8 else 0
    if whole:
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
        for k in range(start, start + whole, 8):
            a0 += values[k] * values[k]
            a1 += values[k + 1] * values[k + 1]
            a2 += values[k + 2] * values[k + 2]
            a3 += values[k + 3] * values[k + 3]
            a4 += values[k + 4] * values[k + 4]
            a5 += values[k + 5] * values[k + 5]
            a6 += values[k + 6] * values[k + 6]
            a7 += values[k + 7] * values[k + 7]
        total = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
    for k in range(start + whole, start + count):
        total += values[k] * values[k]
    return total


@compiled(**ALLOCATING)
def choose(stream, population, out):  # pragma: no cover - compiled
    """A sample without replacement, as ``Generator.choice(population, len(out), replace=False)``.

    Parameters
    ----------
    stream : (WORDS,) uint64
    population : int
        It is drawn from 0 to ``population - 1``.
    out : (count,) int64
        The sample, with ``count <= population``.
    """
    count = len(out)
    if population > 10000 and count > population // 50:
        everybody = np.arange(population)
        for i in range(population - 1, population - count - 1, -1):
            j = integers(stream, i + 1)
            everybody[i], everybody[j] = everybody[j], everybody[i]
        out[:] = everybody[population - count :]
        return
    if count <= SCANNED:
        _draw_few(stream, population, out)
    else:
        _draw_many(stream, population, out)
    for i in range(count - 1, 0, -1):
        j = integers(stream, i + 1)
        out[i], out[j] = out[j], out[i]


@compiled(**EXACT)
def _draw_few(stream, population, out):  # pragma: no cover - compiled
    """Floyd's algorithm: the k-th draw is of one more than the one before, and stands for the new one if repeated."""
    count = len(out)
    for k in range(count):
        newest = population - count + k
        drawn = integers(stream, newest + 1)
        for before in range(k):
            if out[before] == drawn:
                drawn = newest
                break
        out[k] = drawn


@compiled(**ALLOCATING)
def _draw_many(stream, population, out):  # pragma: no cover - compiled
    """Floyd's algorithm, with what was drawn in a table of open addresses."""
    count, size = len(out), 64
    while size < 2 * count:
        size *= 2
    table = np.full(size, -1)
    for k in range(count):
        newest = population - count + k
        drawn = integers(stream, newest + 1)
        place = drawn & (size - 1)
        while table[place] >= 0 and table[place] != drawn:
            place = (place + 1) & (size - 1)
        if table[place] == drawn:
            drawn = newest
            place = drawn & (size - 1)
            while table[place] >= 0:
                place = (place + 1) & (size - 1)
        table[place] = drawn
        out[k] = drawn
