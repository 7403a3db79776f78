"""Observers of one run: what they can have learned by now, and the tables and statements that a run keeps of it."""

from __future__ import annotations

from typing import Any, final

import pandas as pd

from ...protocols.privacy.mechanisms import Release
from ...protocols.steps.peer import Peer
from ..language.observer_parameters import ObserverParameters
from ..storage.files import Frame
from ..world.watchdog import one_thread
from ..world.world import World
from .deliveries import Deliveries, deliveries_of
from .learned import Learned, learned, needs_log
from .release_record import ReleaseRecord, release_record

SoFar = tuple["Deliveries | None", "ReleaseRecord", "Learned"]


@final
class Observing:
    """Observers that a scenario asks for."""

    def __init__(self, observers: ObserverParameters) -> None:
        self.observers = observers
        self._begun: dict[int, list[Release]] = {}
        self._known: tuple[Any, SoFar] | None = None

    def __call__(self, world: World, delta: float) -> Learned:
        """Return what observers can have learned by now, at ``delta`` in [0, 1)."""
        return self._so_far(world, delta)[2]

    def started(self, me: Peer) -> None:
        """Note what an agent has released by its start, which it has just made."""
        if self.observers.record:
            self._begun[me.agent] = [*me.disclosed_, *(sent.release for sent in me.sent_)]

    def _so_far(self, world: World, delta: float) -> SoFar:
        """Deliveries, releases and what follows from them, computed once at a state of the run."""
        state = world.now, world.transport.tables.counts.tobytes(), self.observers, delta
        if self._known is None or self._known[0] != state:
            # Many small factorisations: threads of a library would wait for each other at every one of their columns.
            with one_thread():
                deliveries = deliveries_of(world) if needs_log(self.observers) else None
                record = release_record(world, deliveries, delta, self._begun)
                found = learned(world, deliveries, record, self.observers)
            self._known = state, (deliveries, record, found)
        return self._known[1]

    def outcome(self, world: World, delta: float) -> tuple[dict[str, Frame], list[dict[str, Any]], list[str]]:
        """Return what a run keeps at its end, at a delta in [0, 1): tables, statements, warnings.

        Tables are ``observers``, and where the scenario asks for a record ``releases`` and ``copies``; statements are
        on each group of observers, see `Learned.statements`; warnings say why bounds are larger than they would have to
        be.
        """
        deliveries, record, found = self._so_far(world, delta)
        tables, names = {"observers": found.table(world)}, [str(one) for one in world.setting.task.ids]
        if self.observers.record and deliveries is not None:
            people, kinds = pd.CategoricalDtype(names), list(world.layout.messages)
            tables["releases"] = record.table(people, deliveries)
            tables["copies"] = deliveries.table(people, kinds, record.of_steps(deliveries))
        warnings = [f"{found.mistake}; no linear bound is given against observers"] if found.mistake else []
        if record.unplaced:
            warnings.append(f"{record.unplaced}; all of its releases count as made at an agent's start")
        return tables, found.statements(world.protected, self.observers.heard, names), warnings
