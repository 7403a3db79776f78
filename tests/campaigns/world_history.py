"""What a run shows to those who may look: single events, steps, samples and its end, as plain data.

Everything is seen through what the product offers to onlookers: `hushnet.simulator.world.watchers` (observer, watch and
recorder) and the public tallies of a world. An engine that keeps these promises can be checked without being known.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hushnet.agents.errors import HushnetError
from hushnet.simulator.engine.selection import engine_for, run_exactly
from hushnet.simulator.network.setting import Setting
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.step_form import Rewind
from hushnet.simulator.world.world import World

from .world_cases import Case


@dataclass(frozen=True)
class Sending:
    """One vector that a step gives out, and the release that it names."""

    kind: str
    to: tuple[int, ...] | None
    vector: bytes
    release: Any
    draws: int


@dataclass(frozen=True)
class Step:
    """One method of a protocol that was run for an agent, with what it could read."""

    phase: str
    now: float
    agent: int
    tick: int
    updates: int
    round: int
    read: tuple[tuple[str, int, float, bytes], ...]
    """Of what was heard: kind, neighbour, when it was sent, the vector; in order."""
    kept: tuple[tuple[int, str, int, float, bytes], ...]
    """Of every message since the last step, where they are kept: sender, kind, tick, when it was sent, the vector."""
    sent: tuple[Sending, ...]
    disclosed: tuple[tuple[Any, int], ...]
    silent: bool
    idle: bool
    """Whether it was no update: agents decide by their clocks, and it has sent and changed nothing."""

    @property
    def trace(self) -> tuple[Any, ...]:
        """What any two engines must agree on, bit for bit while steps run in Python."""
        sent = tuple((one.kind, one.to, one.vector) for one in self.sent)
        return (
            self.phase,
            self.now,
            self.agent,
            self.tick,
            self.updates,
            self.round,
            self.read,
            self.kept,
            sent,
            self.silent,
        )


@dataclass(frozen=True)
class Woke:
    """An agent is about to step."""

    now: float
    agent: int
    tick: int


@dataclass(frozen=True)
class Departure:
    """A copy of a message that goes out on a link."""

    now: float
    sender: int
    receiver: int
    kind: str
    tick: int
    order: int
    vector: bytes
    size: int
    delay: float
    lost: bool


@dataclass(frozen=True)
class Arrival:
    """A copy of a message that reaches its receiver, who is up or not."""

    now: float
    sender: int
    receiver: int
    kind: str
    tick: int
    order: int
    vector: bytes
    sent_at: float
    up: bool
    newest: bool


@dataclass(frozen=True)
class Sample:
    """The world at a record instant."""

    now: float
    final: bool
    activations: int
    updates: tuple[int, ...]
    started: tuple[bool, ...]
    tallies: dict[str, Any]
    releases: tuple[int, ...]
    protected: tuple[bool, ...]
    epsilons: dict[str, np.ndarray]
    blocks: dict[str, np.ndarray]

    @property
    def charged(self) -> tuple[bool, ...]:
        """Who was charged for anything."""
        return tuple(count > 0 for count in self.releases)


@dataclass
class History:
    """A run as its onlookers saw it.

    Attributes
    ----------
    engine : str
        Which engine ran it, and why.
    events : list
        In the order in which they were told: `Woke`, `Step`, `Departure`, `Arrival`, `Sample`.
    invariants : list of dict
        What became of what the protocol declares.
    ended, error : str
        Why it ended; the error that ended it.
    ledger : list of rows
    """

    setting: Setting
    case: Case
    engine: str = ""
    events: list[Any] = field(default_factory=list)
    invariants: list[dict[str, Any]] = field(default_factory=list)
    ended: str = ""
    error: str = ""
    ledger: list[list[Any]] = field(default_factory=list)
    layout: Any = None
    now: float = 0.0
    by_time: bool = False
    """Whether samples are taken at instants of time, after everything else that happens there."""

    def of(self, kind: type) -> list[Any]:
        """The events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]


