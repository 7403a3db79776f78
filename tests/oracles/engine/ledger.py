"""What every agent has released so far, and whether it may release more: counting of charges, no composition but sums.

Budget is *reserved* before noise is drawn and *committed* at the first send.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SLACK = 1 + 1e-9
"""A plan spends its budget exactly, so the comparison forgives rounding."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Release:
    """One act of publishing something; two of them are equal only if they are the same object.

    Parameters
    ----------
    agent : int
    mechanism : {"public", "none", "laplace"}
    scale : float
        Of the noise, for sensitivity 1.
    """

    agent: int
    mechanism: str
    scale: float = 0.0
    draws: int = field(default=0, init=False, repr=False)

    @property
    def free(self) -> bool:
        """Whether it has no private content and costs nothing."""
        return self.mechanism == "public"

    def perturb(self, vector: NDArray[np.float64], *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Add noise to a vector; every call draws anew, and is charged when the release is sent."""
        if self.scale == 0 or self.mechanism != "laplace":
            return vector
        object.__setattr__(self, "draws", self.draws + 1)
        return vector + rng.laplace(0.0, self.scale, vector.shape)


class Charge(NamedTuple):
    """What a release costs."""

    mechanism: str
    multiplier: float
    epsilon: float


def charge_of(release: Release) -> Charge:
    """The part of a release that its cost depends on."""
    if release.mechanism == "laplace":
        return Charge("laplace", release.scale, 1.0 / release.scale if release.scale else math.inf)
    return Charge(release.mechanism, 0.0, math.inf)


class Ledger:
    """Charges of all agents, counted per agent.

    Parameters
    ----------
    agents : int
    epsilon : float, optional
        What each agent may spend by basic composition.
    updates : int, optional
        Most charged releases that an agent may make.
    """

    def __init__(self, agents: int, *, epsilon: float | None = None, updates: int | None = None) -> None:
        self.agents, self.budget = agents, epsilon
        self._updates = math.inf if updates is None else updates
        self._spent = [0.0] * agents
        self._counts: list[Counter[Charge]] = [Counter() for _ in range(agents)]
        self._totals = [0] * agents
        self._reserved = [0] * agents
        self._pending: dict[Release, Charge] = {}
        self._committed: weakref.WeakKeyDictionary[Release, int] = weakref.WeakKeyDictionary()
        self._sent: dict[tuple[int, str], bytes] = {}
        self._free: weakref.WeakKeyDictionary[Release, bytes] = weakref.WeakKeyDictionary()

    def reserve(self, release: Release) -> bool:
        """Set budget aside for a release that is about to be made; False if it would exceed its agent's budget."""
        if release.free or release in self._pending or release in self._committed:
            return True
        agent = release.agent
        if self._totals[agent] + self._reserved[agent] >= self._updates:
            return False
        charge = charge_of(release)
        if self.budget is not None:
            if math.isinf(charge.epsilon) or not self._take(agent, charge):
                return False
        self._reserved[agent] += 1
        self._pending[release] = charge
        return True

    def _take(self, agent: int, charge: Charge) -> bool:
        self._add(agent, charge, 1)
        if self._spent[agent] <= self.budget * SLACK:
            return True
        self._add(agent, charge, -1)
        return False

    def _add(self, agent: int, charge: Charge, times: int) -> None:
        self._spent[agent] += times * min(charge.epsilon, 1e150)

    def commit(self, release: Release, vector: NDArray[np.float64] | None = None) -> bool:
        """Charge a release at its first send; the same bytes again are free unless noise was drawn for them."""
        owed = max(1, release.draws) - self._committed.get(release, 0)
        if release.free or owed <= 0:
            return False
        agent = release.agent
        if vector is not None:
            key = (agent, release.mechanism)
            digest = blake2b(vector.tobytes(), digest_size=16).digest()
            if not release.draws and digest in (self._sent.get(key), self._free.get(release)):
                self.cancel(release)
                self._free[release] = digest
                return False
            self._sent[key] = digest
        charge, unreserved = self._pending.pop(release, None), owed
        if charge is None:
            charge = charge_of(release)
        else:
            self._reserved[agent] -= 1
            unreserved -= 1
        if self.budget is not None and unreserved:
            self._add(agent, charge, unreserved)
        self._counts[agent][charge] += owed
        self._totals[agent] += owed
        self._committed[release] = self._committed.get(release, 0) + owed
        return True

    def cancel(self, release: Release) -> None:
        """Give back what was reserved for a release that is not going to be sent; without effect otherwise."""
        charge = self._pending.pop(release, None)
        if charge is None:
            return
        self._reserved[release.agent] -= 1
        if self.budget is not None:
            self._add(release.agent, charge, -1)

    def releases(self, agent: int) -> int:
        """Number of releases that an agent was charged for."""
        return self._totals[agent]

    def histogram(self, agent: int) -> Counter[Charge]:
        """How often an agent was charged each charge."""
        return Counter(self._counts[agent])
