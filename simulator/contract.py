"""Contract tests for protocols, shipped so that authors of plug-ins can call them.

>>> from hushnet.protocols.coordinate_descent import CoordinateDescent
>>> check_contract(CoordinateDescent, {"mu": 0.5})
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..agents.availability import Always, Diurnal, OnOff, Window
from ..agents.blocks import State
from ..agents.graph import Graph
from ..agents.inbox import Inbox, Message
from ..agents.losses import LOSSES
from ..agents.tables import Shard, Table
from ..agents.tasks.base import Task
from ..protocols.base import Out, Problem, Protocol, ProtocolParameters, Sent, View
from ..protocols.privacy.mechanisms import Release
from .choice import rounds_of
from .clocks import Poisson
from .engine import declined, fast_world
from .latency import Constant, Exponential, Gamma, Lognormal, Uniform
from .network import Bernoulli, GilbertElliott, NetworkParameters
from .randomness import Draws, Purpose
from .setting import Setting, Stop
from .world import World

AGENTS, DIMENSION, SEED = 6, 3, 20


class ContractViolation(AssertionError):
    """A protocol broke the contract; the message says how."""


def check_contract(protocol: type[Protocol], parameters: Mapping[str, Any] | ProtocolParameters) -> None:
    """Run every contract test on a protocol.

    Parameters
    ----------
    protocol : type of Protocol
    parameters : mapping or ProtocolParameters
        Its parameters; ``kind`` may be left out.

    Raises
    ------
    ContractViolation
        If a step reads or writes what is not its own, a message marked public depends on data, sent vectors can be
        changed afterwards, zero noise differs from no noise, a run fails on some network, or the engines disagree.
    """
    checked = protocol_parameters(protocol, parameters)
    check_locality(protocol, checked)
    check_public_messages(protocol, checked)
    check_sent_vectors(protocol, checked)
    check_zero_noise(protocol, checked)
    check_networks(protocol, checked)
    check_alone(protocol, checked)
    check_engines(protocol, checked)


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
    """A protocol with state, inboxes and views, but without time: steps are taken by hand."""

    def __init__(self, protocol: type[Protocol], parameters: ProtocolParameters, *, seed: int = SEED) -> None:
        self.task, self.graph = small_task(seed=seed, empty=False), small_graph()
        draws = Draws(seed)
        before = lambda purpose, agent: draws.generator(purpose, 0, agent)  # noqa: E731
        self.protocol = protocol(parameters, Problem(self.task, self.graph, stream=before))
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
                stream=lambda purpose, agent, tick: draws.generator(purpose, tick, agent),
                partner_luck=lambda agent, tick: draws.uniform(Purpose.PARTNER, agent, 0, tick),
            )
            for i in range(AGENTS)
        ]
        for view in self.views:
            self.protocol.start(view, self.out(view))
        self.hear(np.random.default_rng(seed))

    def out(self, view: View) -> Out:
        """An `Out` whose budget is never spent."""
        return Out(view, self.layout, lambda release: True)

    def hear(self, rng: np.random.Generator) -> None:
        """Fill every inbox with arbitrary vectors from every neighbour."""
        for order, (receiver, slot) in enumerate((int(t), s) for s, t in enumerate(self.graph.tails)):
            sender = int(self.graph.heads[slot])
            for kind, block in self.inbox.values.items():
                vector = rng.normal(size=len(block[slot]))
                message = Message(sender, receiver, kind, vector, 0.0, order, 0, slot, 8 * len(vector))
                self.inbox.put(message)
                self.views[receiver].messages.append(message)

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
            disturb(self.task.shard(other), rng)

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
            yield "offer", run(lambda out: self.protocol.offer(view, 0, out))
            yield "accept", run(lambda out: self.protocol.accept(view, 0, request, out))
            yield "finish", run(lambda out: self.protocol.finish(view, 0, vector))
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
                self.inbox.put(Message(agent, receiver, sent.kind, sent.vector, float(order), order, order, slot, size))

    def owned(self, agent: int) -> dict[str, NDArray[np.float64]]:
        """Copies of the blocks that an agent may write."""
        own = self.graph.edges_of(agent)
        mine = {name: block[agent].copy() for name, block in self.state.agent.items()}
        for name, block in self.state.edge.items():
            mine[f"edge {name}"] = np.concatenate([block[e] for e in range(own.start, own.stop)])
        return mine

    def everything_else(self, agent: int) -> list[NDArray[np.float64]]:
        """Copies of everything that an agent may not write."""
        own = self.graph.edges_of(agent)
        arrays = [block[i].copy() for block in self.state.agent.values() for i in range(AGENTS) if i != agent]
        for block in self.state.edge.values():
            arrays += [block[e].copy() for e in range(len(block)) if not own.start <= e < own.stop]
        arrays += [block.values.copy() for block in self.inbox.values.values()]
        arrays += [array.copy() for shard in self.data for array in (shard.features, shard.labels)]
        return arrays


def check_locality(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """A step reads its own blocks, data and inbox, and writes its own blocks; nothing else."""
    for agent in range(AGENTS):
        names = [name for name, _ in Bench(protocol, parameters).steps(agent)]
        for rank, name in enumerate(names):
            usual, disturbed = Bench(protocol, parameters), Bench(protocol, parameters)
            disturbed.disturb_all_but(agent, np.random.default_rng(SEED + 1))
            before = disturbed.everything_else(agent)
            sent = [list(bench.steps(agent))[rank][1]() for bench in (usual, disturbed)]
            if not _equal(before, disturbed.everything_else(agent)):
                raise ContractViolation(f"{name} of agent {agent} writes what is not its own")
            mine, theirs = usual.owned(agent), disturbed.owned(agent)
            for block in mine:
                if not np.array_equal(mine[block], theirs[block]):
                    raise ContractViolation(
                        f"{name} of agent {agent} sets {block} from something outside its own data, state and inbox"
                    )
            if not _equal([s.vector for s in sent[0]], [s.vector for s in sent[1]]):
                raise ContractViolation(f"{name} of agent {agent} sends something that is not its own")


def check_public_messages(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """A message with a public release stays the same when the sender's data change."""
    for agent in range(AGENTS):
        names = [name for name, _ in Bench(protocol, parameters).steps(agent)]
        for rank, name in enumerate(names):
            usual, changed = Bench(protocol, parameters), Bench(protocol, parameters)
            disturb(changed.data[agent], np.random.default_rng(SEED + 2))
            disturb(changed.task.shard(agent), np.random.default_rng(SEED + 2))
            sent = [list(bench.steps(agent))[rank][1]() for bench in (usual, changed)]
            for one, other in zip(*sent, strict=False):
                if one.release.mechanism == "public" and not np.array_equal(one.vector, other.vector):
                    raise ContractViolation(
                        f"{name} of agent {agent} sends {one.kind!r} as public ({one.release.reason}), "
                        "but it depends on the agent's data"
                    )


