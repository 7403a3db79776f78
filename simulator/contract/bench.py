"""A bench to try protocols on: a small task and graph, and short runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...agents.errors import InputError
from ...protocols.base import Protocol, ProtocolParameters
from ..engine.selection import Engine, EventEngine, run_exactly
from ..network.setting import Setting
from ..world.step_form import Rewind
from ..world.world import World
from .small_settings import (
    AGENTS,
    SEED,
    admitted_world,
    small_graph,
    small_setting,
    small_task,
    split_setting,
)

__all__ = [
    "AGENTS",
    "SEED",
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
