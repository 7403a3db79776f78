"""A bench to try protocols on: a small task and graph, short runs, and steps taken by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.blocks import State
from ...agents.errors import InputError
from ...agents.inbox import Inbox, Message
from ...agents.tables import Shard
from ...protocols.base import Peer, Problem, Protocol, ProtocolParameters, Sent
from ...protocols.privacy.mechanisms import AgentStream, Release
from ...protocols.steps.peer import PeerSource
from ..engine.selection import Engine, EventEngine, run_exactly
from ..network.randomness import Draws
from ..network.setting import Setting
from ..world.step_form import Rewind
from ..world.world import World
from .small_settings import (
    AGENTS,
    SEED,
    admitted_world,
    disturb,
    reached,
    small_graph,
    small_setting,
    small_task,
    split_setting,
)

__all__ = [
    "AGENTS",
    "SEED",
    "Bench",
    "disturb",
    "example",
    "protocol_parameters",
    "relative_gap",
    "run_small",
    "small_graph",
    "small_setting",
    "small_task",
    "split_setting",
]


def protocol_parameters(
    protocol: type[Protocol], parameters: Mapping[str, Any] | ProtocolParameters
) -> ProtocolParameters:
    """Parameters of the protocol's own class, from a mapping that may leave out ``kind``."""
    if isinstance(parameters, ProtocolParameters):
        return parameters
    kind = protocol.Parameters.model_fields["kind"].annotation
    names = getattr(kind, "__args__", (protocol.__name__,))
    return protocol.Parameters.model_validate({"kind": names[0], **parameters})


@dataclass(frozen=True)
class OpenPurse:
    """A budget that is never spent; it counts what is charged."""

    released: list[int]
    perturbed: list[int]
    """`released` and `perturbed`: See `Bench`."""
    limited = False

    def reserve(self, release: Release) -> bool:
        """Set nothing aside."""
        return True

    def commit(self, release: Release) -> bool:
        """Count a release."""
        self.released[release.agent] += not release.free
        self.perturbed[release.agent] += release.draws
        return True

    def releases(self, agent: int) -> int:
        """Count the releases that an agent has made."""
        return self.released[agent]


