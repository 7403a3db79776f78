"""Releases of a run, agent by agent in order: the step that drew each, and what a first part of them costs.

A ledger counts releases and does not say when each was made. They are laid out from the protocol's own schedule of
releases: step k draws at most one, that of its stage. What the ledger has beyond that stands at the agent's start, so
that at every step at least as many releases are there as were made by then, and bounds that compose them stay bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...protocols.privacy.accounting import Charge, evaluate
from ...protocols.privacy.ledger import charge_of
from ...protocols.privacy.mechanisms import Release
from ...protocols.steps.step_charges import StagedAgent, Unreadable
from .deliveries import Deliveries

if TYPE_CHECKING:
    from ..storage.files import Frame
    from ..world.world import World

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ReleaseRecord:
    """Charges of every agent in order.

    Parameters
    ----------
    charges : list of list of Charge
        By agent, in order.
    at_start : (n,) int64
        How many of them stand at the agent's start.
    steps : list of list of int
        Steps that the others were drawn at: the agent's steps, from 0.
    everyone : (n,) float64
        Verified epsilon against everyone on the wire.
    refused : (n,) bool
        Agents about whom nothing can be verified, whatever is heard of them.
    delta : float
    unplaced : str
        Why it is not known at which steps releases were drawn; empty if it is.
    """

    charges: list[list[Charge]]
    at_start: NDArray[np.int64]
    steps: list[list[int]]
    everyone: Array
    refused: NDArray[np.bool_]
    delta: float
    unplaced: str = ""

    def after_steps(self, agent: int) -> list[int]:
        """Return the number of an agent's releases after its start, and after each of its steps that draws one."""
        first = int(self.at_start[agent])
        return [first + k for k in range(len(self.steps[agent]) + 1)]

    @cached_property
    def _known(self) -> dict[tuple[int, int], float]:
        return {}

    def epsilon(self, agent: int, count: int) -> float:
        """Verified epsilon of the first releases of an agent: 0 of none, never above that against everyone."""
        if self.refused[agent]:
            return math.inf
        if count == 0:
            return 0.0
        charges, whole = self.charges[agent], float(self.everyone[agent])
        if count >= len(charges) or whole == 0.0:
            return whole
        key = agent, count
        if key not in self._known:
            part = evaluate("verified", Counter(charges[:count]), self.delta, "verified")
            self._known[key] = min(part, whole)
        return self._known[key]

    def table(self, world: World, deliveries: Deliveries) -> Frame:
        """Return the releases as a table.

        Returns
        -------
        DataFrame
            Columns ``release`` (from 0), ``agent``, ``step`` (the agent's, from 0; -1 for its start), ``time`` (NaN for
            the start), ``mechanism``, ``multiplier`` (noise scale over proved sensitivity), ``sampling``.
        """
        at = {(a, k): t for a, k, t in zip(*map(np.ndarray.tolist, _columns(deliveries)), strict=True)}
        rows: list[tuple[Any, ...]] = []
        for agent, charges in enumerate(self.charges):
            numbers = [-1] * int(self.at_start[agent]) + self.steps[agent]
            name = str(world.setting.task.ids[agent])
            for charge, number in zip(charges, numbers, strict=True):
                time = at.get((agent, number), math.nan)
                rows.append((len(rows), name, number, time, charge.mechanism, charge.multiplier, charge.sampling))
        names = ["release", "agent", "step", "time", "mechanism", "multiplier", "sampling"]
        return pd.DataFrame(rows, columns=pd.Index(names))

    def of_steps(self, deliveries: Deliveries) -> NDArray[np.int64]:
        """(W,) release that each step has drawn, -1 for none, as `table` numbers them."""
        firsts = np.concatenate([[0], np.cumsum([len(own) for own in self.charges])])
        drawn = {
            (agent, number): int(firsts[agent] + self.at_start[agent]) + k
            for agent, numbers in enumerate(self.steps)
            for k, number in enumerate(numbers)
        }
        pairs = zip(deliveries.agent.tolist(), deliveries.number.tolist(), strict=True)
        return np.array([drawn.get(pair, -1) for pair in pairs], dtype=np.int64)


def release_record(world: World, deliveries: Deliveries | None, delta: float) -> ReleaseRecord:
    """Return the releases of a run so far.

    Parameters
    ----------
    world : World
        At a record instant or at its end.
    deliveries : Deliveries or None
        Without them all releases stand at the start.
    delta : float
        Where epsilon is read, in [0, 1).
    """
    agents, ledger = world.setting.graph.agents, world.ledger
    everyone = ledger.epsilon("verified", delta)
    in_steps = deliveries is not None and deliveries.in_steps
    made = np.bincount(deliveries.agent if deliveries is not None else [], minlength=agents).astype(np.int64)
    charges, steps, at_start = list[list[Charge]](), list[list[int]](), np.zeros(agents, dtype=np.int64)
    refused, unplaced = np.zeros(agents, dtype=bool), ""
    for agent in range(agents):
        left = ledger.histogram(agent)
        refused[agent] = math.isinf(everyone[agent]) and all(charge.multiplier > 0 for charge in left)
        drawn = list[Charge]()
        numbers = list[int]()
        try:
            scheduled = _by_step(world, agent, int(made[agent])) if in_steps else []
        except Unreadable as missing:
            name = type(world.protocol).__name__
            scheduled, unplaced = [], f"{name}: its release reads me.{missing}, which is not known of past steps"
        for number, charge in enumerate(scheduled):
            if left[charge] > 0:
                left[charge] -= 1
                drawn.append(charge)
                numbers.append(number)
        first = list(left.elements())
        at_start[agent] = len(first)
        charges.append([*first, *drawn])
        steps.append(numbers)
    return ReleaseRecord(charges, at_start, steps, everyone, refused, delta, unplaced)


def _by_step(world: World, agent: int, steps: int) -> list[Charge]:
    """Charge of the release of each of an agent's first steps, by its protocol's schedule; empty if there is none.

    Raises
    ------
    Unreadable
        If a release depends on more than its agent, its data and its step.
    """
    noise, me = world.protocol.step_noise, world.peers[agent]
    if noise is None or noise.mechanism is None or not len(me.data):
        return []
    stages = steps if noise.growth is not None else min(steps, noise.scales().shape[1])

    def at(stage: int) -> Release:
        return world.protocol.release(StagedAgent(agent, 0.0, me.data, me.neighbours, stage))

    found = [charge_of(at(stage)) for stage in range(stages)]
    return [found[min(number, len(found) - 1)] for number in range(steps)]


def _columns(deliveries: Deliveries) -> tuple[Any, Any, Any]:
    return deliveries.agent, deliveries.number, deliveries.step_time
