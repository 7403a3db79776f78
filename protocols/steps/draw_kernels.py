"""Kernels that draw for a batch of agents, row by row, each from the stream of its own agent and step.

A stream goes on while a step lasts; what a row draws does not depend on the others. All numbers are NumPy's
(`hushnet.agents.streams`).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.compilation import compiled, is_compiled
from ...agents.streams import DRAWS, Generator, beginnings, choose, enter, generator, leave

Array = NDArray[np.float64]


@compiled(**DRAWS)
def fill_normal(generator, places, scales, noisy, out):  # pragma: no cover - compiled
    """Fill the rows of (B, width) that are ``noisy`` with normal numbers of their scale, and the others with zeros."""
    for b in range(len(out)):
        out[b] = 0.0
        if noisy[b]:
            enter(generator, places[b])
            for k in range(out.shape[1]):
                out[b, k] = generator.rng.normal(0.0, scales[b])
            leave(generator, places[b])


@compiled(**DRAWS)
def fill_uniform(generator, places, out):  # pragma: no cover - compiled
    """Fill (B, k) with uniform numbers of [0, 1)."""
    for b in range(len(out)):
        enter(generator, places[b])
        for k in range(out.shape[1]):
            out[b, k] = generator.rng.random()
        leave(generator, places[b])


@compiled(**DRAWS)
def fill_laplace(generator, places, scales, noisy, out):  # pragma: no cover - compiled
    """`fill_normal`, with Laplace numbers."""
    for b in range(len(out)):
        out[b] = 0.0
        if noisy[b]:
            enter(generator, places[b])
            for k in range(out.shape[1]):
                out[b, k] = generator.rng.laplace(0.0, scales[b])
            leave(generator, places[b])


@compiled(**DRAWS)
def fill_gamma(generator, places, shape, scales, noisy, out):  # pragma: no cover - compiled
    """Fill (B,) with gamma numbers of their scale for the rows that are ``noisy``, and zeros."""
    for b in range(len(out)):
        out[b] = 0.0
        if noisy[b]:
            enter(generator, places[b])
            out[b] = generator.rng.gamma(shape, scales[b])
            leave(generator, places[b])


def fill_spherical(generator: Generator, places: Any, scales: Array, noisy: Any, out: Array) -> None:
    """`fill_normal`, with vectors of uniform direction whose norms are Gamma(width, scale): mechanism ``gamma``."""
    fill_normal(generator, places, np.ones(len(out)), noisy, out)
    norms = np.empty(len(out))
    fill_gamma(generator, places, float(out.shape[1]), scales, noisy, norms)
    lengths = np.linalg.norm(out, axis=-1)
    out *= np.divide(norms, lengths, out=np.zeros(len(out)), where=noisy)[:, None]


FILLS: dict[str, Any] = {"gaussian": fill_normal, "laplace": fill_laplace, "gamma": fill_spherical}
"""Mechanisms whose noise kernels draw."""


@compiled(**DRAWS)
def choose_rows(generator, places, rows, starts, ranks):  # pragma: no cover - compiled
    """Fill ranks[starts[b]:starts[b + 1]] with a sample without replacement of each agent's ``rows``."""
    for b in range(len(rows)):
        if starts[b + 1] > starts[b]:
            enter(generator, places[b])
            choose(generator.rng, rows[b], ranks[starts[b] : starts[b + 1]])
            leave(generator, places[b])


@compiled(**DRAWS)
def choose_each(generator, places, rows, shares, ranks, starts):  # pragma: no cover - compiled
    """Fill ``ranks`` with the rows of which each is drawn with a share of its own, and ``starts`` with their segments.

    ``ranks`` has room for the rows of all agents.
    """
    count = 0
    for b in range(len(rows)):
        starts[b] = count
        enter(generator, places[b])
        for row in range(rows[b]):
            if generator.rng.random() < shares[b]:
                ranks[count] = row
                count += 1
        leave(generator, places[b])
    starts[len(rows)] = count


@cache
def disagreement() -> str:
    """Return the reason why kernels draw other numbers than NumPy's generators; empty if they draw the same.

    NumPy promises no stream for ever, and what it keeps of a generator's state is its own. So some draws are compared,
    once in a process.
    """
    if not is_compiled():
        return "numba is told to compile nothing"
    one, places, out = generator("agreement"), beginnings(6, [7, 8, 9]), np.empty((2, 3, 1001))
    for half in out:
        fill_normal(one, places, np.full(3, 0.3), np.ones(3, dtype=np.bool_), half)
    key = one.rng.bit_generator.state["state"]["key"]
    for b in range(3):
        rng = np.random.Generator(np.random.Philox(key=key, counter=[0, 7 + b, 0, 0]))
        if not np.array_equal(out[:, b].ravel(), rng.normal(0.0, 0.3, 2002)):
            return f"NumPy {np.__version__} draws otherwise than the compiled streams"
    return ""