class Onlooker:
    """Observer, watch and recorder of one run."""

    def __init__(self, history: History) -> None:
        self.history, self.recorder, self.samples = history, Recorder([]), 0
        self.blocks: dict[int, list[bytes]] = {}
        self.decides = False

    def woke(self, world, agent) -> None:
        """See `hushnet.simulator.world.watchers.Observer`."""
        self.history.events.append(Woke(world.now, agent.index, agent.tick))

    def sent(self, world, message, delay, lost) -> None:
        """See `hushnet.simulator.world.watchers.Observer`."""
        m = message
        where = (world.now, m.sender, m.receiver, m.kind, m.tick, m.order, m.vector.tobytes())
        self.history.events.append(Departure(*where, m.size, float(delay), bool(lost)))

    def arrived(self, world, message, up, newest) -> None:
        """See `hushnet.simulator.world.watchers.Observer`."""
        m = message
        where = (world.now, m.sender, m.receiver, m.kind, m.tick, m.order, m.vector.tobytes())
        self.history.events.append(Arrival(*where, m.sent_at, bool(up), bool(newest)))

    def prepared(self, protocol) -> None:
        """See `hushnet.simulator.world.watchers.Watch`."""

    def assumed(self, name, value):
        """See `hushnet.simulator.world.watchers.Watch`."""
        return value

    def stream(self, stream, purpose, agent):
        """See `hushnet.simulator.world.watchers.Watch`."""
        return stream

    def forced(self, agent):
        """See `hushnet.simulator.world.watchers.Watch`: it leads nobody."""
        return ()

    def stepped(self, phase, me) -> None:
        """See `hushnet.simulator.world.watchers.Watch`."""
        read = []
        for kind in self.history.layout.messages:
            inbox, slots = me.source_.inbox, me.tables_.graph.edges_of(me.agent)
            for k in np.flatnonzero(inbox.order[kind][slots] >= 0) + slots.start:
                read.append(
                    (
                        kind,
                        int(me.tables_.graph.heads[k]),
                        float(inbox.sent_at[kind][k]),
                        inbox.values[kind][k].tobytes(),
                    )
                )
        sent = tuple(
            Sending(one.kind, one.to, one.vector.tobytes(), one.release, one.release.draws) for one in me.sent_
        )
        disclosed = tuple((release, release.draws) for release in me.disclosed_)
        every = phase == "step" and me.messages
        kept = tuple((m.sender, m.kind, m.tick, m.sent_at, m.vector.tobytes()) for m in me.messages if every)
        place = (phase, me.now, me.agent, me.tick, me.updates, me.round)
        blocks = [vector.tobytes() for _, vector in me.named_vectors_()]
        same, self.blocks[me.agent] = blocks == self.blocks.get(me.agent), blocks
        idle = phase == "step" and self.decides and not (sent or disclosed) and same
        self.history.events.append(Step(*place, tuple(sorted(read)), kept, sent, disclosed, me.silent_, idle))

    def sample(self, world, *, final) -> None:
        """See `hushnet.simulator.world.watchers.Sampler`."""
        self.recorder.sample(world, final=final)
        traffic, privacy, epsilons = world.traffic, world.protocol.privacy, {}
        if privacy is not None:
            at = privacy.reported_delta
            self.samples += 1
            few = final or self.samples in (1, 4)
            for which in ("claimed", "basic_composition", "advanced_composition", *(["verified"] if few else [])):
                epsilons[which] = world.ledger.epsilon(which, at).copy()
        blocks = {name: block.values.copy() for name, block in world.state.agent.items()}
        blocks |= {f"edge {name}": block.values.copy() for name, block in world.state.edge.items()}
        tallies = {
            "messages": traffic.messages,
            "vectors": traffic.vectors,
            "overtaken": traffic.overtaken,
            "start_vectors": traffic.start_vectors,
            "links": copy.copy(vars(traffic.links)),
            "bytes": copy.copy(vars(traffic.bytes)),
            "computed": world.computing.spent(world.now).tolist(),
        }
        self.history.events.append(
            Sample(
                float(world.now),
                final,
                int(world.activations),
                tuple(world.updates.tolist()),
                tuple(world.started.tolist()),
                tallies,
                tuple(world.ledger.releases(agent) for agent in range(world.setting.graph.agents)),
                tuple(world.protected.tolist()),
                epsilons,
                blocks,
            )
        )


def history_of(
    case: Case, setting: Setting, engine: str, *, record: dict[str, Any], observe: bool, watch: bool, protocol=None
) -> History:
    """Run a world and look on.

    Parameters
    ----------
    case : Case
    setting : Setting
    engine : {"auto", "event", "batched"}
    record : dict
        ``every`` or ``activations``: the record instants.
    observe : bool
        Whether single events are looked at.
    watch : bool
        Whether steps are looked at; they are made one by one then.
    protocol : type of Protocol, optional
        In the place of the case's own.
    """
    protocol, parameters = protocol or case.protocol, case.parameters
    made: list[tuple[History, Onlooker, World]] = []

    def make(again: Rewind | None) -> World:
        history = History(setting, case, by_time="every" in record)
        onlooker = Onlooker(history)
        options = {"observer": onlooker if observe else None, "watch": onlooker if watch else None, **record}
        world = World(setting, protocol, parameters, recorder=onlooker, again=again, **options)
        history.layout = world.layout
        onlooker.decides = world.protocol.decides and not world.in_rounds
        made.append((history, onlooker, world))
        return world

    error = ""
    try:
        run_exactly(make, lambda world: engine_for(engine, world))  # type: ignore[arg-type]
    except HushnetError as found:
        error = f"{type(found).__name__}: {found}"
    history, onlooker, world = made[-1]
    history.engine, history.error = world.engine, error
    if error:
        onlooker.sample(world, final=True)
    history.ended, history.now = world.ended, float(world.now)
    history.ledger = world.ledger.to_frame().values.tolist()
    assert onlooker.recorder.invariants is not None
    history.invariants = onlooker.recorder.invariants.report()
    return history
