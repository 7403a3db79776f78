"""Tables that the steps of one run read beside the record of an agent: blocks, constants, and samples with clipping."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.blocks import State
from ...agents.graph import Graph
from ...agents.loss_codes import UNKNOWN, code_of
from ...agents.optimisation.compiled_sums import read_only
from ...agents.tables import Shard
from ..linear_map import SharedNoise
from ..privacy.mechanisms import Norm
from .attackers import Attackers
from .kernels import NORMS
from .step_names import Names

Array = NDArray[np.float64]
Tell = Callable[[str, NDArray[np.int64], Any, Any, NDArray[Any], NDArray[np.int64]], None]
"""Told what was drawn (``noise`` or ``rows``), by which agents, at which ticks and times, all (B,); the numbers, and
(B + 1,) where each agent's begin among them."""


class StepTables:
    """Everything that does not change from step to step.

    A neighbour that was never heard may show the agent's own block.
    """

    def __init__(self, names: Names, state: State, task: Any, graph: Graph, *, unheard_is_own: bool) -> None:
        self.names, self.protocol, self.state, self.unheard_is_own = names, names.protocol, state, unheard_is_own
        self.precision, self.exact = state.precision, state.precision == np.float64
        self.task, self.graph = task, graph
        self.loss, self.dimension = self.task.loss, self.task.dimension
        self.first_kind = next(iter(names.heard_kinds), "")
        self.loaders: Mapping[str, Callable[[Any], Any]] = {}
        """How a batch finds what a step may name (`hushnet.protocols.steps.record`)."""
        self.records: dict[type, type] = {}
        """Classes of records of one agent, each with all that a step may name, by the class that it extends."""
        self.attackers: Attackers | None = None
        """Byzantine agents, whose messages are replaced when they leave a step."""
        self.opening: Callable[[int, int, float], NDArray[np.bool_]] | None = None
        """``(agent, tick, now)`` -> (degree,) over which edges an agent sends, where the graph changes."""
        self.forms = Forms()
        """Kernels for the types that steps made when they are due give them."""
        self.own: dict[int, dict[str, Any]] = {}
        """`own_of` the agents that have made steps."""
        self.tell: Tell | None = None
        """Told of the noise and the rows that steps draw, where somebody asks for them."""

    def open_edges(
        self, agents: NDArray[np.int64], ticks: NDArray[np.int64], now: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """(R,) whether (B,) agents send over each of their edges, at steps of these ticks and times."""
        steps = zip(agents.tolist(), ticks.tolist(), now.tolist(), strict=True)
        return np.concatenate([self.open_at(*step) for step in steps])

    def open_at(self, agent: int, tick: int, now: float) -> NDArray[np.bool_]:
        """(degree,) over which of its edges an agent sends at a step of a tick and time."""
        if self.opening is None:
            return self.graph.opened[self.graph.edges_of(agent)]
        return self.opening(agent, tick, now)

    @cached_property
    def code(self) -> int:
        """The number of the loss for kernels; `UNKNOWN` where they do not know the loss, the model or the rows."""
        linear_rows = self.task.columns is None and self.task.model is None
        return code_of(self.loss) if linear_rows else UNKNOWN

    @cached_property
    def rows(self) -> tuple[Any, Array, NDArray[np.int64]]:
        """Features, labels and offsets of all agents' rows, as their steps see them."""
        train, own = self.task.train, self._changed
        if not own:
            return read_only(train.features), read_only(train.labels), read_only(train.offsets)
        offsets = np.cumsum([0, *(len(one) for one in own)]).astype(np.int64)
        features, labels = np.concatenate([one.stored for one in own]), np.concatenate([one.labels for one in own])
        return read_only(features), read_only(labels), read_only(offsets)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(n,) rows of each agent."""
        return np.array([len(one) for one in self._changed]) if self._changed else self.task.train.counts

    @cached_property
    def _changed(self) -> list[Shard]:
        """Samples of each agent as the protocol changes them; empty if it leaves all as they are."""
        if self.task.columns is not None or not self.protocol.changes_rows:
            return []
        shards = [self.task.shard(agent) for agent in range(self.task.agents)]
        own = [self.protocol.local_data(agent, shard) for agent, shard in enumerate(shards)]
        pairs = zip(own, shards, strict=True)
        return own if any(one.stored is not its.stored or one.labels is not its.labels for one, its in pairs) else []

    def shard(self, agent: int) -> Shard:
        """An agent's own rows, as its steps see them."""
        return self.protocol.local_data(agent, self.task.shard(agent))

    @cached_property
    def edges(self) -> tuple[NDArray[np.int64], Array]:
        """(n + 1,) where agents' edges begin, and (E,) their weights."""
        return read_only(self.graph.offsets), read_only(self.graph.weights)

    @cached_property
    def decays(self) -> Array:
        """(n,) factors of the regulariser's gradients."""
        return 2.0 * np.asarray(self.task.regularisation, dtype=np.float64)

    @cached_property
    def clip(self) -> tuple[int, float]:
        """Number of the norm to which gradients of examples are clipped, and the bound; 0 without one."""
        noise = self.protocol.step_noise
        clip = noise.clip if noise is not None else None
        return (0, 0.0) if clip is None else (NORMS[clip[0]], float(clip[1]))

    @cached_property
    def clip_mean(self) -> tuple[Norm, float] | None:
        """The norm and the bound to which an agent's mean gradient is clipped; None if it is not."""
        noise = self.protocol.step_noise
        return None if noise is None else noise.clip_mean

    @cached_property
    def shared_noise(self) -> SharedNoise | None:
        """Noise that neighbours add to what they perturb, and that cancels over each edge."""
        noise = self.protocol.step_noise
        return None if noise is None else noise.shared

    @cached_property
    def sent(self) -> dict[str, tuple[list[int], bool]]:
        """Count by kind the numbers that each agent's message carries; true beside if every neighbour gets its own."""
        return {kind: (widths.tolist(), kind in self.addressed) for kind, widths in self.names.sent_widths.items()}

    @cached_property
    def addressed(self) -> frozenset[str]:
        """Kinds of messages of which every neighbour is sent its own."""
        return frozenset(name for name, kind in self.names.layout.messages.items() if kind.addressed)

    def own_of(self, agent: int) -> dict[str, Any]:
        """What the record of an agent has at every step: views of its blocks, and what never changes.

        Of a block of edges that is the rows of the agent's own, as a list if widths differ.
        """
        edges = self.graph.edges_of(agent)
        views: dict[str, Any] = {name: block[agent] for name, block in self.state.agent.items()}
        for name, block in self.state.edge.items():
            rows = block.of(edges)
            views[name] = np.asarray(rows)[:, 0] if self.names.is_number(name) else rows
        found = self.own[agent] = {name: view for name, view in views.items() if name not in self.numbers}
        found |= {"blocks_": views, "agent": agent, "degree": edges.stop - edges.start}
        found["neighbours"] = read_only(self.graph.heads[edges])
        found["degrees_"], found["decays_"] = self.graph.degrees[agent : agent + 1], self.decays[agent : agent + 1]
        return found

    @cached_property
    def numbers(self) -> list[str]:
        """Blocks of one number of an agent."""
        return [name for name in self.state.agent if self.names.is_number(name)]

    @cached_property
    def mirrors(self) -> dict[str, str | None]:
        """The block that stands for what was never heard, by kind; None for zeros."""
        messages = self.names.layout.messages.items()
        return {kind: what.mirrors if self.unheard_is_own else None for kind, what in messages}


Ranks = NDArray[np.int64]
SAMPLING, OWN = "sampling", "own draws"
"""Streams from which rows are drawn, and what authors draw for themselves."""


class Forms(dict[Any, Callable[..., Any]]):
    """Kernels for arguments of the same types at every step of a run: to find these takes longer than most kernels."""

    def __missing__(self, kernel: Any) -> Callable[..., Any]:
        def first(*arguments: Any) -> Any:
            form = self[kernel] = kernel.form(arguments)
            return form(*arguments)

        return first


class StepSource(ABC):
    """Source of what one step, of one agent or of a batch, reads beside its blocks; forms are kernels for its types."""

    forms: Forms

    @abstractmethod
    def heard_at(self, kind: str, width: int) -> tuple[Any, Ranks, Ranks]:
        """A pool of vectors, and where in it what was heard over each edge is (-1: nothing).

        These are indices, one for each edge, and (B,) where each agent's begin among them.
        """

    @abstractmethod
    def sent_at(self, kind: str) -> Array:
        """(R,) when what was heard over each edge was sent; minus infinity where nothing was."""

    @abstractmethod
    def is_new(self, kind: str) -> NDArray[np.bool_]:
        """(R,) whether what was heard over each edge was not at the agent's last step."""

    @abstractmethod
    def rows(self, agents: Ranks) -> tuple[Any, Array, Ranks, Ranks]:
        """Features, labels and offsets of packed rows, read-only, and (B,) which of their owners the agents are."""

    @abstractmethod
    def shard(self, agent: int) -> Shard:
        """An agent's own rows."""

    @abstractmethod
    def perturb(self, values: Array) -> Array:
        """(B, width) values with the noise of the step's release."""

    @abstractmethod
    def perturb_objective(
        self, weights: Array, curvatures: Array, linear: Array, influences: Array, minimise: Callable[[Array], Array]
    ) -> Array:
        """(B, p) minimisers by ``minimise(linear)`` with the noise of the step's release in the linear term."""

    @abstractmethod
    def uniforms(self, count: int) -> Array:
        """(B, count) numbers of [0, 1) from each agent's own draws."""

    @abstractmethod
    def normals(self, count: int) -> Array:
        """(B, count) standard normal numbers from each agent's own draws."""

    @abstractmethod
    def choose(self, purpose: str, populations: Ranks, counts: Ranks) -> tuple[Ranks, Ranks]:
        """So many of each agent's first integers from 0, without replacement, and (B + 1,) where each agent's begin."""

    @abstractmethod
    def choose_each(self, shares: Array) -> tuple[Ranks, Ranks]:
        """Ranks of rows, each drawn with its agent's share, and (B + 1,) where each agent's begin."""

    @abstractmethod
    def affords(self) -> bool:
        """Set budget aside for the step's release; false if an agent cannot afford it."""

    @abstractmethod
    def follow(self) -> None:
        """Note that what the step sends follows from what was released and heard before."""

    @abstractmethod
    def part(self, rows: Ranks) -> StepSource:
        """The same for some of the agents, or none, by their places in the batch; what these draw or say is theirs."""
