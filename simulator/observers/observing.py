"""Observers of one run: what they can have learned by now, and the tables and statements that a run keeps of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from ..language.observer_parameters import ObserverParameters
from .deliveries import Deliveries, deliveries_of
from .learned import Learned, learned, needs_log
from .release_record import ReleaseRecord, release_record

if TYPE_CHECKING:
    from ..recording.message_log import MessageLog
    from ..storage.files import Frame
    from ..world.world import World


@final
class Observing:
    """Observers that a scenario asks for.

    Parameters
    ----------
    observers : ObserverParameters
    log : MessageLog or None
        The run's; of the whole run, where `needs_log` says so.
    """

    def __init__(self, observers: ObserverParameters, log: MessageLog | None) -> None:
        self.observers, self.log = observers, log if needs_log(observers) else None

    def __call__(self, world: World, delta: float) -> Learned:
        """Return what observers can have learned by now, at ``delta`` in [0, 1)."""
        return learned(world, *self._so_far(world, delta), self.observers)

    def _so_far(self, world: World, delta: float) -> tuple[Deliveries | None, ReleaseRecord]:
        deliveries = None if self.log is None else deliveries_of(world, self.log)
        return deliveries, release_record(world, deliveries, delta)

    def outcome(self, world: World, delta: float) -> tuple[dict[str, Frame], list[dict[str, Any]]]:
        """Return what a run keeps at its end.

        Parameters
        ----------
        world : World
        delta : float
            In [0, 1).

        Returns
        -------
        tables : dict of DataFrame
            ``observers``, and where the scenario asks for a record ``releases`` and ``copies``.
        statements : list of dict
            For each group of observers, see `Learned.statements`.
        """
        deliveries, record = self._so_far(world, delta)
        found = learned(world, deliveries, record, self.observers)
        tables = {"observers": found.table(world)}
        if self.observers.record and deliveries is not None:
            names, kinds = [str(one) for one in world.setting.task.ids], list(world.layout.messages)
            tables["releases"] = record.table(world, deliveries)
            tables["copies"] = deliveries.table(names, kinds, record.of_steps(deliveries))
        return tables, found.statements(world.protected, self.observers.heard)
