"""Where a random stream begins: its key from a root seed and a purpose, its counter from ids.

`hushnet.agents.streams` draws from streams in compiled code.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

WORDS = 13
"""Length of a stream: counter (4), key (2), block (4), words of the block used, whether half a word is left, that."""


def purpose_word(purpose: str) -> int:
    """The 64 bits of a stream's key that its purpose gives; the other 64 are the root seed."""
    return int.from_bytes(hashlib.blake2s(purpose.encode(), digest_size=8).digest(), "big")


def new_stream(seed: int, purpose: str, *ids: int) -> NDArray[np.uint64]:
    """The beginning of the stream that `hushnet.simulator.network.randomness.Draws.generator` gives.

    Parameters
    ----------
    seed : int
        Root seed, 0 to 2^64 - 1.
    purpose : str
        What is drawn: ``noise``, ``sampling``, ...
    *ids : int
        Up to three, of 0 to 2^64 - 1. `begin_stream` puts others in their place, for steps of agents.

    Returns
    -------
    (WORDS,) uint64
    """
    stream = np.zeros(WORDS, dtype=np.uint64)
    stream[1 : 1 + len(ids)] = ids
    stream[4], stream[5], stream[10] = seed, purpose_word(purpose), 4
    return stream
