"""The signatures of compiled steps, one for each kind of kernel; codes are those of `hushnet.protocols.kernel`."""

from __future__ import annotations

from numba import types

_REAL, _WHOLE = types.float64[::1], types.int64[::1]

STEP = types.int64(
    types.int64,
    types.int64,
    types.float64,
    types.int64,
    types.int64,
    types.int64,
    _WHOLE,
    types.float64[:, ::1],
    _WHOLE,
    _WHOLE,
)
"""``step(agent, tick, now, updates, first, last, known, pool, rows, table)``.

The agent's in-edges are ``first`` to ``last - 1`` in the order of its neighbours, ``known[e]`` is the row of ``pool``
with the newest vector of the first kind heard there, or -1; that of the k-th kind is E k places further on. The step
writes what it sends into the rows ``rows`` of the pool, by its kernel's `ports` in turn: one row for each, or one for
each neighbour. Its state is where ``table`` says (`hushnet.agents.compilation.address_table`). It returns `SILENT`,
`UNSAID`, `PLAIN` and `UNBOUNDED` added up.
"""

EXCHANGE = types.int64(
    types.int64,
    types.int64,
    types.int64,
    types.float64,
    types.int64,
    types.int64,
    types.int64,
    types.int64,
    _WHOLE,
    types.float64[:, ::1],
    _REAL,
    _REAL,
    _WHOLE,
)
"""Half of an exchange, or its opening.

``step(phase, agent, tick, now, updates, edge, first, last, known, pool, heard, message, table)``: in each `phase` an
agent acts on one of its own directed edges, the one to its partner. It reads what it has ``heard`` from it (the request
in `RESPONDING`, the reply in `COMPLETING`, nothing in `REQUESTING`), writes what it answers into ``message`` (the
request in `REQUESTING`, the reply in `RESPONDING`, nothing in `COMPLETING`), and its state. What it has heard of all
neighbours is as in `STEP`; ``known[e]`` is of the layout's first kind of message. It returns `PLAIN` and `UNBOUNDED`
added up.
"""
