"""Check of the invariants that a protocol declares, made when something is recorded, without changing the run."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.blocks import Block, State
from ...protocols.invariants import Instant, Invariant, NoInvariant
from ..world.world import World

FLOAT32 = 1e-4
"""Largest distance, as a share of the scale, that passes for rounding where agents keep and send float32."""


@dataclass
class Watched:
    """Result of checking one invariant in a run, so far."""

    invariant: Invariant
    checked: int = 0
    """Number of instants at which it was checked, for some agents or edges."""
    scale: float = 0.0
    """The largest of its scales so far."""
    worst: float = 0.0
    """Largest distance as a share of the scale."""
    first: dict[str, Any] | None = None
    """Time and agents of the first instant at which it was broken."""

    def look(self, instant: Instant, now: float, ids: Sequence[int | str]) -> None:
        """Compare the distances of an instant with the scale."""
        invariant = self.invariant
        mask, distances = invariant.where.mask(instant), invariant.distance(instant)
        size = max(self.scale, float(invariant.scale(instant)))
        # Near the largest floats sums say nothing; a run that is there is about to diverge.
        if not mask.any() or not math.isfinite(size):
            return
        self.scale, self.checked = size, self.checked + 1
        if type(distances) is float and distances == 0.0:  # as a rule
            return
        distances = np.asarray(distances, dtype=np.float64)
        distance = float(np.max(distances, where=mask, initial=0.0) if distances.ndim else distances)
        share = 0.0 if distance == 0.0 else distance / size if size > 0.0 else math.inf
        self.worst = max(self.worst, math.inf if math.isnan(share) else share)
        if self.first is None and not share <= invariant.tolerance:
            self.first = {"time": now, "agents": _agents(instant, np.where(mask, distances, 0.0), ids)}

    def report(self) -> dict[str, Any]:
        """Return the manifest's entry about this invariant."""
        invariant = self.invariant
        return {
            "name": invariant.name,
            "where": invariant.where.value,
            "source": invariant.source,
            "checked": self.checked,
            "worst": self.worst,
            "tolerance": invariant.tolerance,
            "broken": self.first is not None,
            "first": self.first,
        }


class InvariantCheck:
    """The invariants of one run, that its protocol declares.

    ``why_none`` is the protocol's reason for having none, empty if it declares nothing; None if it has some.
    """

    def __init__(self, world: World) -> None:
        declared = world.protocol.invariants()
        if world.attackers is not None:
            declared = NoInvariant("byzantine agents keep none")
        self.why_none = declared.why if isinstance(declared, NoInvariant) else None
        least = 0.0 if world.step_tables.exact else FLOAT32
        each = () if isinstance(declared, NoInvariant) else declared
        self._watched = [Watched(replace(one, tolerance=max(one.tolerance, least))) for one in each]
        self._instant = Instant(
            state=_shown(world.state),
            graph=world.setting.graph,
            rounds=world.transport.tables.agents.updates.view(),
            started=world.started,
            quiet=world.quiet_edges,
            zero_start=world.setting.network.start == "zero",
            last_sent=world.transport.told,
        )
        self._instant.rounds.flags.writeable = False

    def look(self, world: World) -> None:
        """Look at every invariant as the world is now."""
        if not self._watched:
            return
        if world.sessions is not None:
            self._instant.quiet[:] = world.quiet_edges
        for watched in self._watched:
            watched.look(self._instant, world.now, world.setting.task.ids)

    def report(self) -> list[dict[str, Any]]:
        """Return the manifest's entries about all invariants."""
        return [watched.report() for watched in self._watched]


def _agents(instant: Instant, distances: NDArray[np.float64], ids: Sequence[int | str]) -> list[str]:
    """Ids of those whose distance is largest: an agent, the two ends of an edge, or nobody in particular."""
    place = int(np.argmax(np.where(np.isnan(distances), math.inf, distances)))
    if distances.shape == (instant.graph.agents,):
        return [str(ids[place])]
    if distances.shape == instant.graph.heads.shape:
        return [str(ids[int(end[place])]) for end in (instant.graph.tails, instant.graph.heads)]
    return []


def _shown(state: State) -> State:
    """The same blocks, which nobody can write through this."""
    shown = State(0, 0, {}, {})
    for mine, theirs in ((shown.agent, state.agent), (shown.edge, state.edge)):
        mine.update((name, _read_only(block)) for name, block in theirs.items())
    return shown


def _read_only(block: Block) -> Block:
    shown = copy.copy(block)
    shown.values = block.values.view()
    shown.values.flags.writeable = False
    return shown
