"""A bench to try protocols on: a small task and graph, short runs, and steps taken by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.availability import Always
from ...agents.blocks import State
from ...agents.graph import Graph
from ...agents.inbox import Inbox, Message
from ...agents.losses import LOSSES
from ...agents.tables import Shard, Table
from ...agents.tasks.base import Task
from ...protocols.base import Out, Problem, Protocol, ProtocolParameters, Sent, View
from ...protocols.privacy.mechanisms import AgentStream
from ..engine.selection import Engine, EventEngine
from ..network.clocks import Poisson
from ..network.network import NetworkParameters
from ..network.randomness import Draws, Purpose
from ..network.setting import Limits, Setting, Stop
from ..world.world import World

AGENTS, DIMENSION, SEED = 6, 3, 20
MOST_REACTIONS = 20_000
"""Reactions to messages that a short run may take: a storm of answers ends it within a second or two."""


def protocol_parameters(
    protocol: type[Protocol], parameters: Mapping[str, Any] | ProtocolParameters
) -> ProtocolParameters:
    """Parameters of the protocol's own class, from a mapping that may leave out ``kind``."""
    if isinstance(parameters, ProtocolParameters):
        return parameters
    kind = protocol.Parameters.model_fields["kind"].annotation
    names = getattr(kind, "__args__", (protocol.__name__,))
    return protocol.Parameters.model_validate({"kind": names[0], **parameters})


