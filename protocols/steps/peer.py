"""The record of one agent at a step that is made when it is due, and the only way out of such a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, final
from typing import Protocol as Structural
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.inbox import Inbox, Message
from ...agents.losses import Loss, local_gradient
from ...agents.optimisation.compiled_sums import read_only
from ...agents.tables import Shard
from ..privacy.mechanisms import Release
from .declarations import POST_PROCESSING, UNPERTURBED
from .record import One
from .step_tables import OWN, SAMPLING, StepSource, StepTables

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that leaves an agent."""

    kind: str
    vector: Array
    """(width,) float64: Read-only."""
    release: Release
    """What it reveals."""
    to: tuple[int, ...] | None
    """Who is sent it; all neighbours by default."""


class Peer(One):
    """One agent at its steps, one after the other, each made when it is due.

    Beside what every record of one agent has (`hushnet.protocols.steps.step_names`), it has a way out at its start, in
    reactions, and in steps of protocols that decide (`hushnet.protocols.base.Protocol.decides`).
    """

    source_: PeerSource

    def __init__(self, source: PeerSource) -> None:
        super().__init__(source.tables, source)
        source.serve(self)
        self.__dict__.update(messages=[], own_=source.agent)
        self.open_({}, 0, -1, 0.0)

    def open_(self, messages: Mapping[str, str], updates: int, tick: int, now: float, *, acts: bool = False) -> None:
        """Begin a step, which has a way out of its own if it acts."""
        super().begin_(self.own_, messages, updates, tick, now)
        put = self.__dict__
        put["sent_"], put["disclosed_"], put["silent_"], put["acts_"] = [], [], False, acts
        self.source_.begin(tick)

    def give_out_(self, messages: list[Sent], *, silent: bool) -> None:
        """Put other messages in the place of those that the step has sent."""
        self.__dict__.update(sent_=messages, silent_=silent)

    def take_in_(self, messages: list[Message]) -> None:
        """Show what has arrived since the last step."""
        self.__dict__["messages"] = messages

    def named_vectors_(self) -> Iterator[tuple[str, Array]]:
        """The blocks of the agent and of its outgoing edges, by name, an edge's own where they differ in width."""
        for name, block in self.blocks_.items():
            yield from ((name, one) for one in (block if isinstance(block, list) else [block]))

    def _act(self, name: str) -> None:
        if not self.acts_:
            raise AttributeError(
                f"me.{name} is of starts, of reactions, and of steps of a protocol that decides; other steps assign "
                "me.message, and return true if they were an agent's last (or set decides)"
            )

    def sent_under_(self) -> Release:
        """Release that a message is charged as: one without noise if its step should have drawn some, and has not."""
        release, protocol = self.source_.release, self.tables_.protocol
        if self.source_.follows and not release.draws:
            return Release.public(self.agent, self.now, POST_PROCESSING, recipients=self.degree)
        if protocol.step_noise is not None and release.noisy and not release.draws:
            return Release.plain(self.agent, self.now, UNPERTURBED)
        return release

    def say_(self, kind: str, message: Array, *, to: int | None = None) -> None:
        """Send what a step has assigned: a vector to one neighbour, or to all, or to each its own."""
        under = self.sent_under_()
        message.flags.writeable = False
        if to is not None or not self.tables_.names.layout.messages[kind].addressed:
            self.sent_.append(Sent(kind, message.reshape(-1), under, None if to is None else (to,)))
            return
        for neighbour, own in zip(self.neighbours.tolist(), message, strict=True):
            self.sent_.append(Sent(kind, own, under, (neighbour,)))

    # The way out of a start, of a reaction, and of a step that decides.

    def send(self, kind: str, vector: Any, release: Release | None = None, *, to: int | None = None) -> None:
        """Send a copy of a (width,) vector, as a message of a kind of the layout, to all neighbours, or to one of them.

        What the release says that the vector reveals, by default what the protocol's `release` says, is charged to the
        agent when the message leaves. Raises TypeError if the release is none, and ValueError if it is another agent's,
        or the kind, the width or the neighbour does not fit.
        """
        self._act("send")
        names, agent = self.tables_.names, self.agent
        if release is None:
            release = self.sent_under_()
        if not isinstance(release, Release):
            raise TypeError(f"a message of kind {kind!r} needs a Release, got {type(release).__name__}")
        if release.agent != agent:
            raise ValueError(f"{kind!r} has a release of agent {release.agent}, sent by agent {agent}")
        if kind not in names.layout.messages:
            raise ValueError(f"{kind!r} is not a message kind of this protocol: {', '.join(names.layout.messages)}")
        copied = np.array(vector, dtype=self.tables_.state.precision).reshape(-1)
        if len(copied) != names.width(kind, agent):
            raise ValueError(
                f"a message of kind {kind!r} carries {names.width(kind, agent)} numbers, got {len(copied)}"
            )
        if to is not None and to not in self.neighbours.tolist():
            raise ValueError(f"agent {to} is not a neighbour of agent {agent}")
        copied.flags.writeable = False
        self.sent_.append(Sent(kind, copied, release, None if to is None else (int(to),)))

    def reserve(self, release: Release) -> bool:
        """Set budget aside for a release, before its noise is drawn; False if the agent cannot afford it."""
        self._act("reserve")
        return self.source_.ledger.reserve(release)

    def disclose(self, release: Release) -> None:
        """Charge at once a release that leaves the agent in another way than as a message under its own name.

        A sum of noisy values that goes out as one message is such a way for all of its terms but one.
        """
        self._act("disclose")
        self.disclosed_.append(release)
        self.source_.ledger.commit(release)

    def fall_silent(self) -> None:
        """Take no further steps, though the agent goes on receiving."""
        self._act("fall_silent")
        self.fall_silent_()

    def fall_silent_(self) -> None:
        """`fall_silent`, whatever is being made."""
        self.__dict__["silent_"] = True

    def stream(self, purpose: str) -> np.random.Generator:
        """A random stream of this agent and step (``noise``, ``sampling``, ...); asked twice, it goes on."""
        self._act("stream")
        return self.source_.stream(purpose)

    def public(self, reason: str) -> Release:
        """A release without private content, which costs nothing."""
        return Release.public(self.agent, self.now, reason)

    def plain(self, reason: str = "") -> Release:
        """A release of private content without noise, which makes epsilon infinite."""
        return Release.plain(self.agent, self.now, reason)

    def post_processing(self) -> Release:
        """A release of what follows from the agent's own releases and from what it heard, which costs nothing more.

        Own data may enter only by what was charged before, as noisy values or by `disclose`: the replay of the contract
        (`hushnet.simulator.contract.check_replay`) shows whether that is so. Raises ValueError if the agent has
        neighbours, but has released nothing and heard nothing yet.
        """
        if self.degree:  # otherwise nobody hears it
            released = self.source_.ledger.releases(self.agent) or any(one.release.draws for one in self.sent_)
            if not (released or self.messages or any(map(self.source_.heard_any, self.tables_.names.kinds))):
                raise ValueError(
                    f"agent {self.agent} at time {self.now:.6g} has neither released nor heard anything that it could "
                    "process; release something first, by me.send or me.disclose"
                )
        return self.public(POST_PROCESSING)


