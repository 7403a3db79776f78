"""Comparison of a declared linear map with a run: with what there is by its names, and what was charged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

import numpy as np

from ...protocols.privacy.ledger import charge_of
from ..world.world import World
from .deliveries import Deliveries
from .linear_view import LinearView


def mistake_of(world: World, deliveries: Deliveries, view: LinearView) -> str:
    """Return in one sentence where a run so far, at a record instant or its end, is not as a linear map says; or empty.

    Names and charges are compared. What was sent is compared by the contract, which sees every draw.
    """
    name = type(world.protocol).__name__
    return next(chain(_undeclared(world, view, name), _charged(world, deliveries, view, name)), "")


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
