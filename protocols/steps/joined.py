"""Tables that the steps of several runs read, if their batches are made side by side."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.blocks import State
from ...agents.graph import Graph
from ...agents.loss_codes import UNKNOWN
from ...agents.tables import Shard
from .loading import loaders_of
from .names import Names
from .tables import StepTables, read_only


class Apart(Exception):
    """Raised if runs cannot be made side by side; the message is the reason."""


@dataclass(frozen=True)
class JoinedTask:
    """Parts of the tasks of several runs that steps in batches read.

    Parameters
    ----------
    loss : Loss
    dimension : int
    regularisation : (n,) float64
    columns, model : None
        Features are not split, and models are linear.
    """

    loss: Any
    dimension: int
    regularisation: NDArray[np.float64]
    columns: None = None
    model: None = None


class JoinedTables(StepTables):
    """The tables of several runs of one protocol, whose agents follow each other.

    The blocks of the parts are views of one block from then on.

    Parameters
    ----------
    parts : sequence of StepTables

    Raises
    ------
    Apart
        If a step of theirs might read something that differs from run to run.
    """

    def __init__(self, parts: Sequence[StepTables]) -> None:
        self._parts = parts
        self._firsts = np.cumsum([0, *(part.graph.agents for part in parts)])
        _check_equal(parts)
        joined = Graph.joined([part.graph for part in parts])
        regularisation = np.concatenate([np.asarray(part.task.regularisation) for part in parts])
        task = JoinedTask(parts[0].loss, parts[0].dimension, regularisation)
        names, state = _joined_names([part.names for part in parts]), State.joined([part.state for part in parts])
        super().__init__(names, state, task, joined, unheard_is_own=parts[0].unheard_is_own)
        for part in parts:
            part.__dict__.pop("views", None)  # of the blocks that it had
        offsets = [part.rows[2] for part in parts]
        ends = np.cumsum([0, *(own[-1] for own in offsets)])
        begins = [own[:-1] + begin for own, begin in zip(offsets, ends[:-1], strict=True)]
        self.counts = np.concatenate([part.counts for part in parts])
        self.rows = (
            read_only(np.concatenate([part.rows[0] for part in parts])),
            read_only(np.concatenate([part.rows[1] for part in parts])),
            read_only(np.concatenate([*begins, ends[-1:]])),
        )
        self.loaders = loaders_of(self)

    @override
    def shard(self, agent: int) -> Shard:
        rank = int(np.searchsorted(self._firsts, agent, side="right")) - 1
        return self._parts[rank].shard(agent - int(self._firsts[rank]))


def _joined_names(parts: Sequence[Names]) -> Names:
    """The names of several runs; what belongs to an agent or an edge, one run after the other."""
    names = copy.copy(parts[0])

    def joined(what: str) -> dict[str, Any]:
        return {name: np.concatenate([getattr(part, what)[name] for part in parts]) for name in getattr(parts[0], what)}

    names.per_agent, names.per_edge = joined("per_agent"), joined("per_edge")
    names.sent_widths, names.heard_widths = joined("sent_widths"), joined("heard_widths")
    names.roles = np.concatenate([part.roles for part in parts])
    return names


def _check_equal(parts: Sequence[StepTables]) -> None:
    """Refuse runs of which a step may read what is the same for all agents of a run, and differs.

    Raises
    ------
    Apart
    """
    first = parts[0]
    for part in parts:
        if part.code == UNKNOWN or not isinstance(part.rows[0], np.ndarray):
            raise Apart("their rows are read agent by agent")
        for what in ("code", "clip", "dimension", "unheard_is_own", "mirrors"):
            if getattr(part, what) != getattr(first, what):
                raise Apart(f"they differ in {what}")
        one, other = part.names, first.names
        same = one.parameters == other.parameters and one.run.keys() == other.run.keys()
        if not same or any(one.run[name].tobytes() != other.run[name].tobytes() for name in one.run):
            raise Apart("their parameters or constants differ")
        if part.rows[0].dtype != first.rows[0].dtype or part.rows[0].shape[1:] != first.rows[0].shape[1:]:
            raise Apart("their rows differ in width")
        widths = [
            {name: block.width if block.uniform else None for name, block in of.items()}
            for of in (part.state.agent, part.state.edge, first.state.agent, first.state.edge)
        ]
        if widths[:2] != widths[2:] or None in {*widths[0].values(), *widths[1].values()}:
            raise Apart("their blocks differ in width")
