"""Directed graphs and those that change: what fits them, and over which edges agents send."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...agents.errors import InputError
from ...protocols.base import Traits
from ...protocols.schedule import RoundsSchedule
from .graph_changes import Opening
from .setting import Setting


def check_directed(
    traits: Traits, kind: str, rounds: RoundsSchedule | None, *, directed: bool, changing: bool, unfailing: bool
) -> None:
    """Refuse a graph that is directed, or changes, to protocols and rounds that need another one.

    Raises `InputError` with the topology. It is ``unfailing`` if no message is lost and nobody is ever down.
    """
    if changing and not traits.changing:
        raise InputError(
            f"makes a graph that changes, and the protocol {kind!r} needs all edges open; use a protocol for graphs "
            "that change, such as epidemic_learning, or a graph that stays as it is",
            field=("topology", "changes"),
        )
    if not directed:
        return
    if not traits.directed:
        raise InputError(
            f"makes a directed graph, and the protocol {kind!r} needs an undirected one; use a protocol for directed "
            "graphs, such as stochastic_gradient_push",
            field=("topology",),
        )
    if rounds is not None and rounds.repeats(unfailing=unfailing):
        raise InputError(
            "makes a directed graph, and rounds repeat what is not acknowledged, for which there is no way back; use "
            "schedule: {kind: rounds, patience: 3} or schedule: async",
            field=("topology",),
        )


def opening_of(setting: Setting, numbers: NDArray[np.uint64]) -> Opening | None:
    """Over which edges agents, with these (n,) stable numbers, send at a step; None where the graph does not change."""
    if setting.changes is None:
        return None
    return setting.changes.build(setting.graph, setting.task.ids, numbers, setting.draws, setting.base)
