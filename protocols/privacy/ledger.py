"""What every agent has released so far, and whether it may release more.

The ledger counts charges; it composes nothing while the event loop runs. Budget is *reserved* before noise is drawn and
*committed* at the first send, because a lost message was still heard on the wire. Charging is a filter with fixed noise
(Rogers, Roth, Ullman, Vadhan 2016): a release that would exceed the budget is refused before it happens.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from hashlib import blake2b
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .accounting import Charge, Composition, evaluate, gaussian_mu, remaining_delta, three_bounds
from .budget import Budget
from .mechanisms import Release

Which = Literal["claimed", "basic", "kairouz", "gaussian", "tight"]

COLUMNS = [
    "agent",
    "mechanism",
    "multiplier",
    "claimed_multiplier",
    "claimed_epsilon",
    "claimed_delta",
    "sampling",
    "count",
    "sensitivity_source",
]
SLACK = 1 + 1e-9
"""A plan spends its budget exactly, so the comparison forgives rounding."""


class Ledger:
    """Charges of all agents, counted per agent.

    Parameters
    ----------
    agents : int
        Number of agents, ``>= 1``.
    budget : Budget, optional
        What each agent may spend on its claimed parameters; unlimited by default. ``by: tight`` is enforced through
        ``updates``; without it, by the exact curve if all releases are Gaussian and else by the three-way minimum,
        which never overspends.
    updates : int, optional
        Most charged releases that an agent may make, ``>= 1``: the length of its plan.
    claimed_by : {"basic", "kairouz", "gaussian", "tight"}
        How `epsilon` composes the claimed parameters.
    assumed_public : tuple of str
        Inputs computed from private data but treated as public.
    strict : bool
        Whether such inputs make every verified epsilon infinite.
    """

    def __init__(
        self,
        agents: int,
        *,
        budget: Budget | None = None,
        updates: int | None = None,
        claimed_by: Composition = "kairouz",
        assumed_public: tuple[str, ...] = (),
        strict: bool = False,
    ) -> None:
        self.agents = agents
        self.assumed_public = assumed_public
        self.strict = strict
        self._claimed_by: Composition = claimed_by
        self._updates = math.inf if updates is None else updates
        counted_in_advance = budget is None or (budget.by == "tight" and updates is not None)
        self._meters = None if budget is None or counted_in_advance else [_Meter(budget) for _ in range(agents)]
        self._budgeted = budget is not None
        self._counts: list[dict[tuple[Charge, str | None], int]] = [{} for _ in range(agents)]
        self._totals = [0] * agents
        self._reserved = [0] * agents
        self._pending: dict[Release, Charge] = {}
        self._committed: weakref.WeakSet[Release] = weakref.WeakSet()
        self._sent: dict[tuple[int, str, str], bytes] = {}
        self._free: weakref.WeakKeyDictionary[Release, bytes] = weakref.WeakKeyDictionary()
        self._epsilons: dict[tuple[Which, float], tuple[list[int], NDArray[np.float64]]] = {}

    def reserve(self, release: Release) -> bool:
        """Set budget aside for a release that is about to be made; call it before noise is drawn.

        Returns
        -------
        bool
            False if the release would exceed its agent's budget: it must not be made. A reservation stands until the
            release is committed or cancelled; public, reserved and committed releases ask for nothing.
        """
        if release.mechanism == "public" or release in self._pending or release in self._committed:
            return True
        agent = release.agent
        if self._totals[agent] + self._reserved[agent] >= self._updates:
            return False
        charge = charge_of(release)
        if self._budgeted and math.isinf(charge.claimed_epsilon):
            return False
        if self._meters is not None and not self._meters[agent].take(charge):
            return False
        self._reserved[agent] += 1
        self._pending[release] = charge
        return True

    def commit(self, release: Release, vector: NDArray[np.float64] | None = None) -> bool:
        """Charge a release at its first send.

        Parameters
        ----------
        release : Release
            What the message carries. Sending a committed release again, in whatever form, is post-processing and free.
        vector : (p,) array, optional
            What is sent. The same bytes as the agent's last charged vector of this mechanism and unit are free; the
            release then still has to be paid for if other bytes follow under it.

        Returns
        -------
        bool
            Whether it was charged. What is sent is charged even if it was never reserved.
        """
        if release.mechanism == "public" or release in self._committed:
            return False
        agent = release.agent
        if vector is not None:
            key = (agent, release.mechanism, release.unit)
            digest = blake2b(vector.tobytes(), digest_size=16).digest()
            if digest in (self._sent.get(key), self._free.get(release)):
                self.cancel(release)
                self._free[release] = digest
                return False
            self._sent[key] = digest
        charge = self._pending.pop(release, None)
        if charge is not None:
            self._reserved[agent] -= 1
        else:
            charge = charge_of(release)
            if self._meters is not None:
                self._meters[agent].add(charge)
        counts = self._counts[agent]
        entry = (charge, release.sensitivity_source)
        counts[entry] = counts.get(entry, 0) + 1
        self._totals[agent] += 1
        self._committed.add(release)
        return True

    def add(self, release: Release, times: int) -> None:
        """Charge several releases like this one, which a compiled step has sent without reserving them."""
        counts, entry = self._counts[release.agent], (charge_of(release), release.sensitivity_source)
        counts[entry] = counts.get(entry, 0) + times
        self._totals[release.agent] += times

    def cancel(self, release: Release) -> None:
        """Give back what was reserved for a release that is not going to be sent; without effect otherwise."""
        charge = self._pending.pop(release, None)
        if charge is None:
            return
        self._reserved[release.agent] -= 1
        if self._meters is not None:
            self._meters[release.agent].add(charge, -1)

    def releases(self, agent: int) -> int:
        """Number of releases that an agent was charged for."""
        return self._totals[agent]

    def histogram(self, agent: int) -> Counter[Charge]:
        """How often an agent was charged each charge."""
        counts: Counter[Charge] = Counter()
        for (charge, _), count in self._counts[agent].items():
            counts[charge] += count
        return counts

    def epsilon(self, which: Which, delta: float) -> NDArray[np.float64]:
        """Epsilon of every agent at ``delta`` in [0, 1).

        Parameters
        ----------
        which : {"claimed", "basic", "kairouz", "gaussian", "tight"}
            ``claimed`` composes the claimed parameters, the others what can be proved; ``tight`` is the smallest of
            those. Each distinct histogram is composed once.
        delta : float
            Where to read epsilon.

        Returns
        -------
        (n,) array
            In [0, inf].
        """
        if which != "claimed" and self.strict and self.assumed_public:
            return np.full(self.agents, math.inf)
        seen, values = self._epsilons.get((which, delta), ([0] * self.agents, np.zeros(self.agents)))
        known: dict[tuple[tuple[Charge, int], ...], float] = {}
        for agent, total in enumerate(self._totals):
            if total == seen[agent]:
                continue
            histogram = self.histogram(agent)
            key = tuple(sorted(histogram.items()))
            if key not in known:
                known[key] = evaluate(which, histogram, delta, self._claimed_by)
            values[agent] = known[key]
        self._epsilons[which, delta] = (self._totals.copy(), values)
        return values.copy()

    def verified(self, delta: float) -> NDArray[np.float64]:
        """The (n,) smallest epsilons that can be proved; inf where nothing can."""
        return self.epsilon("tight", delta)

    def to_frame(self) -> pd.DataFrame:
        """One row per agent and charge."""
        rows = []
        for agent, counts in enumerate(self._counts):
            for (charge, source), count in sorted(counts.items(), key=lambda item: (item[0][0], item[0][1] or "")):
                rows.append({**charge._asdict(), "agent": agent, "count": count, "sensitivity_source": source})
        return pd.DataFrame(rows, columns=pd.Index(COLUMNS))


def charge_of(release: Release) -> Charge:
    """The part of a release that its cost depends on."""
    return Charge(
        release.mechanism,
        release.multiplier,
        release.sampling,
        release.claimed_multiplier,
        release.claimed_epsilon,
        release.claimed_delta,
        *([release.adjacency] if release.sampling < 1 else []),
    )


class _Meter:
    """Running sums of one agent's claimed parameters, and whether one more charge fits a budget."""

    __slots__ = ("budget", "drift", "impure", "limit", "logs", "precision", "square", "total")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.total = self.drift = self.square = self.logs = self.precision = 0.0
        self.impure = 0
        curve = budget.delta > 0 and budget.by in ("gaussian", "tight")
        self.limit = gaussian_mu(budget.epsilon, budget.delta) ** 2 * SLACK if curve else 0.0

    def take(self, charge: Charge) -> bool:
        """Add a charge if it fits."""
        self.add(charge)
        if self.fits():
            return True
        self.add(charge, -1)
        return False

    def add(self, charge: Charge, times: int = 1) -> None:
        eps = min(charge.claimed_epsilon, 1e150)
        self.total += times * eps
        self.drift += times * eps * math.tanh(eps / 2)
        self.square += times * eps * eps
        self.logs += times * math.log1p(-charge.claimed_delta)
        if charge.mechanism == "gaussian":
            self.precision += times * max(charge.claimed_multiplier, 1e-150) ** -2
        else:
            self.impure += times

    def fits(self) -> bool:
        budget = self.budget
        if self.limit and not self.impure:
            return self.precision <= self.limit
        if budget.by == "gaussian":
            return False
        slack = remaining_delta(budget.delta, self.logs)
        if slack is None:
            return False
        if self.total <= budget.epsilon * SLACK:
            return True
        bounds = three_bounds(self.total, self.drift, max(self.square, 0.0), slack)
        return budget.by != "basic" and min(bounds) <= budget.epsilon * SLACK