def small_task(agents: int = AGENTS, *, seed: int = SEED, empty: bool = True) -> Task:
    """A small classification task; the first agent has no data if `empty` says so."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, 7, agents)
    counts[0] = 0 if empty else counts[0]
    owners = np.repeat(np.arange(agents), counts)
    features = rng.uniform(-1, 1, (len(owners), DIMENSION))
    labels = np.where(rng.random(len(owners)) < 0.5, 1.0, -1.0)
    train = Table.from_owners(features, labels, owners, agents)
    test = Table.from_owners(rng.uniform(-1, 1, (agents, DIMENSION)), np.ones(agents), np.arange(agents), agents)
    return Task(
        name="contract test",
        ids=list(range(agents)),
        train=train,
        test=test,
        loss=LOSSES["logistic"],
        regularisation=1.0 / np.maximum(counts, 1),
        metric="accuracy",
        bounds={"l1": float(DIMENSION), "l2": float(np.sqrt(DIMENSION))},
    )


def small_graph(agents: int = AGENTS) -> Graph:
    """A ring with one chord, unequal weights."""
    if agents == 1:
        return Graph.from_matrix(np.zeros((1, 1)))
    pairs = sorted({(min(i, (i + 1) % agents), max(i, (i + 1) % agents)) for i in range(agents)} | {(0, agents // 2)})
    tails, heads = np.array(pairs, dtype=np.int64).T
    return Graph.from_edges(agents, tails, heads, 0.5 + np.arange(len(tails)) / len(tails))


class Bench:
    """A protocol with state, inboxes and views, but without time: steps are taken by hand.

    Parameters
    ----------
    protocol : type of Protocol
    parameters : ProtocolParameters
    seed : int
    changed : int, optional
        An agent that has other data than usual when everybody starts.
    prepared : bool
        Whether the protocol already saw these other data while it prepared its constants.
    constants : mapping of str to Any, optional
        Constants that the protocol treats as public, by name, in place of those that it prepares.
    draw_seed : int, optional
        Another seed for what agents draw in their steps, but for which rows they sample (the stream ``sampling``).

    Attributes
    ----------
    started : list of list of Sent
        What every agent sent at its start.
    constants : dict of str to Any
        What the protocol took from records as if it were public.
    """

    def __init__(
        self,
        protocol: type[Protocol],
        parameters: ProtocolParameters,
        *,
        seed: int = SEED,
        changed: int | None = None,
        prepared: bool = False,
        constants: Mapping[str, Any] = {},
        draw_seed: int | None = None,
    ) -> None:
        self.task, self.graph = small_task(seed=seed, empty=False), small_graph()
        draws, others = Draws(seed), Draws(seed if draw_seed is None else draw_seed)

        def stream(purpose: str, agent: int, tick: int) -> np.random.Generator:
            return AgentStream((draws if purpose == "sampling" else others).generator(purpose, tick, agent))

        if changed is not None and prepared:
            disturb(self.task.train.shard(changed), np.random.default_rng(SEED + 2))
        before = lambda purpose, agent: stream(purpose, agent, 0)  # noqa: E731
        self.constants: dict[str, Any] = {}

        def assumed(name: str, value: Any) -> Any:
            return self.constants.setdefault(name, constants.get(name, value))

        self.protocol = protocol(parameters, Problem(self.task, self.graph, stream=before, assumed=assumed))
        if changed is not None and not prepared:
            disturb(self.task.train.shard(changed), np.random.default_rng(SEED + 2))
        self.traits = protocol.traits_for(parameters)
        self.layout = self.protocol.layout()
        self.state = State(AGENTS, len(self.graph.heads), self.layout.agent, self.layout.edge)
        self.inbox = Inbox(self.graph, {kind: spec.width for kind, spec in self.layout.messages.items()})
        self.data = [_copied(self.protocol.local_data(i, self.task.shard(i))) for i in range(AGENTS)]
        self.views = [
            View(
                i,
                Problem(self.task, self.graph),
                self.layout,
                self.state,
                self.inbox,
                data=self.data[i],
                stream=stream,
                partner_uniform=lambda agent, tick: draws.uniform(Purpose.PARTNER, agent, 0, tick),
            )
            for i in range(AGENTS)
        ]
        self.started = [self.take(self.protocol.start, agent) for agent in range(AGENTS)]
        for view in self.views:  # steps come after time 0
            view.begin(1.0, 1, 0)
        self.hear(np.random.default_rng(seed))

    def out(self, view: View) -> Out:
        """An `Out` whose budget is never spent."""
        return Out(view, self.layout, lambda release: True, lambda release: True)

    def hear(self, rng: np.random.Generator) -> None:
        """Fill every inbox with arbitrary vectors from every neighbour."""
        for order, (receiver, slot) in enumerate((int(t), s) for s, t in enumerate(self.graph.tails)):
            sender = int(self.graph.heads[slot])
            for kind, block in self.inbox.values.items():
                vector = rng.normal(size=len(block[slot]))
                message = Message(sender, receiver, kind, vector, 0.0, order, 0, slot, 8 * len(vector))
                self._show(message)
                self.views[receiver].messages.append(message)

    def _show(self, message: Message) -> None:
        """Let an inbox know a message."""
        kind, edge, inbox = message.kind, message.edge, self.inbox
        inbox.values[kind][edge][:] = message.vector
        inbox.sent_at[kind][edge], inbox.order[kind][edge] = message.sent_at, message.order
        inbox.tick[kind][edge] = message.tick

    def disturb_all_but(self, agent: int, rng: np.random.Generator) -> None:
        """Change everything that an agent's step may not look at."""
        own = self.graph.edges_of(agent)
        edges = [e for e in range(len(self.graph.heads)) if not own.start <= e < own.stop]
        others = [i for i in range(AGENTS) if i != agent]
        for owners, blocks in ((others, self.state.agent), (edges, self.state.edge), (edges, self.inbox.values)):
            for block in blocks.values():
                for owner in owners:
                    block[owner][:] += rng.normal(size=len(block[owner]))
        for other in others:
            disturb(self.data[other], rng)
            disturb(self.task.train.shard(other), rng)

    def step_all_but(self, agent: int) -> None:
        """Every kind of step of everybody else; what they send is not delivered."""
        for other in range(AGENTS):
            for _, step in self.steps(other) if other != agent else ():
                step()

    def steps(self, agent: int) -> Iterator[tuple[str, Callable[[], list[Sent]]]]:
        """Every kind of step that the protocol has for this agent; each returns what it sent."""
        view = self.views[agent]

        def run(step: Callable[[Out], None]) -> Callable[[], list[Sent]]:
            def call() -> list[Sent]:
                out = self.out(view)
                step(out)
                return out.sent

            return call

        if self.traits.exchange == "pairwise":
            vector = np.linspace(-1, 1, self._width("reply", agent))
            request = np.linspace(-1, 1, self._width("request", agent))
            yield "request", run(lambda out: self.protocol.make_request(view, 0, out))
            yield "respond", run(lambda out: self.protocol.make_response(view, 0, request, out))
            yield "complete", run(lambda out: self.protocol.complete_exchange(view, 0, vector))
            return
        yield "wake", run(lambda out: self.protocol.wake(view, out))
        if self.traits.trigger == "message" and view.messages:
            yield "receive", run(lambda out: self.protocol.receive(view, view.messages[0], out))

    def _width(self, kind: str, agent: int) -> int:
        return len(self.inbox.values[kind][self.graph.edges_of(agent).start])

    def take(self, step: Callable[[View, Out], None], agent: int) -> list[Sent]:
        """One step of an agent by hand; what it sent is not delivered."""
        out = self.out(self.views[agent])
        step(self.views[agent], out)
        return out.sent

    def deliver(self, agent: int, sent: Sent, order: int) -> None:
        """Put a message of an agent into the inboxes of those that it was sent to."""
        own = self.graph.edges_of(agent)
        for edge in range(own.start, own.stop):
            receiver, slot = int(self.graph.heads[edge]), int(self.graph.reverse[edge])
            if sent.to is None or receiver in sent.to:
                size = 8 * len(sent.vector)
                self._show(Message(agent, receiver, sent.kind, sent.vector, float(order), order, order, slot, size))

    def owned(self, agent: int) -> dict[str, NDArray[np.float64]]:
        """Copies of the blocks that an agent may write."""
        own = self.graph.edges_of(agent)
        mine = {name: block[agent].copy() for name, block in self.state.agent.items()}
        for name, block in self.state.edge.items():
            mine[f"edge {name}"] = np.concatenate([block[e] for e in range(own.start, own.stop)])
        return mine

    def everything_else(self, agent: int) -> dict[str, NDArray[np.float64]]:
        """Copies of everything that an agent may not write, by what it is."""
        own, found = self.graph.edges_of(agent), {}
        for name, block in self.state.agent.items():
            found |= {f"{name} of agent {i}": block[i].copy() for i in range(AGENTS) if i != agent}
        for name, block in self.state.edge.items():
            others = [e for e in range(len(block)) if not own.start <= e < own.stop]
            found |= {f"{name} of an edge of agent {int(self.graph.tails[e])}": block[e].copy() for e in others}
        found |= {f"the inbox of {kind!r}": block.values.copy() for kind, block in self.inbox.values.items()}
        for i, shard in enumerate(self.data):
            found |= {f"features of agent {i}": shard.features.copy(), f"labels of agent {i}": shard.labels.copy()}
        return found


