"""Layout of a protocol: blocks of its agents and edges, and the kinds of messages that they exchange."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..agents.authors import place_of
from ..agents.blocks import State, Width, whole_widths
from ..agents.errors import InputError
from ..agents.graph import Graph
from ..agents.suggestions import listed

SHARES = 1_000_000
"""Parts of a vector that shares of vectors are counted in, so that sums are exact."""


@dataclass(frozen=True)
class MessageKind:
    """A kind of message."""

    width: Width
    """int or (n,) sequence of int: Numbers it carries: one, or one per sender."""
    mirrors: str | None = None
    """The agent block that it shows to others. A neighbour that was never heard is taken to agree with the agent's own
    block (under ``network.start: own``, or before a late neighbour joins)."""
    vectors: float = 1
    """Model-sized vectors that one message counts as in the traffic; a share of one, to a millionth, where it has a
    part of a model."""
    bits: int | None = None
    """Bits that one message takes, where its numbers are sent in another form than a model's (indices of 32 bits, signs
    of one): the traffic counts whole bytes. The numbers themselves must be those that fit into them."""
    addressed: bool = False
    """Whether a step sends every neighbour a vector of its own: its message is (degree, width) then."""
    public: bool = False
    """Whether its numbers follow from draws and from what has arrived, whatever the data and the noise are, such as the
    number of a step in an answer."""

    def __post_init__(self) -> None:
        whole_widths(self.width)
        if self.bits is not None and self.bits < 1:
            raise ValueError(f"MessageKind: bits = {self.bits}: must be at least 1")
        if not (isinstance(self.vectors, Real) and 0 <= self.vectors <= SHARES):
            raise ValueError(f"MessageKind: vectors = {self.vectors!r}: must be a number from 0 to {SHARES:,}")

    def size(self, numbers: int, each: int = 8) -> int:
        """Bytes of a message that carries this many numbers of so many bytes each, without a header."""
        return each * numbers if self.bits is None else (self.bits + 7) // 8

    def width_of(self, agent: int) -> int:
        """Numbers of a message of an agent."""
        return int(self.width if np.ndim(self.width) == 0 else self.width[agent])  # type: ignore[index,arg-type]


@dataclass(frozen=True)
class Layout:
    """Blocks and message kinds of a protocol; all blocks start at zero."""

    agent: Mapping[str, Width]
    """Blocks of each agent; the block ``model`` is what the recorder measures by default."""
    edge: Mapping[str, Width] = field(default_factory=dict)
    """Blocks of each directed edge, owned by its tail."""
    messages: Mapping[str, MessageKind] = field(default_factory=dict)
    roles: Sequence[str] | None = None
    """(n,) sequence of str: What each agent is (party, centre); everybody is a ``peer`` by default."""

    @property
    def shares(self) -> int:
        """Parts of a vector that traffic is counted in: `SHARES` where a message counts as a share of one, else 1."""
        return 1 if all(float(kind.vectors).is_integer() for kind in self.messages.values()) else SHARES

    def shares_of(self, kind: str) -> int:
        """Parts of a vector that a message of a kind counts as."""
        return round(self.messages[kind].vectors * self.shares)

    def check(self) -> None:
        """Raise a ValueError for names that are no ``me.name`` of steps, and kinds of messages that mirror no block."""
        for name in (*self.agent, *self.edge, *self.messages):
            if not (isinstance(name, str) and name.isidentifier()):
                raise ValueError(f"{name!r} cannot be read as me.{name}: a name has letters, digits and underscores")
        for name, kind in self.messages.items():
            if not isinstance(kind, MessageKind):
                raise ValueError(f"messages[{name!r}] must be a MessageKind, not {type(kind).__name__}")
            if kind.mirrors is not None and kind.mirrors not in self.agent:
                blocks = listed(self.agent) or "none"
                raise ValueError(f"messages[{name!r}] mirrors {kind.mirrors!r}; blocks of agents are: {blocks}")


def laid_out(layout_of: Callable[[], Any], graph: Graph, precision: DTypeLike) -> tuple[Layout, State]:
    """Blocks of a protocol's layout on a graph, of numbers of one precision.

    Raises `InputError` if it gives no layout, or one with a width or a name that is none; with the line where it
    begins.
    """
    layout = layout_of()
    try:
        if not isinstance(layout, Layout):
            raise ValueError(f"must return a Layout, not {type(layout).__name__}")
        layout.check()
        return layout, State(graph.agents, len(graph.heads), layout.agent, layout.edge, precision)
    except ValueError as error:
        raise InputError(f"{place_of(layout_of)}: {error}") from error