Ranks = NDArray[np.int64]


class Purse(Structural):
    """Interface of what pays for releases, such as `hushnet.protocols.privacy.ledger.Ledger`."""

    @property
    def limited(self) -> bool:
        """True if a release may be refused."""
        ...

    def reserve(self, release: Release) -> bool:
        """Set budget aside for a release; false if its agent cannot afford it."""
        ...

    def commit(self, release: Release) -> bool:
        """Charge a release; whether it was charged."""
        ...

    def releases(self, agent: int) -> int:
        """Count the releases that an agent was charged for."""
        ...


@final
class PeerSource(StepSource):
    """Source of what the steps of one agent, made when they are due, read beside its blocks; or of nobody.

    ``stream(purpose, agent, tick)`` gives a random stream. A step that ``follows`` has declared that its messages
    follow from what was released and received before.
    """

    def __init__(
        self,
        tables: StepTables,
        agent: int,
        inbox: Inbox,
        ledger: Purse,
        *,
        shard: Shard,
        stream: Callable[[str, int, int], np.random.Generator],
    ) -> None:
        self.tables, self.agent, self.inbox, self.ledger, self.data = tables, agent, inbox, ledger, shard
        self.make_stream = stream
        self._slots, self._count, self.forms = tables.graph.edges_of(agent), 1, tables.forms
        self._known = self._known_before = dict.fromkeys(tables.names.kinds, np.int64(-1))
        self.begin(-1)

    def serve(self, peer: Peer) -> None:
        """Serve a record, which is known weakly: a million records are not to wait for each other."""
        self._peer = ref(peer)

    def look(self) -> None:
        """Note what is known at a step, and what was at the step before."""
        if self.tables.protocol.asks_what_is_new:
            orders = {kind: self.inbox.order[kind][self._slots].copy() for kind in self._known}
            self._known_before, self._known = self._known, orders

    def begin(self, tick: int) -> None:
        """Begin a step."""
        self._tick, self.follows = tick, False
        self._release: Release | None = None
        self._streams: dict[str, np.random.Generator] = {}

    @property
    def release(self) -> Release:
        """Release of the step's messages, made when it is first asked for."""
        release = self._release
        if release is None:
            self._release = release = self.tables.protocol.release(self._peer())
        return release

    def stream(self, purpose: str) -> np.random.Generator:
        """A random stream of the agent and step; asked twice, it goes on."""
        if purpose not in self._streams:
            self._streams[purpose] = self.make_stream(purpose, self.agent, self._tick)
        return self._streams[purpose]

    def heard_any(self, kind: str) -> bool:
        """True if a message of this kind was ever received from any neighbour."""
        return bool((self.inbox.order[kind][self._slots] >= 0).any())

    @override
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks]:
        return self.inbox.pool, self.inbox.known[kind][self._slots].copy(), np.zeros(self._count, dtype=np.int64)

    @override
    def sent_at(self, kind: str) -> Array:
        return read_only(self.inbox.sent_at[kind][self._slots])

    @override
    def is_new(self, kind: str) -> NDArray[np.bool_]:
        return self._known[kind] != self._known_before[kind]

    @override
    def rows(self, agents: Ranks) -> tuple[Any, Array, Ranks, Ranks]:
        return *self._rows, np.zeros(self._count, dtype=np.int64)

    @cached_property
    def _rows(self) -> tuple[Any, Array, Ranks]:
        return read_only(self.data.stored), read_only(self.data.labels), read_only(np.array([0, len(self.data)]))

    @override
    def shard(self, agent: int) -> Shard:
        return self.data

    def _tell(self, what: str, numbers: NDArray[Any]) -> None:
        peer = self._peer()
        if self.tables.tell is not None and peer is not None:
            agents = np.array([self.agent])
            self.tables.tell(what, agents, [self._tick], [peer.now], numbers, np.array([0, len(numbers)]))

    @override
    def perturb(self, values: Array) -> Array:
        if not (self._count and self.release.noisy):
            return values
        return self.release.perturb(values[0], rng=self.stream("noise"), tell=partial(self._tell, "noise"))[None]

    @override
    def perturb_objective(
        self, weights: Array, curvatures: Array, linear: Array, influences: Array, minimise: Callable[[Array], Array]
    ) -> Array:
        if not self._count:
            return linear
        weight, curvature, influence = float(weights[0]), float(curvatures[0]), float(influences[0])
        implied, log_jacobian = inverse_of(self.data, self.tables.loss, weight, curvature, linear[0], influence)

        def solve(noise: Array) -> Array:
            self._tell("noise", noise)
            return minimise(linear - influence * noise[None])[0]

        found = self.release.perturb_objective(
            solve,
            implied,
            size=linear.shape[1],
            rng=self.stream("noise"),
            log_jacobian=log_jacobian,
        )
        return found[None]

    @override
    def uniforms(self, count: int) -> Array:
        return self.stream(OWN).random((self._count, count))

    @override
    def normals(self, count: int) -> Array:
        return self.stream(OWN).normal(size=(self._count, count))

    @override
    def choose(self, purpose: str, populations: Ranks, counts: Ranks) -> tuple[Ranks, Ranks]:
        if not self._count:
            return np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
        stream, population, count = self.stream(purpose), int(populations[0]), int(counts[0])
        ranks = np.array([stream.integers(population)]) if count == 1 else stream.choice(population, count, False)
        if purpose == SAMPLING:
            self._tell("rows", ranks)
        return ranks.astype(np.int64), np.array([0, count])

    @override
    def choose_each(self, shares: Array) -> tuple[Ranks, Ranks]:
        if not self._count:
            return np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
        ranks = np.flatnonzero(self.stream(SAMPLING).random(len(self.data.labels)) < shares[0])
        self._tell("rows", ranks)
        return ranks, np.array([0, len(ranks)])

    @override
    def affords(self) -> bool:
        return not self._count or self.ledger.reserve(self.release)

    @override
    def follow(self) -> None:
        self.follows = True

    @override
    def part(self, rows: Ranks) -> StepSource:
        if len(rows):
            return self
        nobody = copy(self)
        nobody._count, nobody._slots = 0, slice(0, 0)
        nobody._known = nobody._known_before = dict.fromkeys(self._known, np.zeros(0, dtype=np.int64))
        return nobody


def inverse_of(
    shard: Shard, loss: Loss, weight: float, curvature: float, linear: Array, influence: float
) -> tuple[Callable[[Array], Array], Callable[[Array], float]]:
    """The noise that has a model as its `perturbed_minimiser`, and log abs det of its derivative, up to a constant."""

    def implied(model: Array) -> Array:
        gradient = weight * local_gradient(model, shard, loss, 0.0) + curvature * model - linear
        return -gradient / influence

    def log_jacobian(model: Array) -> float:
        rows = shard.features
        bends = weight / max(1, len(rows)) * loss.second_slope(rows @ model, shard.labels)
        return float(np.linalg.slogdet(rows.T @ (bends[:, None] * rows) + curvature * np.eye(len(model)))[1])

    return implied, log_jacobian
