"""Random streams of many agents, drawn in compiled code: the numbers of NumPy's own generators, bit for bit.

An agent's step draws from the generator that `hushnet.simulator.network.randomness.Draws.generator` gives it. To make
one for every agent of a batch would cost more than all that is drawn. So there is one generator for all, and the place
of each in its own stream is a row of words: the counter, and what follows the two pointers of NumPy's state of a
Philox generator (words of its block that were used, the block, half a word that is left); the first word is the root
seed, so that streams of several runs may be drawn from at once. A kernel puts a row into place, draws, and keeps what
became of it.
"""

from __future__ import annotations

import ctypes
import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compilation import part

COUNTER, STATE = 4, 6
WORDS = 1 + COUNTER + STATE
"""Length of a stream's place."""
USED_UP = 4
"""Words of a block that are used before the first is drawn."""
DRAWS: dict[str, Any] = {"error_model": "numpy"}
"""How kernels that draw are compiled: as written."""


class Generator(NamedTuple):
    """One NumPy generator, and where it stands, as an argument of kernels."""

    rng: Any
    key: NDArray[np.uint64]
    """(2,) uint64."""
    counter: NDArray[np.uint64]
    """(COUNTER,) uint64."""
    state: NDArray[np.uint64]
    """(STATE,) uint64: Views of its memory."""


def purpose_word(purpose: str) -> int:
    """The 64 bits of a stream's key that its purpose gives; the other 64 are the root seed."""
    return int.from_bytes(hashlib.blake2s(purpose.encode(), digest_size=8).digest(), "big")


def generator(purpose: str) -> Generator:
    """The generator of all streams of a purpose: ``noise``, ``sampling``, ..."""
    rng = np.random.Generator(np.random.Philox(key=np.array([0, purpose_word(purpose)], dtype=np.uint64)))
    bits: Any = rng.bit_generator
    memory = np.ctypeslib.as_array((ctypes.c_uint64 * (2 + STATE)).from_address(bits.ctypes.state_address))
    counter, key = (
        np.ctypeslib.as_array((ctypes.c_uint64 * words).from_address(int(place)))
        for words, place in zip((COUNTER, 2), memory, strict=False)
    )
    return Generator(rng, key, counter, memory[2:])


def beginnings(seed: Any, *ids: Any) -> NDArray[np.uint64]:
    """(B, WORDS) places at which streams begin, of a root seed, or (B,) one of each, and of up to three ids of each."""
    places = np.zeros((len(ids[0]), WORDS), dtype=np.uint64)
    places[:, 0] = seed
    for column, one in enumerate(ids, start=2):
        places[:, column] = one
    places[:, 1 + COUNTER] = USED_UP
    return places


@part(**DRAWS)
def enter(generator, place):  # pragma: no cover - compiled
    """Put a generator where a stream stands."""
    generator.key[0] = place[0]
    for k in range(COUNTER):
        generator.counter[k] = place[1 + k]
    for k in range(STATE):
        generator.state[k] = place[1 + COUNTER + k]


@part(**DRAWS)
def leave(generator, place):  # pragma: no cover - compiled
    """Keep where a stream stands after some draws."""
    for k in range(COUNTER):
        place[1 + k] = generator.counter[k]
    for k in range(STATE):
        place[1 + COUNTER + k] = generator.state[k]


@part(**DRAWS, forceinline=False)
def choose(rng, population, out):  # pragma: no cover - compiled
    """Fill (count,) int64 as ``Generator.choice(population, count, replace=False)`` does; ``count <= population``.

    Floyd's algorithm, or for large samples of large populations a shuffle's end; a sample of one is one integer.
    """
    count = len(out)
    if count == 1:
        out[0] = rng.integers(0, population)
        return
    if population > 10000 and count > population // 50:
        everybody = np.arange(population)
        for i in range(population - 1, population - count - 1, -1):
            j = rng.integers(0, i + 1)
            everybody[i], everybody[j] = everybody[j], everybody[i]
        out[:] = everybody[population - count :]
        return
    is_drawn = np.zeros(population, dtype=np.bool_)
    for k in range(count):
        newest = population - count + k
        drawn = rng.integers(0, newest + 1)
        if is_drawn[drawn]:
            drawn = newest
        is_drawn[drawn] = True
        out[k] = drawn
    for i in range(count - 1, 0, -1):
        j = rng.integers(0, i + 1)
        out[i], out[j] = out[j], out[i]
