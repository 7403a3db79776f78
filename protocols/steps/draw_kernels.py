"""Kernels that draw for a batch of agents, row by row, each from the stream of its own agent and step.

A stream is at its beginning when a step begins, and goes on while it lasts; what a row draws does not depend on the
others. All numbers are NumPy's (`hushnet.agents.streams`).
"""

from __future__ import annotations

from ...agents.compilation.compiled import compiled
from ...agents.streams.laws import integers
from ...agents.streams.philox import ALLOCATING, begin_stream
from ...agents.streams.vectors import choose, fill_laplace, fill_normal, fill_spherical, fill_uniform

GAUSSIAN, LAPLACE, GAMMA = range(3)
MECHANISMS = {"gaussian": GAUSSIAN, "laplace": LAPLACE, "gamma": GAMMA}
"""Mechanisms whose noise kernels draw, and the law of `hushnet.agents.streams.disagreement` of each."""
LAWS = {"gaussian": "normal", "laplace": "Laplace", "gamma": "spherical"}


@compiled(**ALLOCATING)
def begin_streams(words, ticks, numbers, reactions, streams):  # pragma: no cover - compiled
    """Fill (B, WORDS) with streams at their beginning, of one seed and purpose."""
    for b in range(len(streams)):
        streams[b] = words
        begin_stream(streams[b], ticks[b], numbers[b], reactions[b])


@compiled(**ALLOCATING)
def fill_noise(streams, mechanism, scales, noisy, out):  # pragma: no cover - compiled
    """Fill the rows of (B, width) that are ``noisy`` with noise of their scale, and the others with zeros."""
    for b in range(len(out)):
        if not noisy[b]:
            out[b] = 0.0
        elif mechanism == GAUSSIAN:
            fill_normal(streams[b], scales[b], out[b])
        elif mechanism == LAPLACE:
            fill_laplace(streams[b], scales[b], out[b])
        else:
            fill_spherical(streams[b], scales[b], out[b])


@compiled(**ALLOCATING)
def choose_rows(streams, rows, starts, ranks):  # pragma: no cover - compiled
    """Fill ranks[starts[b]:starts[b + 1]] with a sample without replacement of each agent's ``rows``."""
    for b in range(len(rows)):
        own = ranks[starts[b] : starts[b + 1]]
        if len(own) == 1:
            own[0] = integers(streams[b], rows[b])
        elif len(own) > 1:
            choose(streams[b], rows[b], own)


@compiled(**ALLOCATING)
def choose_each(streams, rows, shares, uniforms, ranks, starts):  # pragma: no cover - compiled
    """Fill ``ranks`` with the rows of which each is drawn with a share of its own, and ``starts`` with their segments.

    ``uniforms`` has room for the rows of any agent, ``ranks`` for those of all.
    """
    count = 0
    for b in range(len(rows)):
        starts[b] = count
        fill_uniform(streams[b], uniforms[: rows[b]])
        for row in range(rows[b]):
            if uniforms[row] < shares[b]:
                ranks[count] = row
                count += 1
    starts[len(rows)] = count
