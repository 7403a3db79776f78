"""From a description, which is plain data, to a run of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..laws import Draws
from .contract import Protocol
from .diary import Diary, Row
from .errors import OracleError, Stall
from .graph import Graph
from .protocols import protocol_of
from .setting import Limits, Setting, Stop
from .view import Layout
from .world import World


def graph_of(description: dict[str, Any]) -> Graph:
    """The graph that is described by ``ids`` and ``edges``: (agent, agent, weight) by index."""
    edges = description["edges"]
    ends = np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2)
    weights = np.array([edge[2] for edge in edges], dtype=np.float64)
    return Graph.from_edges(len(description["ids"]), ends[:, 0], ends[:, 1], weights)


def world_of(description: dict[str, Any], diary: Diary) -> World:
    """The world that is described, ready to run."""
    setting = Setting(
        ids=description["ids"],
        graph=graph_of(description),
        clock=description["clock"],
        network=description["network"],
        availability=description["availability"],
        stop=Stop(**description["stop"]),
        draws=Draws(description["seed"]),
        limits=Limits(**description["limits"]),
    )
    protocol = protocol_of(description["protocol"], description["schedule"], len(description["ids"]))
    return World(setting, Written(protocol, diary), recorder=diary, observer=diary, **description["record"])


def run(description: dict[str, Any]) -> list[Row]:
    """All rows of a run, see `Diary`."""
    diary = Diary()
    return run_world(world_of(description, diary), diary)


def run_world(world: World, diary: Diary) -> list[Row]:
    """Run a world to its end, and write down how it came to it."""
    try:
        world.run()
        why = world.ended
    except Stall as error:
        why = repr(("Stall", *error.facts))
    except OracleError as error:
        why = type(error).__name__
    charges = [[(*charge, count) for charge, count in world.ledger.histogram(a).items()] for a in range(len(world.agents))]
    diary.close(world, why, charges)
    return diary.rows


class Written(Protocol):
    """A protocol whose steps are written down.

    Parameters
    ----------
    inner : Protocol
    diary : Diary
    """

    def __init__(self, inner: Any, diary: Diary) -> None:
        self.inner, self.diary = inner, diary
        self.traits, self.schedule, self.privacy = inner.traits, inner.schedule, inner.privacy

    def layout(self) -> Layout:
        """See `Protocol`."""
        return self.inner.layout()

    def partner(self, view: Any) -> int:
        """See `Protocol`."""
        return self.inner.partner(view)

    def start(self, view: Any, out: Any) -> None:
        """See `Protocol`."""
        self.diary.step("start", view)
        self.inner.start(view, out)

    def wake(self, view: Any, out: Any) -> None:
        """See `Protocol`."""
        self.diary.step("wake", view)
        self.inner.wake(view, out)

    def receive(self, view: Any, message: Any, out: Any) -> None:
        """See `Protocol`."""
        self.diary.step("receive", view, (int(message.sender), message.kind, int(message.tick)))
        self.inner.receive(view, message, out)

    def offer(self, view: Any, partner: int, out: Any) -> None:
        """See `Protocol`."""
        self.diary.step("offer", view, (int(partner),))
        self.inner.offer(view, partner, out)

    def accept(self, view: Any, partner: int, vector: Any, out: Any) -> None:
        """See `Protocol`."""
        self.diary.step("accept", view, (int(partner),))
        self.inner.accept(view, partner, vector, out)

    def finish(self, view: Any, partner: int, vector: Any) -> None:
        """See `Protocol`."""
        self.diary.step("finish", view, (int(partner),))
        self.inner.finish(view, partner, vector)