class Bench:
    """A protocol with state, inboxes and records of agents, but without time: steps are taken by hand.

    Parameters
    ----------
    changed : int, optional
        An agent that has other data than in the reference run when everybody starts.
    prepared : bool
        Whether the protocol already saw these other data while it prepared its constants.
    constants : mapping of str to Any, optional
        Constants that the protocol treats as public, by name, in place of those that it prepares.
    draw_seed : int, optional
        Another seed for what agents draw in their steps, but for which rows they sample (the stream ``sampling``).

    Attributes
    ----------
    at : (int, int, float)
        Updates, tick and time of the steps that are taken.
    started : list of list of Sent
        What every agent sent at its start.
    constants : dict of str to Any
        What the protocol took from records as if it were public.
    released, perturbed : list of int
        How many releases every agent has made, and how often it has drawn noise for those that it disclosed.
    """

    def __init__(
        self,
        protocol: type[Protocol],
        parameters: ProtocolParameters,
        *,
        changed: int | None = None,
        prepared: bool = False,
        constants: Mapping[str, Any] = {},
        draw_seed: int | None = None,
    ) -> None:
        self.task, self.graph = small_task(empty=False), small_graph()

        def tried() -> Setting:
            return replace(small_setting(empty=False), task=small_task(empty=False), graph=small_graph())

        draws, others = Draws(SEED), Draws(SEED if draw_seed is None else draw_seed)

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
        tables = self.protocol.bind(self.state, unheard_is_own=True)
        self.inbox = Inbox(self.graph, {kind: spec.width for kind, spec in self.layout.messages.items()})
        self.data = [_copied(self.protocol.local_data(i, self.task.shard(i))) for i in range(AGENTS)]
        self.released, self.perturbed = [0] * AGENTS, [0] * AGENTS
        purse, data = OpenPurse(self.released, self.perturbed), enumerate(self.data)
        sources = [PeerSource(tables, i, self.inbox, purse, shard=one, stream=stream) for i, one in data]
        self.peers = list(map(tables.records[Peer], sources))
        self.at = 0, 0, 0.0
        self.started = [self.take("start", agent) for agent in range(AGENTS)]
        self.at = 0, 1, 1.0  # steps come after time 0
        self.reference, self.other = (
            reached(protocol, parameters, tried, seed=SEED, changed=other) for other in (False, True)
        )
        self.hear()

    def hear(self) -> None:
        """Fill inboxes with what the protocol has sent to them by itself in a small run on the reference data."""
        for order, ((kind, slot), sent) in enumerate(
            sorted(self.reference.messages.items(), key=lambda one: one[0][::-1])
        ):
            vector = sent.vector.copy()
            message = Message(sent.sender, sent.receiver, kind, vector, 0.0, order, 0, slot, 8 * len(vector))
            self._show(message)
            self.peers[sent.receiver].messages.append(message)

    def _show(self, message: Message) -> None:
        """Let an inbox know a message."""
        kind, edge, inbox = message.kind, message.edge, self.inbox
        inbox.values[kind][edge][:] = message.vector
        inbox.sent_at[kind][edge], inbox.order[kind][edge] = message.sent_at, message.order
        inbox.tick[kind][edge] = message.tick

    def disturb_all_but(self, agent: int, rng: np.random.Generator) -> None:
        """Change everything that an agent's step may not look at, to what a small run on other data came to."""
        own = self.graph.edges_of(agent)
        edges = [e for e in range(len(self.graph.heads)) if not own.start <= e < own.stop]
        others = [i for i in range(AGENTS) if i != agent]
        (state,) = self.other.state
        for owners, mine, theirs in ((others, self.state.agent, state.agent), (edges, self.state.edge, state.edge)):
            for name, block in mine.items():
                for owner in owners:
                    block[owner][:] = theirs[name][owner]
        for (kind, slot), message in self.other.messages.items():
            if slot in edges:
                self.inbox.values[kind][slot][:] = message.vector
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
        if self.traits.exchange == "pairwise":
            yield "request", partial(self.take, "request", agent, 0)
            for phase, kind in (("respond", "request"), ("complete", "reply")):
                for partner, vector in self._heard(kind, agent):
                    yield phase, partial(self.take, phase, agent, partner, vector)
            return
        yield "step", partial(self.take, "step", agent)
        messages = self.peers[agent].messages
        if self.traits.trigger == "message" and messages:
            yield "react", partial(self.take, "react", agent, messages[0])

    def _heard(self, kind: str, agent: int) -> list[tuple[int, NDArray[np.float64]]]:
        """A partner that has sent an agent such a message in the small run, and the message; nothing without any."""
        own = self.graph.edges_of(agent)
        ranks = [slot - own.start for slot in range(own.start, own.stop) if (kind, slot) in self.reference.messages]
        return [(rank, self.reference.messages[kind, own.start + rank].vector.copy()) for rank in ranks[:1]]

    def take(self, phase: str, agent: int, *given: Any) -> list[Sent]:
        """One step of an agent by hand, as `hushnet.protocols.steps.single_steps.SingleSteps.make`.

        Returns
        -------
        list of Sent
            What it sent, which is not delivered; it may have released something by it.
        """
        me, steps = self.peers[agent], self.protocol.steps
        steps.begin(phase, me, *self.at)
        steps.make(phase, me, *given)
        self.released[agent] += sum(not one.release.free for one in me.sent_)
        return me.sent_

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


def run_small(
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    *,
    engine: Engine | None = None,
    small: Callable[..., Setting] = small_setting,
    **fields: Any,
) -> World:
    """Run a protocol in a `small_setting` (or a `split_setting`) of these fields, by default on the event engine.

    Where it refuses a world in which somebody has no data, all have some.

    Raises
    ------
    InputError
        If it refuses that world too.
    """

    def make(again: Rewind | None) -> World:
        try:
            return admitted_world(small(**fields), protocol, parameters, again=again)
        except InputError:
            return admitted_world(small(**{**fields, "empty": False}), protocol, parameters, again=again)

    return run_exactly(make, lambda _: engine or EventEngine())


def _copied(shard: Shard) -> Shard:
    return Shard(shard.features.copy(), shard.labels.copy())


def example(protocol: type[Protocol], *, time: float = 60.0, split: bool = False, **fields: Any) -> World:
    """A small world that a protocol has run in for some time, without delays and losses: for examples.

    Parameters
    ----------
    time : float
        Expected wake-ups of each agent.
    split : bool
        Whether features are split between parties around a centre, instead of rows.
    **fields
        The protocol's parameters.
    """
    if not split:
        return run_small(protocol, protocol_parameters(protocol, fields), empty=False, time=time)
    world = admitted_world(split_setting(time=time), protocol, protocol_parameters(protocol, fields))
    EventEngine().run(world)
    return world


def relative_gap(world: World) -> float:
    """Return the excess of a protocol's objective over its minimum, divided by the excess of models that are zero."""
    objective, models = world.protocol.objective(), world.protocol.models(world.state)
    assert objective is not None
    assert models is not None
    minimum = objective.minimise()[1]
    return (objective.value(models) - minimum) / (objective.value(np.zeros_like(models)) - minimum)