def small_setting(
    *,
    agents: int = AGENTS,
    empty: bool = True,
    network: NetworkParameters | None = None,
    availability: Any = None,
    time: float = 8.0,
    seed: int = SEED,
) -> Setting:
    """A short run on a small task, yet without a protocol."""
    return Setting(
        task=small_task(agents, empty=empty),
        graph=small_graph(agents),
        clock=Poisson(kind="poisson"),
        network=network or NetworkParameters(),
        availability=availability or Always(kind="always"),
        stop=Stop(time=time),
        draws=Draws(seed),
        limits=Limits(reactions=MOST_REACTIONS),
    )


def split_setting(**fields: Any) -> Setting:
    """A `small_setting` with these fields, in which two parties around a centre hold the columns of the same rows."""
    whole = small_task(empty=False)
    columns = tuple(np.array(held, dtype=np.int64) for held in ([], [0], [1, 2]))
    rows = np.array([0, len(whole.train.labels), len(whole.train.labels), len(whole.train.labels)])
    tests = np.array([0, len(whole.test.labels), len(whole.test.labels), len(whole.test.labels)])
    task = replace(
        whole,
        ids=[0, 1, 2],
        train=replace(whole.train, offsets=rows),
        test=replace(whole.test, offsets=tests),
        regularisation=np.zeros(3),
        columns=columns,
    )
    star = Graph.from_edges(3, np.array([0, 0]), np.array([1, 2]), np.ones(2))
    return replace(small_setting(**fields), task=task, graph=star)


def run_small(
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    *,
    engine: Engine | None = None,
    small: Callable[..., Setting] = small_setting,
    **fields: Any,
) -> World:
    """Run a protocol in a `small_setting` (or a `split_setting`) of these fields, by default on the event engine."""
    world = World(small(**fields), protocol, parameters)
    (engine or EventEngine()).run(world)
    return world


def disturb(shard: Shard, rng: np.random.Generator) -> None:
    """Other data of the same shape, in place."""
    shard.features[...] = rng.uniform(-1, 1, shard.features.shape)
    shard.labels[...] = np.where(rng.random(shard.labels.shape) < 0.5, 1.0, -1.0)


def _copied(shard: Shard) -> Shard:
    return Shard(shard.features.copy(), shard.labels.copy())


def example(protocol: type[Protocol], *, time: float = 60.0, split: bool = False, **fields: Any) -> World:
    """A small world that a protocol has run in for some time, without delays and losses: for examples.

    Parameters
    ----------
    protocol : type of Protocol
    time : float
        Expected wake-ups of each agent.
    split : bool
        Whether features are split between parties around a centre, instead of rows.
    **fields
        The protocol's parameters.
    """
    if not split:
        return run_small(protocol, protocol_parameters(protocol, fields), empty=False, time=time)
    world = World(split_setting(time=time), protocol, protocol_parameters(protocol, fields))
    EventEngine().run(world)
    return world


def relative_gap(world: World) -> float:
    """How far a protocol's models are above the minimum of its objective, in relation to models that are zero."""
    objective, models = world.protocol.objective(), world.protocol.models(world.state)
    assert objective is not None
    assert models is not None
    minimum = objective.minimise()[1]
    return (objective.value(models) - minimum) / (objective.value(np.zeros_like(models)) - minimum)
