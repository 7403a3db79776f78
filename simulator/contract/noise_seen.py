"""Noise as a recorded run has drawn it, one draw after the other, and the same stacked into arrays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...protocols.privacy.mechanisms import Release
from .draws import Draw
from .transcript import Recording

Array = NDArray[np.float64]

MOST = 20_000_000
"""Numbers of all draws that are looked at; of more, draws evenly spread over all."""


@dataclass(frozen=True)
class Drawn:
    """One draw of noise, and where it was made."""

    run: int
    """Which of the runs."""
    agent: int
    rank: int
    """`agent` and `rank`: Whose, and its index among that agent's draws."""
    release: Release
    noise: Array
    """(..., p) float64: Vectors along the last axis."""
    rounding: Array
    """(..., p) float64: How far the noise that was drawn may be from this one, where it is known as a difference
    only."""
    who: str = ""
    """What sentences call the agent."""

    @property
    def where(self) -> str:
        """Name of the draw in messages: agent, time and index."""
        return f"{self.who or f'agent {self.agent}'} at time {self.release.time:.6g} (noise {self.rank + 1})"


def gathered(recordings: Iterable[Recording]) -> list[Drawn]:
    """All noise of some runs, in order; a value that an agent has drawn twice, noise and all, is one draw."""
    found, recordings = [], list(recordings)
    total = sum(draw.noisy.size for one in recordings for draws in one.draws.values() for draw in draws)
    every = -(-total // MOST)
    for run, recording in enumerate(recordings):
        for agent, draws in sorted(recording.draws.items()):
            who, distinct = recording.agent(agent), {draw.noisy.tobytes(): draw for draw in reversed(draws)}
            for rank, draw in list(enumerate(reversed(distinct.values())))[:: max(1, every)]:
                noise, rounding = _noise_of(draw)
                if noise.size and np.isfinite(noise).all():
                    found.append(Drawn(run, agent, rank, draw.release, noise, rounding, who))
    return found


def _noise_of(draw: Draw) -> tuple[Array, Array]:
    with np.errstate(all="ignore"):
        noise = draw.noisy - draw.exact if draw.noise is None else draw.noise
        summed = noise if draw.noise is not None else np.maximum(np.abs(draw.noisy), np.abs(noise))
        return noise, np.spacing(np.abs(summed))


@dataclass(frozen=True)
class Stack:
    """Vectors of noise of one mechanism and one width."""

    mechanism: str
    noise: Array
    rounding: Array
    values: Array
    """`noise`, `rounding` and `values`: (d, p) float64: As of `Drawn`, and the noise over its scale."""
    owners: NDArray[np.int64]
    """(d,) int64: The draw that each vector is from."""


def stacked(noise: Sequence[Drawn]) -> list[Stack]:
    """Draws in arrays, by mechanism and width."""
    kinds: dict[tuple[str, int], list[int]] = defaultdict(list)
    for place, one in enumerate(noise):
        kinds[one.release.mechanism, one.noise.shape[-1] if one.noise.ndim else 1].append(place)
    return [_stack(mechanism, width, places, noise) for (mechanism, width), places in sorted(kinds.items())]


def _stack(mechanism: str, width: int, places: Sequence[int], noise: Sequence[Drawn]) -> Stack:
    vectors = [noise[place].noise.reshape(-1, width) for place in places]
    counts = [len(one) for one in vectors]
    drawn, scales = np.concatenate(vectors), np.array([noise[place].release.scale for place in places])
    rounding = np.concatenate([noise[place].rounding.reshape(-1, width) for place in places])
    return Stack(mechanism, drawn, rounding, drawn / np.repeat(scales, counts)[:, None], np.repeat(places, counts))
