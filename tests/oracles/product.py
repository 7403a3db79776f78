"""A description run by the project's own engines: the one file here that knows how the project's interfaces are called.

It may be adapted when they change. What it writes down is `Diary`'s, so the rows of an engine and those of the frozen
one are compared word by word.
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from hushnet.agents.availability import AvailabilityParameters
from hushnet.agents.errors import HushnetError, Stall
from hushnet.agents.graph import Graph
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.privacy.budget import Budget
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.network.clocks import ClockParameters
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Limits, Setting, Stop
from hushnet.simulator.world.world import World
from pydantic import TypeAdapter

from .engine.build import graph_of
from .engine.contract import Privacy
from .engine.diary import Diary, Row
from .engine.protocols import Small, protocol_of

EVENT = "event"
"""The engine with an event for everything, whose messages are observed one by one."""
_CLOCK: TypeAdapter[Any] = TypeAdapter(ClockParameters)
_AVAILABILITY: TypeAdapter[Any] = TypeAdapter(AvailabilityParameters)
_STALL = re.compile(
    r"agent (.+?) at time (\S+): round (\d+) can never begin, because "
    r"(?:the message of round \d+ from )?agent (.+?) (did|went)"
)


class MirrorParameters(ProtocolParameters):
    """No parameters but the schedule."""

    kind: Literal["mirror"] = "mirror"


class Sampled:
    """A world as the frozen diary knows it: it asks the schedule for the edges without a session.

    So many of the copies that were used were overtaken.
    """

    def __init__(self, world: World, overtaken: int) -> None:
        self._world = self.schedule = world
        self.traffic = replace(world.traffic, overtaken=world.traffic.overtaken + overtaken)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)


class Recorded:
    """A diary that records a world's samples."""

    overtaken = 0
    """Copies so far that were used and are written down as overtaken."""

    def __init__(self, diary: Diary) -> None:
        self.diary = diary

    def sample(self, world: World, *, final: bool) -> None:
        """See `hushnet.simulator.world.watchers.Sampler`."""
        self.diary.sample(Sampled(world, self.overtaken), final=final)
        charges_of(world)  # what is charged when a ledger is read must not be charged again at the end


class Before(Recorded):
    """Recorder and observer of a diary, with what words meant when the frozen engine was written.

    Every copy that came after a newer one was *overtaken*, also where it was read or reacted to; and nobody read a
    *start* as a message, or reacted to one.
    """

    def __init__(self, diary: Diary) -> None:
        super().__init__(diary)
        self.woke, self.sent = diary.woke, diary.sent
        self.arrivals = set[tuple[int, int]]()
        self.world: World | None = None

    def arrived(self, world: World, message: Any, up: bool, newest: bool) -> None:
        """See `hushnet.simulator.world.watchers.Observer`."""
        used = newest
        if world.sessions is None and not world.in_rounds:
            self.arrivals.add((message.edge, message.order))
            newest = up and message.order == world.inbox.order[message.kind][message.edge]
        self.overtaken += used and not newest
        self.diary.arrived(world, message, up, newest)

    def heard(self, messages: list[Any]) -> list[Any]:
        """The messages that are no starts."""
        world = self.world
        if world is None or world.in_rounds:
            return messages
        return [one for one in messages if (one.edge, one.order) in self.arrivals]

    def reacts(self, message: Any) -> bool:
        """Whether somebody reacted to a message; the reaction to a start is not counted."""
        if self.heard([message]):
            return True
        assert self.world is not None
        self.world.agents[message.receiver].reactions -= 1
        return False


def run(description: dict[str, Any]) -> list[Row]:
    """All rows of a run on the event engine, with those of single messages."""
    diary = Diary()
    with tempfile.TemporaryDirectory() as folder:
        setting = setting_of(description, Path(folder))
        before = Before(diary)
        protocol, parameters = mirror_of(description, before)
        onlookers = {"recorder": before, "observer": before}
        before.world = world = World(setting, protocol, parameters, **onlookers, **description["record"])
        why = ""
        try:
            EventEngine().run(world)
        except Stall as error:
            why = stalled(str(error))
        except HushnetError as error:
            why = type(error).__name__
    diary.close(Sampled(world, before.overtaken), why or world.ended, charges_of(world))
    return diary.rows


def charges_of(world: World) -> list[list[tuple[Any, ...]]]:
    """(mechanism, multiplier, epsilon, count) of every agent."""
    return [
        [(c.mechanism, c.multiplier, c.claimed_epsilon, count) for c, count in world.ledger.histogram(agent).items()]
        for agent in range(len(world.agents))
    ]


def setting_of(description: dict[str, Any], folder: Path) -> Setting:
    """The setting of a run; what the project reads from files is put into a folder."""
    ids, network = description["ids"], dict(description["network"])
    availability = dict(description["availability"])
    if network["latency"]["kind"] == "matrix":
        links = network["latency"]["links"]
        _write(folder / "links.csv", ("sender", "receiver", "delay"), links)
        network["latency"] = {"kind": "matrix", "path": "links.csv", "default": network["latency"]["default"]}
    if availability["kind"] == "trace":
        _write(folder / "up.csv", ("agent", "up_from", "up_to"), availability.pop("up"))
        availability["path"] = "up.csv"
    graph = graph_of(description)
    return Setting(
        task=replace(small_task(len(ids), empty=False), ids=ids),
        graph=Graph(graph.offsets, graph.heads, graph.weights),
        clock=_CLOCK.validate_python(description["clock"]),
        network=NetworkParameters.model_validate(network),
        availability=_AVAILABILITY.validate_python(availability),
        stop=Stop(**description["stop"]),
        draws=Draws(description["seed"]),
        base=folder,
        limits=Limits(**description["limits"]),
    )


