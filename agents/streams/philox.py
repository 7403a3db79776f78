"""The bits of a stream: Philox4x64-10 [1]_, as NumPy's ``Philox`` hands them out.

References
----------
.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
   SC 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..compilation.compiled import compiled

EXACT: dict[str, Any] = {
    "fastmath": False,
    "error_model": "numpy",
    "boundscheck": False,
    "forceinline": False,
    "_nrt": False,
}
"""How samplers are compiled: as written, without exceptions and memory.

All is said, for numba takes what is not said from the caller for whose sake a function is compiled first.
"""
SMALL = {**EXACT, "forceinline": True}
"""How their parts are, which LLVM puts into them."""
ALLOCATING = {**EXACT, "_nrt": True}
"""How those are that need memory for a while."""

LOW32 = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ONE = np.uint64(1)


@compiled(**SMALL)
def begin_stream(stream, tick, number, reactions):  # pragma: no cover - compiled
    """Go to the beginning of what `hushnet.protocols.view.View.stream` gives one step; seed and purpose stay.

    Parameters
    ----------
    stream : (WORDS,) uint64
    tick : int
        Of the agent's clock, counting skipped wake-ups, ``>= -1``.
    number : int
        The agent's stable id (`hushnet.simulator.network.randomness.stable_ids`).
    reactions : int
        Messages that the agent reacted to since that tick: which of the steps of a tick this is; 0 for wake-ups.
    """
    stream[0] = 0
    stream[1] = np.uint64(np.int64(tick) + 1)
    stream[2] = np.uint64(number)
    stream[3] = np.uint64(reactions)
    stream[10] = 4
    stream[11] = 0


def _product(_, _a, _b):
    """The upper and lower 64 bits of a product of two uint64."""

    def code(_context, builder, _signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(word, wide) for word in arguments))
        upper = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))
        pair = ir.Constant(ir.ArrayType(ir.IntType(64), 2), ir.Undefined)
        pair = builder.insert_value(pair, upper, 0)
        return builder.insert_value(pair, builder.trunc(product, ir.IntType(64)), 1)

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), code


product: Any = intrinsic(_product)


@compiled(**EXACT)
def _next_block(stream):  # pragma: no cover - compiled
    """Philox4x64-10 of the next counter. One stream never has 2^64 blocks, so nothing is carried into the ids."""
    stream[0] += ONE
    c0, c1, c2, c3, k0, k1 = stream[0], stream[1], stream[2], stream[3], stream[4], stream[5]
    for _ in range(10):
        upper0, lower0 = product(np.uint64(0xD2E7470EE14C6C93), c0)
        upper1, lower1 = product(np.uint64(0xCA5A826395121157), c2)
        c0, c1, c2, c3 = upper1 ^ c1 ^ k0, lower1, upper0 ^ c3 ^ k1, lower0
        k0 += np.uint64(0x9E3779B97F4A7C15)
        k1 += np.uint64(0xBB67AE8584CAA73B)
    stream[6], stream[7], stream[8], stream[9] = c0, c1, c2, c3
    stream[10] = 0


@compiled(**SMALL)
def next_word(stream):  # pragma: no cover - compiled
    """The next 64 random bits, a uint64."""
    if stream[10] >= np.uint64(4):
        _next_block(stream)
    word = stream[np.uint64(6) + stream[10]]
    stream[10] += ONE
    return word


@compiled(**SMALL)
def next_half(stream):  # pragma: no cover - compiled
    """The next 32 random bits, a uint64: the lower half of a word, and next time its upper half.

    A half that is left stays for the next draw of 32 bits, whatever is drawn between them.
    """
    if stream[11]:
        stream[11] = 0
        return stream[12]
    word = next_word(stream)
    stream[11] = 1
    stream[12] = word >> HALF
    return word & LOW32
