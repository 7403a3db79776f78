"""Comparison of a declared linear map with a run: with what was charged, what agents hold, and what they have sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...protocols.linear_map import START, LinearMap
from ...protocols.privacy.ledger import charge_of
from .deliveries import AT_START, Deliveries
from .linear_view import LinearView

if TYPE_CHECKING:
    from ..world.world import World

Array = NDArray[np.float64]
ROUNDING = 1e-9
"""Part of the sum of all terms' sizes by which a value may be off."""


def mistake_of(world: World, deliveries: Deliveries, view: LinearView, values: Array | None) -> str:
    """Return in one sentence where a run so far is not what the protocol's linear map says; empty if it is.

    Parameters
    ----------
    world : World
        At a record instant or at its end.
    values : (n, p) float64 or None
        What each agent's start has released (`start_values`); NaN before it. Without them, or where steps release
        more, only charges are compared: blocks and messages are then compared by the contract, which sees every draw.
    """
    return next(_mistakes(world, deliveries, view, values), "")


def start_values(linear: LinearMap, world: World, agent: int) -> Array | None:
    """(p,) value that an agent, which has just started, has released: a multiple of one of its blocks; None if none."""
    for name, factor in linear.start.items():
        if factor and name in world.state.agent:
            return np.array(world.state.agent[name][agent], dtype=np.float64) / factor
    return None


def _mistakes(world: World, deliveries: Deliveries, view: LinearView, values: Array | None) -> Iterator[str]:
    name = type(world.protocol).__name__
    yield from _undeclared(world, view, name)
    yield from _charged(world, deliveries, view, name)
    if values is None or (view.numbers != START).any():
        return
    if len(view.owners) != np.count_nonzero(~np.isnan(values).any(axis=1)):
        return
    values = values[view.owners]
    names = world.setting.task.ids
    (kind,) = view.declared.sent
    vectors, known = world.transport.told(kind)
    last = np.full(len(names), AT_START)
    sending = deliveries.made_by[deliveries.made_by >= 0]
    np.maximum.at(last, deliveries.agent[sending], sending)
    weights = np.where((last >= 0)[:, None], view.sent[last] if len(view.sent) else 0.0, view.starts)
    yield from (
        f"{name}: the {kind!r} that agent {names[agent]!r} has sent last, by time {world.now:.6g}, {what}"
        for agent, what in differences(vectors, weights, values)
        if known[agent]
    )
    for block, weights in view.blocks.items():
        yield from (
            f"{name}: block {block!r} of agent {names[agent]!r} at time {world.now:.6g} {what}"
            for agent, what in differences(world.state.agent[block].rows, weights, values)
        )


def _undeclared(world: World, view: LinearView, name: str) -> Iterator[str]:
    kinds, blocks, sent = world.layout.messages.keys(), world.state.agent.keys(), view.declared.sent.keys()
    yield from (f"{name}: its linear_map does not say what {kind!r} carries" for kind in kinds - sent)
    yield from (f"{name}: its linear_map names {kind!r}, which is not sent" for kind in sent - kinds)
    yield from (
        f"{name}: its linear_map names {one!r}, which is no block of agents" for one in view.blocks.keys() - blocks
    )


def _charged(world: World, deliveries: Deliveries, view: LinearView, name: str) -> Iterator[str]:
    """Agents of whom something was heard are charged for what the map states, release by release."""
    stated = [Counter[object]() for _ in range(world.setting.graph.agents)]
    for agent, release in zip(view.owners.tolist(), view.releases, strict=True):
        stated[agent][charge_of(release)] += not release.free
    for agent in np.unique(deliveries.sender).tolist():
        if +stated[agent] != world.ledger.histogram(agent):
            yield (
                f"{name}: agent {world.setting.task.ids[agent]!r} was charged for other releases by time "
                f"{world.now:.6g} than its linear_map states ({stated[agent].total()} there, "
                f"{world.ledger.releases(agent)} charged)"
            )


def differences(found: Array, weights: Array, values: Array) -> Iterator[tuple[int, str]]:
    """Yield rows of some (k, p) vectors that are not their (k, R) weights times the (R, p) values, and how."""
    if found.shape[1:] != values.shape[1:]:
        yield 0, f"has {found.shape[1]} numbers, and what is released has {values.shape[1]}"
        return
    meant, room = weights @ values, ROUNDING * (np.abs(weights) @ np.abs(values)) + np.finfo(np.float64).tiny
    for row, column in zip(*np.nonzero(~(np.abs(found - meant) <= room)), strict=True):
        given, wanted = found[row, column], meant[row, column]
        yield int(row), f"is not what its linear_map gives: coordinate {column} is {given:.9g}, by the map {wanted:.9g}"
