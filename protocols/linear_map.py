"""Declaration that what agents send is linear in values that they release: what a linear bound on privacy reads.

Where it holds, an observer sees a matrix times the released values and their noise
(`hushnet.simulator.observers.linear_view`). Weights may depend on the graph and on what was heard, never on a number,
and a released value depends on nothing but its agent's own data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..agents.graph import Graph
from .privacy.mechanisms import Release

START = -1
"""In place of a step's number: an agent's start."""


@dataclass(frozen=True)
class LinearStep:
    """Weights of one step: each block that it changes, as a sum of blocks, of what was heard and what is released."""

    own: Mapping[str, Mapping[str, float]]
    """By changed block, the weights of the agent's blocks as they were before the step."""
    heard: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """mapping of str to (degree,) float64: By changed block, the weights of the newest vectors of its neighbours, in
    the order of its edges; those that it never heard count as zeros."""
    drawn: Mapping[str, float] = field(default_factory=dict)
    """By changed block, the weight of the value that the step releases, with its noise."""


@final
class SharedNoise:
    """Gaussian noise that two neighbours draw from a seed of theirs: one adds it to its value, the other subtracts it.

    Its sum over all agents is zero, at starts (`added`) and at each of their steps (`at`). Who knows neither seed nor
    draws cannot tell it from other noise; both ends know it (DECOR, Allouah et al. 2024, arXiv 2405.01031, section 3).
    Agents ask for (n,) standard deviations, >= 0, and a pair has the larger one of its ends; with a probability in [0,
    1) a pair has failed to exchange its seed and has none. ``stream(purpose, agent)`` gives the random stream of an
    agent before time 0. Of (K, 2) ``pairs`` the first agents add; ``given`` has what `added` has returned to each.
    """

    def __init__(
        self,
        graph: Graph,
        scales: NDArray[np.float64],
        width: int,
        *,
        lost: float,
        stream: Callable[[str, int], np.random.Generator],
    ) -> None:
        found: list[tuple[int, int]] = []
        self._width, self._keys = width, list[int]()
        self._sums = np.zeros((graph.agents, width))
        for one in range(graph.agents):
            rng, keys = stream("shared noise", one), stream("shared noise of steps", one)
            for other in graph.neighbours(one)[graph.neighbours(one) > one].tolist():
                key = int(keys.integers(2**63))
                known, drawn = rng.random() >= lost, rng.standard_normal(width)
                if known:
                    found.append((one, other))
                    self._keys.append(key)
                    self._sums[[one, other]] += np.outer([1.0, -1.0], max(scales[one], scales[other]) * drawn)
        self.pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
        self.scales = scales[self.pairs].max(axis=1, initial=0.0)
        self.given: dict[int, NDArray[np.float64]] = {}
        self._of: list[list[tuple[int, float]]] = [[] for _ in range(graph.agents)]
        for pair, (adds, subtracts) in enumerate(self.pairs.tolist()):
            self._of[adds].append((pair, 1.0))
            self._of[subtracts].append((pair, -1.0))

    def added(self, agent: int, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add the noise of all of an agent's pairs to its value, which is then released with noise of its own."""
        self.given[agent] = value + self._sums[agent]
        return self.given[agent]

    def at(self, agents: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """(B, width) sums of the noise of all pairs of some agents at their steps of these (B,) numbers, from 0."""
        found = np.zeros((len(agents), self._width))
        for row, agent, number in zip(found, agents.tolist(), numbers.tolist(), strict=True):
            for pair, sign in self._of[agent]:
                draws = np.random.Philox(key=self._keys[pair], counter=[0, 0, 0, number])
                row += sign * self.scales[pair] * np.random.Generator(draws).standard_normal(self._width)
        return found

    def remaining(self, own: NDArray[np.float64], known: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the part of mu^2 that is left of each agent's value, against whoever hears all values at once.

        Values of all agents have noise of covariance Sigma = diag(sigma^2), of each agent's own, + sum over pairs of
        scale^2 (e_i - e_j) (e_i - e_j)^T, pairs with an end whose seeds are known left out; one value moves by Delta
        alone, so that its mu^2 is Delta^2 (Sigma^-1)_uu, which is this part of Delta^2 / sigma_u^2, in (0, 1]; 1 where
        there is no own noise. Values that are not heard only lower it.
        """
        covariance = np.diag(own**2)
        hidden = ~known[self.pairs].any(axis=1)
        for (one, other), scale in zip(self.pairs[hidden].tolist(), self.scales[hidden].tolist(), strict=True):
            covariance[[one, other], [one, other]] += scale**2
            covariance[[one, other], [other, one]] -= scale**2
        inverse = np.diag(np.linalg.pinv(covariance, hermitian=True))
        return np.where(own > 0, np.minimum(own**2 * inverse, 1.0), 1.0)


@dataclass(frozen=True)
class LinearMap:
    """Linear map from released values to all that is sent.

    A run compares it with its agents' blocks and with what they have sent last, where all values are released at
    starts; the contract compares it with every message, and its releases with the noise that was drawn.
    """

    released: Callable[[int, int], Release | None]
    """``released(agent, number)`` gives the release of the value that an agent's step of that number draws noise for,
    from 0, or its start (`START`); a free one if the value is public, such as that of an agent without data; None if
    none is released."""
    start: Mapping[str, float]
    """Blocks at the start, as multiples of the agent's value released there; others are zero."""
    step: Callable[[int, NDArray[np.bool_]], LinearStep]
    """``step(agent, heard)`` gives the `LinearStep` of an agent that has ever heard the neighbours marked in the
    (degree,) array ``heard``."""
    sent: Mapping[str, str]
    """By kind of message, the block that it carries after the step (and after the start, if that sends it); there is
    one kind."""
    shared: SharedNoise | None = None
    """Noise that values released at starts have beside that of their releases; by default none."""
