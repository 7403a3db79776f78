"""Stateless random draws: every draw is a function of the root seed, a purpose and the user's ids.

A draw that belongs to a message or to an agent's clock is one block of Philox4x32-10 [1]_, keyed by the root seed
with the counter (sender id, receiver id, tick of the sender's clock, purpose and transmission). No draw depends on how
many draws were made before it, so all protocols of a scenario meet common random numbers, and a second engine can
recompute any draw instead of storing it. Everything else (data, noise, sampling) comes from NumPy generators, one
named stream per purpose and ids.

References
----------
.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
   SC 2011.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from ...agents.compilation import compiled, part
from ...agents.errors import InputError
from ...agents.parameters import LONGEST
from ...agents.streams import purpose_word

QUANTUM = 2.0**-30
"""Every duration is a multiple of this, so that sums of durations are exact in float64 until time 2^23."""
BEYOND = LONGEST + QUANTUM
"""What a longer duration is drawn as: no run that ends by the clock lives to see the end of it."""


class Purpose(IntEnum):
    """Purpose of a counter-based draw; one byte of the counter."""

    CLOCK = 1
    CLOCK_RATE = 2
    CLOCK_PHASE = 3
    MESSAGE = 4
    LINK_STATE = 5
    AVAILABILITY = 6
    JOIN = 7
    LEAVE = 8
    PARTNER = 9
    SPEED = 10


@part
def philox(key0, key1, counter0, counter1, counter2, counter3):  # pragma: no cover - compiled
    """One block of Philox4x32-10: four 32-bit words (held in uint64) from a 64-bit key and a 128-bit counter."""
    low32 = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    k0, k1 = np.uint64(key0), np.uint64(key1)
    c0, c1, c2, c3 = np.uint64(counter0), np.uint64(counter1), np.uint64(counter2), np.uint64(counter3)
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> shift) ^ c1 ^ k0, p1 & low32, (p0 >> shift) ^ c3 ^ k1, p0 & low32
        k0 = (k0 + np.uint64(0x9E3779B9)) & low32
        k1 = (k1 + np.uint64(0xBB67AE85)) & low32
    return c0, c1, c2, c3


@part
def uniform53(high, low):  # pragma: no cover - compiled
    """A uniform in the open interval (0, 1) with 53 random bits from two words."""
    bits = ((high >> np.uint64(5)) << np.uint64(26)) | (low >> np.uint64(6))
    return (np.float64(bits) + 0.5) * 2.0**-53 if bits < np.uint64(2**53 - 1) else 1.0 - 2.0**-53


@part
def uniform32(word):  # pragma: no cover - compiled
    """A uniform in the open interval (0, 1) with 32 random bits."""
    return (np.float64(word) + 0.5) * 2.0**-32


@part
def draw_one(key0, key1, a, b, c, purpose, transmission):  # pragma: no cover - compiled
    """The first uniform of one block, and the two spare words as uniforms."""
    w0, w1, w2, w3 = philox(key0, key1, a, b, c, (np.uint64(purpose) << np.uint64(24)) | np.uint64(transmission))
    return uniform53(w0, w1), uniform32(w2), uniform32(w3)


draw = compiled(draw_one)
"""`draw_one`, for Python."""


@part(forceinline=False, _nrt=False)
def fill_draws(key0, key1, a, many, c, purpose, transmission, out):  # pragma: no cover - compiled
    """`draw_one` for k second ids, into the first columns of three rows; a processor draws several at a time."""
    for k in range(len(many)):
        out[0, k], out[1, k], out[2, k] = draw_one(key0, key1, a, many[k], c, purpose, transmission)


@compiled
def draw_many(key0, key1, a, many, c, purpose, transmission):  # pragma: no cover - compiled
    """`draw_one` for an array of second ids; returns (len(many), 3)."""
    out = np.empty((len(many), 3))
    for k in range(len(many)):
        out[k, 0], out[k, 1], out[k, 2] = draw_one(key0, key1, a, many[k], c, purpose, transmission)
    return out


def quantise(duration: float) -> float:
    """Round a duration to the nearest multiple of 2^-30 time units.

    >>> quantise(0.1) == round(0.1 * 2**30) / 2**30
    True
    """
    return round(duration / QUANTUM) * QUANTUM


@part(forceinline=False)
def lasting(duration):  # pragma: no cover - compiled
    """A drawn duration as it is waited for: a multiple of 2^-30 time units, and `BEYOND` at most."""
    return np.rint(min(duration, BEYOND) / QUANTUM) * QUANTUM


def check_transmission(transmission: int) -> None:
    """Raise a `ValueError` if there is no draw for this transmission of a tick."""
    if not 0 <= transmission < 2**24:
        raise ValueError(
            f"transmission {transmission} must be at least 0 and below 2^24; an agent sends too often within one tick"
        )


def stable_ids(ids: Sequence[int | str]) -> NDArray[np.uint64]:
    """Turn the user's agent ids into (n,) 32-bit numbers that never depend on order or neighbours.

    Integers below 2^32 stand for themselves; if any id is text, all are hashed. Raises `InputError` if two agents would
    share a number.
    """
    if all(isinstance(i, int | np.integer) and 0 <= int(i) < 2**32 for i in ids):
        numbers = [int(i) for i in ids]
    else:
        numbers = [int.from_bytes(hashlib.blake2s(str(i).encode(), digest_size=4).digest(), "big") for i in ids]
    seen: dict[int, int | str] = {}
    for number, name in zip(numbers, ids, strict=True):
        if number in seen:
            raise InputError(
                f"agent ids {seen[number]!r} and {name!r} share the 32-bit number {number}; rename one of the agents"
            )
        seen[number] = name
    return np.array(numbers, dtype=np.uint64)


@dataclass(frozen=True)
class Draws:
    """All random draws of one run."""

    seed: int
    """Root seed, 0 to 2^64 - 1."""

    @cached_property
    def key(self) -> tuple[int, int]:
        """The Philox4x32 key: low and high word of the seed."""
        return self.seed & 0xFFFFFFFF, (self.seed >> 32) & 0xFFFFFFFF

    def uniform(self, purpose: Purpose, a: int, b: int = 0, index: int = 0) -> float:
        """A uniform in (0, 1) for (purpose, a, b, index)."""
        return draw(*self.key, a, b, index, int(purpose), 0)[0]

    def pair(self, purpose: Purpose, a: int, b: int = 0, index: int = 0) -> tuple[float, float]:
        """Two independent uniforms in (0, 1) for (purpose, a, b, index): 53 and 32 random bits."""
        first, second, _ = draw(*self.key, a, b, index, int(purpose), 0)
        return first, second

    def messages(self, sender: int, receivers: NDArray[np.uint64], tick: int, transmission: int) -> NDArray[np.float64]:
        """The uniforms of the messages that a sender initiates at one tick of its clock, by stable ids.

        The tick counts skipped wake-ups, and is -1 before the first one; the transmission says which message of this
        tick it is: kind and attempt, 0 to 2^24 - 1. Of each of k receivers there are three uniforms in (0, 1): the
        delay's, a second one for delays that need two, the loss's.
        """
        check_transmission(transmission)
        return draw_many(*self.key, sender, receivers, tick & 0xFFFFFFFF, int(Purpose.MESSAGE), transmission)

    def generator(self, purpose: str, *ids: int) -> np.random.Generator:
        """A NumPy generator for a named stream, for instance ``generator("noise", agent_id, tick)``.

        Up to three ids enter the counter of NumPy's Philox4x64; the purpose and the seed are its key.
        """
        if len(ids) > 3:
            raise ValueError(f"a stream has at most three ids, got {len(ids)}")
        counter = np.array([0, *ids, *([0] * (3 - len(ids)))], dtype=np.uint64)
        key: Any = _Key(self.seed, purpose_word(purpose))  # NumPy takes any `ISeedSequence`, its types do not
        return np.random.Generator(np.random.Philox(key, counter=counter))


@final
class _Key(ISeedSequence):
    """The key of a `numpy.random.Philox`, as its seed: beside a ``key``, NumPy asks the system for entropy in vain."""

    def __init__(self, *words: int) -> None:
        self._words = np.array(words, dtype=np.uint64)

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[np.uint64]:
        """The two words of the key."""
        assert n_words == 2
        assert dtype == np.uint64
        return self._words