def check_sent_vectors(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """What was sent cannot be changed afterwards, and every message names its release."""
    bench = Bench(protocol, parameters)
    for agent in range(AGENTS):
        for name, step in bench.steps(agent):
            sent = step()
            copies = [one.vector.copy() for one in sent]
            for block in (*bench.state.agent.values(), *bench.state.edge.values()):
                block.values += 1.0
            if not _equal(copies, [one.vector for one in sent]) or any(one.vector.flags.writeable for one in sent):
                raise ContractViolation(f"what {name} of agent {agent} sent can be changed afterwards")
            if not all(isinstance(one.release, Release) for one in sent):
                raise ContractViolation(f"{name} of agent {agent} sends a message without a release")


def check_zero_noise(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """Noise of multiplier 0 gives the plain protocol, bit for bit."""
    if "privacy" not in type(parameters).model_fields:
        return
    fields = {name: getattr(parameters, name) for name in sorted(parameters.model_fields_set - {"privacy"})}
    plain = type(parameters).model_validate(fields)
    reference = run_small(protocol, plain)
    for mechanism in ("laplace", "gaussian"):
        zero = {"mechanism": mechanism, "multiplier": 0.0, "sensitivity": "claimed"}
        silent = run_small(protocol, type(parameters).model_validate({**fields, "privacy": zero}))
        if not _same_state(reference.state, silent.state):
            raise ContractViolation(f"{mechanism} noise of multiplier 0 differs from the protocol without noise")


def check_networks(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """The protocol works under every latency, loss and churn, and traffic is conserved.

    In rounds nobody joins or leaves, and with the usual schedule a lossy network repeats messages.
    """
    latencies = [
        Constant(kind="constant", value=0.0),
        Constant(kind="constant", value=3.0),
        Uniform(kind="uniform", high=1.0),
        Exponential(kind="exponential", mean=2.0),
        Lognormal(kind="lognormal", mean=1.0, sigma=1.5),
        Gamma(kind="gamma", mean=0.5, shape=0.5),
    ]
    losses = [
        Bernoulli(kind="bernoulli", probability=0.0),
        Bernoulli(kind="bernoulli", probability=0.5),
        GilbertElliott(kind="gilbert_elliott", mean_good=2.0, mean_bad=2.0),
    ]
    churn = [
        Always(kind="always"),
        OnOff(kind="on_off", online=0.5, mean_down=1.0),
        OnOff(kind="on_off", online=0.5, mean_down=1.0, distribution="lognormal"),
        Diurnal(kind="diurnal", period=4.0, online=0.5),
        Always(
            kind="always", joins=Window(share=0.5, between=[1.0, 3.0]), leaves=Window(share=0.5, between=[3.0, 6.0])
        ),
    ]
    if rounds_of(protocol.traits_for(parameters), parameters) is not None:
        churn = [kind for kind in churn if kind.joins is None and kind.leaves is None]
    for latency, loss, availability in itertools.product(latencies, losses, churn):
        for start in ("known", "own", "zero"):
            network = NetworkParameters(latency=latency, loss=loss, start=start)
            world = run_small(protocol, parameters, network=network, availability=availability)
            if not world.traffic.conserved:
                raise ContractViolation(f"traffic is not conserved under {latency!r}, {loss!r}, {availability!r}")


def check_alone(protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """One agent alone, with and without data, still runs."""
    for empty in (False, True):
        run_small(protocol, parameters, agents=1, empty=empty)


def check_engines(protocol: type[Protocol], parameters: ProtocolParameters) -> tuple[str, ...]:
    """Where the fast engine takes the protocol, it runs it as the reference engine does.

    With the protocol's own step everything is equal bit for bit; with its compiled form, models are up to rounding.

    Returns
    -------
    tuple of str
        Why the fast engine declined some of the small worlds.
    """
    always = Always(kind="always")
    away = OnOff(kind="on_off", online=0.5, mean_down=1.0)
    worlds: list[tuple[dict[str, Any], Any]] = [
        ({}, always),
        ({"latency": 3.0, "start": "own"}, always),
        ({"latency": {"kind": "exponential", "mean": 2.0}, "start": "zero"}, always),
        ({"latency": {"kind": "lognormal", "mean": 1.0, "sigma": 1.5}, "loss": 0.3}, away),
    ]
    reasons = []
    for fields, availability in worlds:
        network = NetworkParameters.model_validate(fields)
        setting = small_setting(network=network, availability=availability)
        why = declined(setting, protocol, parameters)
        if why is not None:
            reasons.append(why)
            continue
        reference, plain, compiled = (
            run_small(protocol, parameters, network=network, availability=availability, make=make)
            for make in (World, partial(fast_world, compiled=False), fast_world)
        )
        _compare_engines(reference, plain, 0.0)
        _compare_engines(reference, compiled, 0.0 if compiled.engine == plain.engine else 1e-9)
    return tuple(dict.fromkeys(reasons))


def _compare_engines(reference: World, fast: World, rounding: float) -> None:
    where = f"the {fast.engine} engine and the reference engine under {reference.setting.network!r}"
    for what in ("ended", "activations", "traffic"):
        if getattr(reference, what) != getattr(fast, what):
            raise ContractViolation(f"{what} differs between {where}")
    pairs = [(reference.state.agent, fast.state.agent), (reference.state.edge, fast.state.edge)]
    for one, other in pairs:
        for name in one:
            if not np.allclose(one[name].values, other[name].values, rtol=rounding, atol=rounding, equal_nan=True):
                raise ContractViolation(f"{name} differs between {where}")


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
    )


def run_small(
    protocol: type[Protocol], parameters: ProtocolParameters, *, make: Callable[..., World] = World, **fields: Any
) -> World:
    """Run a protocol in a `small_setting` with these fields, in a world of an engine's making."""
    world = make(small_setting(**fields), protocol, parameters)
    world.run()
    return world


def disturb(shard: Shard, rng: np.random.Generator) -> None:
    """Other data of the same shape, in place."""
    shard.features[...] = rng.uniform(-1, 1, shard.features.shape)
    shard.labels[...] = np.where(rng.random(shard.labels.shape) < 0.5, 1.0, -1.0)


def _copied(shard: Shard) -> Shard:
    return Shard(shard.features.copy(), shard.labels.copy())


def _equal(one: list[NDArray[np.float64]], other: list[NDArray[np.float64]]) -> bool:
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def _same_state(one: State, other: State) -> bool:
    pairs = [(one.agent, other.agent), (one.edge, other.edge)]
    return all(a[name].values.tobytes() == b[name].values.tobytes() for a, b in pairs for name in a)
