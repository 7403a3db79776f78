"""Ports through which planned steps send, protocols' declarations, and groups of agents that fit into one batch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....protocols.steps.charges import NotPlanned
from ....protocols.steps.tables import StepTables
from ...world.world import World
from .plan import ADDRESSED, KIND, PORT_COLUMNS, SIZE, VECTORS, WIDTH, StepPlan

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]
SHORT = 4096
"""Numbers whose product with themselves BLAS makes without threads, which cost more than they save."""


def finite(values: Array | list[Array]) -> bool:
    """True if all numbers are finite; a finite sum of them, or of their squares, proves it unless it overflows."""
    if isinstance(values, list):  # edges of one agent that differ in width
        return all(map(finite, values))
    flat = values if values.ndim == 1 else values.reshape(-1)
    total = flat.dot(flat) if len(flat) <= SHORT else flat.sum()
    return math.isfinite(total) or bool(np.isfinite(values).all())


def ports_of(tables: StepTables, world: World, *, pairs: bool) -> Ranks:
    """Return the ports through which a step sends, one for each kind of message.

    Raises
    ------
    NotPlanned
        If the messages have a layout that plans do not support.
    """
    names = tables.names
    kinds = ("request", "reply") if pairs else tuple(names.messages.values())
    ports = np.zeros((len(kinds), PORT_COLUMNS), dtype=np.int64)
    for port, kind in zip(ports, kinds, strict=True):
        what, widths = names.layout.messages[kind], names.sent_widths[kind]
        if len(set(widths[widths > 0].tolist())) > 1:
            raise NotPlanned("its messages have different widths")
        if world.setting.availability.joins and what.addressed and not pairs:
            raise NotPlanned(
                "it sends every neighbour something else, and who joins late is told what it was sent last"
            )
        width = int(widths.max(initial=0))
        port[KIND], port[ADDRESSED], port[VECTORS], port[WIDTH] = (
            names.kinds.index(kind),
            what.addressed,
            what.vectors,
            width,
        )
        port[SIZE] = world.network.size(width)
    return ports


def declare(plan: StepPlan, protocol: Any, names: Any) -> None:
    """Fill in what a protocol declares of its steps."""
    most = protocol.most_steps()
    if most is not None:
        plan.most[:] = np.minimum(np.broadcast_to(most, plan.most.shape), np.iinfo(np.int64).max / 2).astype(np.int64)
    declared: Mapping[str, Any] = protocol.sends()
    for port, kind in enumerate(names.messages.values()):
        if kind in declared:
            plan.period[port], plan.phase[port] = declared[kind].period, declared[kind].phase
        plan.period[port, names.sent_widths[kind] == 0] = 0


def groups_of(tables: StepTables) -> Ranks | None:
    """(n,) a number for agents whose blocks and messages have the same widths; None where all have."""
    state, names = tables.state, tables.names
    uneven = [block.offsets for block in state.agent.values() if not block.uniform]
    widths = [np.diff(offsets) for offsets in uneven]
    widths += [one for one in (*names.sent_widths.values(), *names.heard_widths.values()) if len(set(one.tolist())) > 1]
    for block in state.edge.values():
        if not block.uniform:
            own = np.zeros(tables.graph.agents, dtype=np.int64)
            own[tables.graph.tails] = np.diff(block.offsets)
            widths.append(own)
    if not widths:
        return None
    return np.unique(np.stack(widths), axis=1, return_inverse=True)[1].reshape(-1)
