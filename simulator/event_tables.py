"""What event-driven schedules have in common whose rules are those of the batched engine, run as plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..agents.agent import At
from ..agents.availability import Timeline
from .post import Post
from .rules.forms import Plain
from .schedules import Eventful
from .tables.effects import EFFECTS, PRIORITY, SERIAL, SUBJECT, WHAT
from .tables.notes import LOST_DELAY

if TYPE_CHECKING:
    from .world import World


class EventTables(Eventful):
    """A SimPy event for whatever a rule asks for; the rules change tables.

    Parameters
    ----------
    world : World
    **laws : callable
        What stands in the place of rules of these names, see `Plain`. Every delay and loss is asked of the network.

    Attributes
    ----------
    plain : Plain
        Rules by their compiled forms.
    empty : str
        Kind of copies without numbers that are no acknowledgements.
    """

    post: Post
    empty: str = ""

    def __init__(self, world: World, **laws: Callable[..., Any]) -> None:
        super().__init__(world)
        parts = world.setting.graph, world.layout, world.network, world.ledger, world.agents
        self.post = Post(*parts, forms=None, now=lambda: world.env.now)
        self.post.set_limits(world, compiled=False)
        self.plain = Plain(fate=self.fate, **laws)

    def fate(self, mail: Any, sender: int, edge: int, tick: int, leg: int, size: int, now: float) -> float:
        """See `hushnet.simulator.rules.delivery.fate`: the law of the network, which may have no compiled form."""
        receiver = self.world.setting.graph.heads[edge : edge + 1]
        copy = int(sender), receiver, int(tick), int(leg), float(now), int(size)
        (delay,), (lost,) = (part.tolist() for part in self.world.network.fates(*copy))
        mail.noting[LOST_DELAY] = delay
        return math.inf if lost else delay

    def schedule(self, tables: Any) -> None:
        """Turn everything that a rule has asked for into an event at its time and priority."""
        count = int(tables.counts[EFFECTS])
        for due, effect in zip(tables.due[:count].tolist(), tables.effects[:count].tolist(), strict=True):
            event = At(self.world.env, due, effect[PRIORITY])
            what = effect[WHAT], effect[SUBJECT], effect[SERIAL]
            event.callbacks.append(lambda _, what=what: self.happen(*what))  # type: ignore[union-attr]
        tables.counts[EFFECTS] = 0

    def happen(self, what: int, subject: int, serial: int) -> None:
        """Let something happen that a rule has asked for; see `hushnet.simulator.tables.effects`."""
        raise NotImplementedError

    def begin(self, joins: Sequence[float], leaves: Sequence[float], timelines: Sequence[Timeline]) -> None:
        """See `Schedule.begin`."""
        self.post.notes.begin(self.world, empty=self.empty)
        super().begin(joins, leaves, timelines)

    def settle(self, *, final: bool) -> None:
        """See `Schedule.settle`."""
        self.post.count()
        if final:
            self.post.notes.keep()
