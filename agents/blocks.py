"""State laid out in flat arrays, so that any protocol family fits and compiled kernels can read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Width = int | Sequence[int] | NDArray[np.int64]
"""Numbers that a block holds: the same for everyone, or one width per owner."""


def whole_widths(width: Width) -> NDArray[np.int64]:
    """One width or one per owner, as integers; raises `ValueError` if one is no integer from 0."""
    given = np.asarray(width)
    if (given.size and not np.issubdtype(given.dtype, np.integer)) or (given < 0).any():
        raise ValueError(f"a width must be an integer from 0, or one per owner, got {width!r}")
    return given.astype(np.int64)


def real(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """The same numbers in float64, which steps compute in: a copy of float32, else the very array."""
    return np.asarray(values, dtype=np.float64)


def rounded(values: NDArray[np.float64], precision: DTypeLike) -> NDArray[np.floating]:
    """The numbers in a precision: infinite where they are beyond its range."""
    with np.errstate(over="ignore"):
        return values.astype(precision, copy=False)


class Block:
    """One named vector per owner (an agent or a directed edge), packed into one array of float64 or float32.

    All have one width, or each owner its own.
    """

    def __init__(self, owners: int, width: Width, precision: DTypeLike = np.float64) -> None:
        widths = np.broadcast_to(whole_widths(width), (owners,))
        self.uniform = isinstance(width, int | np.integer) or len(set(widths.tolist())) <= 1
        self.width = int(width) if isinstance(width, int | np.integer) else int(widths.max(initial=0))
        self.offsets = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        self.values = np.zeros(int(self.offsets[-1]), precision)

    @classmethod
    def joined(cls, parts: Sequence[Block]) -> Block:
        """One block of the owners of several, one after the other; the parts are views of it from then on."""
        whole = cls(0, parts[0].width)
        whole.uniform = all(part.uniform and part.width == whole.width for part in parts)
        whole.width = max(part.width for part in parts)
        ends = np.cumsum([0, *(len(part.values) for part in parts)])
        inner = [part.offsets[:-1] + begin for part, begin in zip(parts, ends[:-1], strict=True)]
        whole.offsets = np.concatenate([*inner, ends[-1:]]).astype(np.int64)
        whole.values = np.concatenate([part.values for part in parts])
        for part, own in zip(parts, np.split(whole.values, ends[1:-1]), strict=True):
            part.values = own
        return whole

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, owner: int) -> NDArray[np.float64]:
        """The owner's vector, as a writable view."""
        return self.values[self.offsets[owner] : self.offsets[owner + 1]]

    @property
    def rows(self) -> NDArray[np.float64]:
        """(owners, width) writable view of a block whose owners all have the same width."""
        if not self.uniform:
            raise ValueError("the owners of this block have different widths; take them one by one")
        return self.values.reshape(len(self.offsets) - 1, self.width)

    def width_of(self, owners: NDArray[np.int64]) -> int:
        """Width of the vectors of some owners, which is the same for all of them."""
        if self.uniform or not len(owners):
            return self.width
        widths = self.offsets[owners + 1] - self.offsets[owners]
        if (widths != widths[0]).any():
            raise ValueError("the owners of this block have different widths; take them one by one")
        return int(widths[0])

    def taken(self, owners: NDArray[np.int64]) -> NDArray[np.float64]:
        """(k, width) float64 copies of the vectors of some owners, whose widths agree."""
        if self.uniform:
            return real(self.rows.take(owners, 0))
        return real(self.values[self.offsets[owners][:, None] + np.arange(self.width_of(owners))])

    def put(self, owners: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Set the vectors of some owners, whose widths agree."""
        if self.uniform:
            self.rows[owners] = values
        else:
            self.values[self.offsets[owners][:, None] + np.arange(self.width_of(owners))] = values

    def of(self, owners: slice) -> NDArray[np.float64] | list[NDArray[np.float64]]:
        """Views of consecutive owners: a matrix where their widths agree, otherwise a list of vectors."""
        if self.uniform:
            return self.rows[owners]
        first, last, _ = owners.indices(len(self))
        widths = np.diff(self.offsets[first : last + 1])
        if (widths != widths[:1]).any():
            return [self[owner] for owner in range(first, last)]
        width = int(widths[0]) if len(widths) else self.width
        return self.values[self.offsets[first] : self.offsets[last]].reshape(len(widths), width)


class State:
    """All blocks of a run: of each agent, and of each directed edge, which its tail owns, by name and width."""

    def __init__(
        self,
        agents: int,
        edges: int,
        agent_widths: Mapping[str, Width],
        edge_widths: Mapping[str, Width],
        precision: DTypeLike = np.float64,
    ) -> None:
        self.precision: np.dtype[Any] = np.dtype(precision)
        self.agent = {name: Block(agents, width, precision) for name, width in agent_widths.items()}
        self.edge = {name: Block(edges, width, precision) for name, width in edge_widths.items()}

    @classmethod
    def joined(cls, parts: Sequence[State]) -> State:
        """The blocks of several runs with blocks of the same names; see `Block.joined`."""
        whole = cls(0, 0, {}, {}, parts[0].precision)
        whole.agent = {name: Block.joined([part.agent[name] for part in parts]) for name in parts[0].agent}
        whole.edge = {name: Block.joined([part.edge[name] for part in parts]) for name in parts[0].edge}
        return whole
