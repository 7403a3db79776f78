"""What privacy costs: every release is charged once, epsilon never falls, budgets and targets are never exceeded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .world_history import History, Sample
from .world_messages import Findings

SLACK = 1e-9


class Charges:
    """Who was charged for how many releases, counted from what left."""

    def __init__(self, agents: int) -> None:
        self.totals = [0] * agents
        self.claimed = [0.0] * agents
        self._paid: dict[int, tuple[Any, int]] = {}
        self._last: dict[tuple[int, str, str], bytes] = {}
        self._free: dict[int, bytes] = {}

    def add(self, release: Any, draws: int, vector: bytes) -> None:
        """A release leaves its agent with a vector; the same one again, and the same bytes, cost nothing."""
        paid = self._paid.get(id(release), (release, 0))[1]
        owed = max(1, draws) - paid
        if release.free or owed <= 0:
            return
        place = (release.agent, release.mechanism, release.unit)
        if vector and not draws and vector in (self._last.get(place), self._free.get(id(release))):
            self._free[id(release)] = vector
            return
        if vector:
            self._last[place] = vector
        self._paid[id(release)] = (release, paid + owed)
        self.totals[release.agent] += owed
        self.claimed[release.agent] += owed * release.claimed_epsilon


def check_privacy(history: History, findings: Findings) -> None:
    """Epsilons of all samples of a run: they never fall, and never exceed what the scenario allows."""
    privacy = history.case.parameters
    privacy = getattr(privacy, "privacy", None) or getattr(privacy, "noise", None)
    before: dict[str, np.ndarray] = {}
    for sample in history.of(Sample):
        for which, values in sample.epsilons.items():
            fallen = values < before.get(which, values) * (1 - SLACK)
            findings.expect(
                not fallen.any(), "epsilon", f"{which} falls at {sample.now}: {before.get(which)}, {values}"
            )
            before[which] = values
        _check_most(privacy, sample, findings)


def _check_most(privacy: Any, sample: Sample, findings: Findings) -> None:
    """What an agent may spend and make at most."""
    if privacy is None or not sample.epsilons:
        return
    most = {"claimed": math.inf, "verified": math.inf}
    if privacy.budget is not None:
        most["claimed"] = privacy.budget.epsilon
    if getattr(privacy, "target", None) is not None:
        most["verified"] = privacy.target.verified
    for which, limit in most.items():
        values = sample.epsilons.get(which, np.zeros(len(sample.protected)))
        spent = float(np.max(values[list(sample.protected)], initial=0.0))
        findings.expect(spent <= limit * (1 + 1e-6), "epsilon", f"{which} is {spent} at {sample.now}, above {limit}")
    if privacy.updates is not None:
        made = max((made for made, mine in zip(sample.releases, sample.protected, strict=True) if mine), default=0)
        findings.expect(
            made <= privacy.updates, "epsilon", f"{made} releases at {sample.now}: {privacy.updates} allowed"
        )