def _write(path: Path, header: tuple[str, ...], rows: list[list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def stalled(sentence: str) -> str:
    """How the frozen engine says that rounds have stalled."""
    found = _STALL.match(sentence)
    assert found, sentence
    agent, time, number, neighbour, why = found.groups()
    bare = [name.strip("'") for name in (agent, neighbour)]
    return repr(("Stall", bare[0], time, int(number), bare[1], "lost" if why == "did" else "gone"))


class SeenView:
    """The record of an agent, under the names that the small protocols use."""

    def __init__(
        self, me: Any, kinds: list[str], *, rounds: bool, luck: float = float("nan"), messages: Any = ()
    ) -> None:
        self._me, self.kinds, self._luck, self.messages = me, kinds, luck, messages
        self.round = me.tick + 1 if rounds else 0
        blocks, self._slots, self._inbox = me.tables_.state, me.tables_.graph.edges_of(me.agent), me.source_.inbox
        self.state = {name: block[me.agent] for name, block in blocks.agent.items()}
        self.edge = {name: block.of(self._slots) for name, block in blocks.edge.items()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._me, name)

    def partner_luck(self) -> float:
        """The draw that picks a partner."""
        return self._luck

    def received(self, kind: str) -> Any:
        """See `tests.oracles.engine.view.View.received`."""
        values, mirrors = self._inbox.values[kind].of(self._slots), self._me.tables_.mirrors[kind]
        if mirrors is None or not isinstance(values, np.ndarray):
            return values
        return np.where(self.heard(kind)[:, None], values, self.state[mirrors])

    def heard(self, kind: str) -> Any:
        """See `tests.oracles.engine.view.View.heard`."""
        return self._inbox.order[kind][self._slots] >= 0

    def sent_at(self, kind: str) -> Any:
        """See `tests.oracles.engine.view.View.sent_at`."""
        return self._inbox.sent_at[kind][self._slots]


class WayOut:
    """A way out of the project, under the names that the small protocols use."""

    def __init__(self, me: Any) -> None:
        self._me = me

    def __getattr__(self, name: str) -> Any:
        return getattr(self._me, name)

    def noisy(self, scale: float) -> Release:
        """See `tests.oracles.engine.view.Out.noisy`."""
        terms = {"sensitivity": 1.0, "sensitivity_source": "claimed", "verified_sensitivity": 1.0, "scale": scale}
        claimed = {"claimed_epsilon": 1.0 / scale, "claimed_delta": 0.0, "recipients": 1}
        return Release(self._me.agent, self._me.now, "laplace", "l1", **terms, **claimed)


def mirror_privacy(noise: Privacy | None) -> Any:
    """What a protocol of the project says of its noise and budget."""
    if noise is None:
        return None
    budget = None if noise.epsilon is None else Budget(epsilon=noise.epsilon, delta=0.0, by="basic_composition")
    return SimpleNamespace(
        budget=budget, updates=noise.updates, claimed_by="basic_composition", strict=False, noiseless=False
    )


def mirror_of(description: dict[str, Any], before: Before) -> tuple[type[Protocol], ProtocolParameters]:
    """A protocol class of the project that does what the described small protocol does, and writes it down."""
    inner: Small = protocol_of(description["protocol"], description["schedule"], len(description["ids"]))
    kinds, schedule, diary = [*inner.layout().messages], description["schedule"], before.diary
    rounds = schedule["kind"] == "rounds" if schedule else inner.traits.trigger == "round"

    def seen(me: Any, luck: float = float("nan")) -> SeenView:
        return SeenView(me, kinds, rounds=rounds, luck=luck, messages=before.heard(me.messages))

    def told(phase: str) -> Callable[..., None]:
        """A phase with a partner, or none, between view and way out."""

        def made(self: Any, me: Any, *given: Any) -> None:
            mine = seen(me)
            diary.step(phase, mine, (int(given[0]),) if phase in ("offer", "accept", "finish") else ())
            getattr(inner, phase)(mine, *given, *(() if phase == "finish" else (WayOut(me),)))

        return made

    class Mirror(Protocol):
        Parameters = MirrorParameters
        decides = asks_for_budget = True
        traits = Traits(**vars(inner.traits))

        def layout(self) -> Layout:
            given = inner.layout()
            messages = {kind: MessageKind(**vars(spec)) for kind, spec in given.messages.items()}
            return Layout(agent=given.agent, edge=given.edge, messages=messages, roles=given.roles)

        def react(self, me: Any, message: Any) -> None:
            if not before.reacts(message):
                return
            diary.step("receive", seen(me), (int(message.sender), message.kind, int(message.tick)))
            inner.receive(seen(me), message, WayOut(me))

        def partner(self, me: Any, uniform: float) -> int:
            return inner.partner(seen(me, uniform))

        start, step = told("start"), told("wake")
        request, respond, complete = told("offer"), told("accept"), told("finish")

        @property
        def privacy(self) -> Any:
            return mirror_privacy(inner.privacy)

    return Mirror, MirrorParameters.model_validate({"kind": "mirror", "schedule": schedule})
