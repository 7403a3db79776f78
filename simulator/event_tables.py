"""What event-driven schedules have in common whose rules are those of the batched engine, run as plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .rules.forms import Plain
from .schedules import Eventful
from .table_post import TablePost

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
    """

    post: TablePost

    def __init__(self, world: World, **laws: Callable[..., Any]) -> None:
        super().__init__(world)
        parts = world.setting.graph, world.layout, world.network, world.ledger, world.agents
        self.post = TablePost(*parts, forms=None, now=lambda: world.env.now)
        self.post.set_limits(world, compiled=False)
        self.plain = Plain(fate=self.fate, **laws)

    def fate(self, mail: Any, sender: int, edge: int, tick: int, leg: int, size: int, now: float) -> float:
        """See `hushnet.simulator.rules.delivery.fate`: the law of the network, which may have no compiled form."""
        edge, tick, leg, size = int(edge), int(tick), int(leg), int(size)
        receiver = self.world.setting.graph.heads[edge : edge + 1]
        (delay,), (lost,) = self.world.network.fates(int(sender), receiver, tick, leg, float(now), size)
        delay, lost = float(delay), bool(lost)
        if self.world.observer:
            self.drawn(edge, tick, leg, size, delay, lost)
        return math.inf if lost else delay

    def drawn(self, edge: int, tick: int, leg: int, size: int, delay: float, lost: bool) -> None:
        """Note the delay of a copy that is being sent, which somebody observes; by default nothing."""
        return

    def settle(self, *, final: bool) -> None:
        """See `Schedule.settle`."""
        self.post.count()
