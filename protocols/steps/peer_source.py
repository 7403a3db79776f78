"""Source of received vectors and random draws for the record of one agent, whose steps are made when they are due."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, final
from typing import Protocol as Structural
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.inbox import Inbox
from ...agents.losses import Loss, local_gradient
from ...agents.tables import Shard
from ..privacy.mechanisms import Release
from .sources import OWN, SAMPLING, Nobody, StepSource
from .tables import StepTables, read_only

Array = NDArray[np.float64]
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
    """Source of what the steps of one agent, made when they are due, read beside its blocks.

    Parameters
    ----------
    tables : StepTables
    peer : Peer
        Its record.
    agent : int
    inbox : Inbox
    ledger : Purse
    shard : Shard
        The agent's own samples.
    stream : callable
        ``stream(purpose, agent, tick)`` gives a random stream.

    Attributes
    ----------
    follows : bool
        True if the step has declared that its messages follow from what was released and received before.
    """

    def __init__(
        self,
        tables: StepTables,
        peer: Any,
        agent: int,
        inbox: Inbox,
        ledger: Purse,
        *,
        shard: Shard,
        stream: Callable[[str, int, int], np.random.Generator],
    ) -> None:
        self.tables, self.agent, self.inbox, self.ledger, self.data = tables, agent, inbox, ledger, shard
        self._peer, self.make_stream = ref(peer), stream  # weakly: a million records are not to wait for each other
        self._slots = tables.graph.edges_of(agent)
        self._known = self._known_before = dict.fromkeys(tables.names.kinds, np.int64(-1))
        self.begin(-1)

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
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks, Ranks]:
        slots, block = self._slots, self.inbox.values[kind]  # asked for each time, which brings it up to date
        if block.uniform:
            pool, first = block.rows, slots.start
        else:
            pool, first = np.zeros((slots.stop - slots.start, width)), 0
            for row, slot in zip(pool, range(slots.start, slots.stop), strict=True):
                vector = block[slot][:width]
                row[: len(vector)] = vector
        there = self.inbox.order[kind][slots] >= 0
        index = np.where(there, np.arange(first, first + len(there)), -1)
        return pool, index, np.zeros(1, dtype=np.int64), np.array([len(index)])

    @override
    def run_kernel(self, kernel: Any, *arguments: Any) -> Any:
        forms = self.tables.forms
        form = forms.get(kernel)
        if form is None:
            form = forms[kernel] = kernel.form(arguments)
        return form(*arguments)

    @override
    def sent_at(self, kind: str) -> Array:
        return read_only(self.inbox.sent_at[kind][self._slots])

    @override
    def is_new(self, kind: str) -> NDArray[np.bool_]:
        return self._known[kind] != self._known_before[kind]

    @override
    def rows(self) -> tuple[Any, Array, Ranks, Ranks]:
        return self._rows

    @cached_property
    def _rows(self) -> tuple[Any, Array, Ranks, Ranks]:
        data = self.data
        return (
            read_only(data.stored),
            read_only(data.labels),
            read_only(np.array([0, len(data)])),
            np.zeros(1, np.int64),
        )

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
        if not self.release.noisy:
            return values
        return self.release.perturb(values[0], rng=self.stream("noise"), tell=partial(self._tell, "noise"))[None]

    @override
    def perturb_objective(
        self, weights: Array, curvatures: Array, linear: Array, influences: Array, minimise: Callable[[Array], Array]
    ) -> Array:
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
        return self.stream(OWN).random((1, count))

    @override
    def normals(self, count: int) -> Array:
        return self.stream(OWN).normal(size=(1, count))

    @override
    def choose(self, purpose: str, populations: Ranks, counts: Ranks) -> tuple[Ranks, Ranks]:
        stream, population, count = self.stream(purpose), int(populations[0]), int(counts[0])
        ranks = np.array([stream.integers(population)]) if count == 1 else stream.choice(population, count, False)
        if purpose == SAMPLING:
            self._tell("rows", ranks)
        return ranks.astype(np.int64), np.array([0, count])

    @override
    def choose_each(self, shares: Array) -> tuple[Ranks, Ranks]:
        ranks = np.flatnonzero(self.stream(SAMPLING).random(len(self.data.labels)) < shares[0])
        self._tell("rows", ranks)
        return ranks, np.array([0, len(ranks)])

    @override
    def affords(self) -> bool:
        return self.ledger.reserve(self.release)

    @override
    def follow(self) -> None:
        self.follows = True

    @override
    def part(self, rows: Ranks) -> StepSource:
        return self if len(rows) else Nobody(self)


def inverse_of(
    shard: Shard, loss: Loss, weight: float, curvature: float, linear: Array, influence: float
) -> tuple[Callable[[Array], Array], Callable[[Array], float]]:
    """The noise that has a model as its `perturbed_minimiser`, and log abs det of its derivative, up to a constant.

    Parameters
    ----------
    shard : Shard
    loss : Loss
    weight, curvature, linear, influence
        As of `hushnet.protocols.steps.draw_operators.perturbed_minimiser`.
    """

    def implied(model: Array) -> Array:
        gradient = weight * local_gradient(model, shard, loss, 0.0) + curvature * model - linear
        return -gradient / influence

    def log_jacobian(model: Array) -> float:
        rows = shard.features
        bends = weight / max(1, len(rows)) * loss.second_slope(rows @ model, shard.labels)
        return float(np.linalg.slogdet(rows.T @ (bends[:, None] * rows) + curvature * np.eye(len(model)))[1])

    return implied, log_jacobian
