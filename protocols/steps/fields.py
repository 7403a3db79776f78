"""Where the fields of a compiled record are: one line of code for each, over the run's `AddressTable`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.blocks import Block
from ...agents.compilation.address_table import AddressTable
from ...agents.optimisation.compiled_newton import minimiser_of
from ...agents.stream_keys import WORDS, new_stream
from ..kernel import ADDRESSED, PORT_COLUMNS
from .charges import StepCharges
from .names import Names
from .surroundings import StepSurroundings
from .tape import Tape
from .word_form import NoForm

PASSED = {
    "agent": "agent",
    "tick": "tick",
    "now": "now",
    "updates": "updates",
    "round": "updates + 1",
    "degree": "last - first",
    "known_": "known[first:last]",
    "pool_": "pool",
}
"""What a compiled step is called with."""


MOST_ASKED = 1024
"""Bytes of an array that are asked for before an agent wakes; what follows them comes by itself."""


def rows_of_all(protocol: Any) -> NDArray[Any]:
    """The rows of all agents as their steps see them: the task's own array, where no agent's are changed.

    Raises
    ------
    NoForm
        If the agents' rows have different widths.
    """
    train = protocol.problem.task.train
    if not protocol.changes_rows:
        return train.features
    shards = [train.shard(agent) for agent in range(len(train.counts))]
    own = [protocol.local_data(agent, shard) for agent, shard in enumerate(shards)]
    if all(one.features is shard.features for one, shard in zip(own, shards, strict=True)):
        return train.features
    if len({one.features.shape[1] for one in own}) > 1 or [len(one) for one in own] != train.counts.tolist():
        raise NoForm("the agents' rows have different widths")
    return np.concatenate([one.features for one in own])


class Fields:
    """The fields of the records of one run, each put into a table when its code is asked for.

    Parameters
    ----------
    names : Names
    around : StepSurroundings
    charges : StepCharges
    bound : float
        To which gradients of examples are clipped; not read where they are not.
    exchange : bool
        Whether the texts are those of an exchange.
    tape : Tape, optional
        What watched steps write their draws on.
    cold : bool
        Whether to compile what steps call by its address; without it nobody may run them.

    Attributes
    ----------
    table : AddressTable
    cached_losses : (n,) float64
        What steps note for the recorder; empty where they do not.
    ports : (k, PORT_COLUMNS) int64
        What a step sends, see `hushnet.protocols.kernel.Kernel`.
    """

    def __init__(
        self,
        names: Names,
        around: StepSurroundings,
        charges: StepCharges,
        bound: float,
        *,
        exchange: bool,
        tape: Tape | None = None,
        cold: bool = True,
    ) -> None:
        self.names, self.around, self.charges, self.bound = names, around, charges, bound
        self.protocol, self.task = names.protocol, names.protocol.problem.task
        self.graph = names.protocol.problem.graph
        self.table, self.cached_losses = AddressTable(), np.empty(0)
        self.kind = next(iter(names.layout.messages.values()))
        self.exchange, self.cold = exchange, cold
        self.tape = tape or Tape(watched=False)
        self.ports = np.zeros((0 if exchange else len(names.messages), PORT_COLUMNS), dtype=np.int64)
        if not exchange:
            ranks = {kind: rank for rank, kind in enumerate(names.kinds)}
            for port, kind in zip(self.ports, names.messages.values(), strict=True):
                what = names.layout.messages[kind]
                port[:4] = ranks[kind], what.addressed, what.vectors, names.sent_widths[kind].max(initial=0)

    def code(self, name: str) -> str:
        """The code of a field.

        Raises
        ------
        NoForm
            If it has none.
        """
        if name in PASSED:
            return PASSED[name]
        if name in self.names.layout.agent:
            return self._agent_block(name)
        if name in self.names.layout.edge:
            return self._edge_block(name)
        if name in self.names.messages:
            return self._message(name)
        if name in self.names.heard:
            return self._heard_of(self.names.heard[name])
        if name in self.names.was_heard:
            return f"known[{self._kind_place(self.names.was_heard[name])}] >= 0"
        if name in self.names.given:
            return self._given(name)
        if name in self.tape.arrays:
            array = self.tape.arrays[name]
            how = "wholes" if array.dtype == np.int64 else "reals"
            return f"{how}({self.array(array, array.dtype, written=True)}, 0, {self.number(len(array))})"
        return getattr(self, f"_{name.rstrip('_')}")()

    def array(self, array: NDArray[Any], dtype: Any = np.float64, *, written: bool = False) -> str:
        """The code of an array's address; of its own one, if anybody writes into it while the run goes on."""
        return f"table[{self.table.array(array, dtype, written=written)}]"

    def of_agents(self, array: NDArray[Any], dtype: Any = np.float64, *, written: bool = False) -> str:
        """As `array`, of one that has equally many numbers of each agent, agent after agent."""
        place = self.table.array(array, dtype, written=written)
        size = array.size // self.graph.agents * np.dtype(dtype).itemsize
        self.table.note_read(place, size, min(size, MOST_ASKED))
        return f"table[{place}]"

    def from_begins(
        self, array: NDArray[Any], begins: NDArray[np.int64], width: int, dtype: Any = np.float64, *, written: bool
    ) -> str:
        """As `array`, of one with parts of so many numbers, agent after agent; ``begins`` says at which part."""
        place = self.table.array(array, dtype, written=written)
        part, size = np.dtype(dtype).itemsize * width, array.size // self.graph.agents * np.dtype(dtype).itemsize
        self.table.note_read(place, part, min(size, MOST_ASKED), begins)
        return f"table[{place}]"

    def number(self, value: int) -> str:
        """The code of a whole number."""
        return f"table[{self.table.number(value)}]"

    # Blocks.

    def _agent_block(self, name: str) -> str:
        block: Block = self.around.state.agent[name]
        if block.uniform:
            place, width = self.of_agents(block.values, written=True), self.number(block.width)
            code = f"reals({place}, agent * {width}, {width})"
            return code if self.names.is_number(name) else f"asked({code})"
        place, offsets = self.array(block.values, written=True), self.of_agents(block.offsets, np.int64)
        return f"reals({place}, whole({offsets}, agent), whole({offsets}, agent + 1) - whole({offsets}, agent))"

    def _edge_block(self, name: str) -> str:
        block: Block = self.around.state.edge[name]
        if not block.uniform:
            return self._uneven_rows_of_edges(name, block)
        return self._rows_of_edges(
            self.from_begins(block.values, self.graph.offsets, block.width, written=True),
            None if self.names.is_number(name) else block.width,
        )

    def _rows_of_edges(self, place: str, width: int | None) -> str:
        if width is None:
            return f"reals({place}, first, last - first)"
        code = self.number(width)
        return f"real_rows({place}, first * {code}, last - first, {code})"

    def _uneven_rows_of_edges(self, name: str, block: Block) -> str:
        """Rows as wide as those of all edges that the agent owns, one agent's after the other's."""
        firsts, of_edges = self.graph.offsets, np.diff(block.offsets)
        widths = np.full(self.graph.agents, block.width, dtype=np.int64)  # of agents without edges, too
        widths[self.graph.degrees > 0] = of_edges[firsts[:-1][self.graph.degrees > 0]]
        if (of_edges != widths[self.graph.tails]).any():
            raise NoForm(f"the edge block {name!r} has different widths on edges of one agent")
        place, begin = self.array(block.values, written=True), self.array(block.offsets, np.int64)
        return f"real_rows({place}, whole({begin}, first), last - first, whole({self.array(widths, np.int64)}, agent))"

    # What every agent has.

    def _weights(self) -> str:
        weights = self.from_begins(self.graph.weights, self.graph.offsets, 1, written=False)
        return f"reals({weights}, first, last - first)"

    def _regularisation(self) -> str:
        return f"real({self.of_agents(self.task.regularisation)}, agent)"

    def _span(self) -> tuple[str, str]:
        """Where an agent's rows begin, and how many they are: of labels, where features are split."""
        offsets = self.of_agents(self.task.train.offsets, np.int64)
        return f"whole({offsets}, agent)", f"whole({offsets}, agent + 1) - whole({offsets}, agent)"

    def _rows(self) -> str:
        return self._span()[1]

    def _labels(self) -> str:
        (begin, rows), train = self._span(), self.task.train
        return f"reals({self.from_begins(train.labels, train.offsets, 1, written=False)}, {begin}, {rows})"

    def _features(self) -> str:
        if self.task.columns is not None:
            return self._columns(len(self.task.columns))
        features = self._all_features
        (begin, rows), width = self._span(), self.number(features.shape[1])
        how, dtype = ("single_rows", np.float32) if features.dtype == np.float32 else ("real_rows", np.float64)
        place = self.from_begins(features, self.task.train.offsets, features.shape[1], dtype, written=False)
        return f"asked_rows({how}({place}, {begin} * {width}, {rows}, {width}))"

    def _columns(self, agents: int) -> str:
        """All rows of an agent's own columns, one agent's after the other's."""
        own = [self.protocol.local_data(agent, self.task.shard(agent)).stored for agent in range(agents)]
        single = all(one.dtype == np.float32 for one in own)
        how, dtype = ("single_rows", np.float32) if single else ("real_rows", np.float64)
        packed = self.array(np.concatenate([np.ravel(one) for one in own]), dtype)
        begins = self.array(np.cumsum([0, *(one.size for one in own[:-1])]), np.int64)
        rows, widths = (self.array(np.array([one.shape[k] for one in own]), np.int64) for k in (0, 1))
        return f"{how}({packed}, whole({begins}, agent), whole({rows}, agent), whole({widths}, agent))"

    @cached_property
    def _all_features(self) -> NDArray[Any]:
        return rows_of_all(self.protocol)

    # What was heard, and is said.

    def _kind_place(self, kind: str) -> str:
        """Where the in-edges of an agent are among what is known of a kind."""
        before = self.number(self.names.kinds.index(kind) * len(self.graph.heads))
        return f"{before} + first:{before} + last"

    def sent_width(self, kind: str) -> str:
        """Numbers of an agent's own message of a kind; 0 if it sends none."""
        return self._width_in(self.names.sent_widths[kind])

    def _heard_width(self, kind: str) -> str:
        """Numbers of what an agent hears of a kind; fewer than others hear only if nobody tells it anything."""
        return self._width_in(self.names.heard_widths[kind])

    def _width_in(self, widths: NDArray[np.int64]) -> str:
        same = len(widths) == 0 or bool((widths == widths[0]).all())
        if same:
            return self.number(int(widths.max(initial=0)))
        return f"whole({self.of_agents(widths, np.int64)}, agent)"

    def _heard_of(self, kind: str) -> str:
        place, width = self._kind_place(kind), self._heard_width(kind)
        return f"gathered(known[{place}], pool, {width}, {self._mirror_of(kind)})"

    def place_of(self, name: str) -> str:
        """Which of a step's rows are the message's: the first of them."""
        before = list(self.names.messages).index(name)
        apart = int(self.ports[:before, ADDRESSED].sum())
        return f"{before - apart} + {apart} * (last - first)" if apart else str(before)

    def _message(self, name: str) -> str:
        """One row of the pool; of a message that differs by neighbour, pool, rows and width (see `assigning.put`)."""
        if self.exchange:
            return name
        width = self.sent_width(self.names.messages[name])
        if not self.names.is_apart(name):
            return f"pool[rows[{self.place_of(name)}]][:{width}]"
        return f"(pool, rows[{self.place_of(name)}:][:last - first], {width})"

    # What words read.

    def _mirror(self) -> str:
        return self._mirror_of(self.names.kinds[0])

    def _mirror_of(self, name: str) -> str:
        """What an agent takes neighbours to say that it has never heard: the same code for a block and for zeros."""
        kind = self.names.layout.messages[name]
        width = int(np.max(kind.width))
        own, step = np.zeros(width), 0
        if kind.mirrors is not None and self.around.unheard_is_own:
            block = self.around.state.agent[kind.mirrors]
            if not block.uniform:
                return self._agent_block(kind.mirrors)
            own, step = block.values, width
        place = self.number(self.table.hold(own).ctypes.data)
        return f"reals({place}, agent * {self.number(step)}, {self._heard_width(name)})"

    def _minimiser(self) -> str:
        """The address of what solves an agent's own problem."""
        if not self.cold:
            return self.number(0)
        single = self._all_features.dtype == np.float32
        return self.number(minimiser_of(self.task.loss.name, single=single).address)

    def _writer(self) -> str:
        """The address of what writes draws down."""
        from .tape_writer import writer

        return self.number(writer().address if self.tape.watched else 0)

    def _bound(self) -> str:
        return f"real({self.array(np.array([self.bound]))}, 0)"

    def _scores(self) -> str:
        most = int(self.task.train.counts.max(initial=0))
        return f"reals({self.array(np.empty(most), written=True)}, 0, {self.number(most)})"

    def _noted(self) -> str:
        self.cached_losses = np.zeros(self.task.agents)
        return f"reals({self.of_agents(self.cached_losses, written=True)}, agent, 1)"

    def _noise(self) -> str:
        return self._stream("noise")

    def _sampling(self) -> str:
        return self._stream("sampling")

    def _stream(self, purpose: str) -> str:
        """A stream of the agent and its tick, at its beginning when the step begins."""
        words = new_stream(self.around.seed, purpose)
        self.tape.streams[purpose] = words
        stream = self.array(words, np.uint64, written=True)
        numbers = self.of_agents(self.around.numbers.astype(np.int64), np.int64)
        return f"begun(words({stream}, 0, {WORDS}), tick, whole({numbers}, agent))"

    def _growth(self) -> str:
        assert self.charges.growth is not None
        return f"real({self.of_agents(self.charges.growth)}, agent)"

    def _noisy(self) -> str:
        """Whether an agent's release has noise."""
        return f"whole({self.of_agents(self.charges.undrawn_bits, np.int64, written=True)}, agent) != 0"

    def _dimension(self) -> str:
        return self.number(self.protocol.step_noise.dimension)

    def _scales(self) -> str:
        stages = self.number(self.charges.scales.shape[1])
        return f"reals({self.of_agents(self.charges.scales)}, agent * {stages}, {stages})"

    def _draws(self) -> str:
        stages = self.number(self.charges.draws.shape[1])
        return f"wholes({self.of_agents(self.charges.draws, np.int64, written=True)}, agent * {stages}, {stages})"

    def _drawn(self) -> str:
        return f"wholes({self.array(np.zeros(1, dtype=np.int64), np.int64, written=True)}, 0, 1)"

    def _affordable(self) -> str:
        return f"whole({self.of_agents(self.charges.affordable, np.int64, written=True)}, agent)"

    def _free(self) -> str:
        return f"wholes({self.array(np.zeros(1, dtype=np.int64), np.int64, written=True)}, 0, 1)"

    def _ports(self) -> str:
        ports = self.ports if len(self.ports) else np.zeros((1, PORT_COLUMNS), dtype=np.int64)
        return f"whole_rows({self.array(ports, np.int64, written=True)}, 0, {self.number(len(ports))}, {PORT_COLUMNS})"

    # What the protocol gives.

    def _given(self, name: str) -> str:
        names = self.names
        if name in names.run:
            array = names.run[name]
            place, sizes = self.array(array), [self.number(size) for size in array.shape]
            if array.ndim > 2:
                raise NoForm(f"me.{name} has {array.ndim} dimensions")
            return [f"real({place}, 0)", f"reals({place}, 0, {{}})", f"real_rows({place}, 0, {{}}, {{}})"][
                array.ndim
            ].format(*sizes)
        if name in names.per_agent:
            array = names.per_agent[name]
            if array.ndim == 1:
                return f"real({self.of_agents(array)}, agent)"
            width = self.number(array.shape[1])
            return f"reals({self.of_agents(array)}, agent * {width}, {width})"
        if name in names.per_edge:
            array = names.per_edge[name]
            width = None if array.ndim == 1 else array.shape[1]
            return self._rows_of_edges(self.from_begins(array, self.graph.offsets, width or 1, written=False), width)
        value = names.parameters[name]
        if isinstance(value, int | np.integer):
            return self.number(int(value))
        if isinstance(value, float):
            return f"real({self.array(np.array([value]))}, 0)"
        raise NoForm(f"me.{name} is a {type(value).__name__}; compiled steps read numbers, texts and switches")
