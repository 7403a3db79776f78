"""Memory of a world, estimated from its scenario before anything is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from ...agents.authors import returned
from ...agents.blocks import Width
from ...agents.errors import INTERRUPTED, OutOfResources
from ...agents.tasks.extent import Extent, Files
from ...protocols import catalog
from ...protocols.base import Layout, MessageKind, Problem, Protocol, ProtocolParameters
from ..language.loading import LoadedScenario
from ..language.scenario import Scenario
from ..world.watchdog import SHARE, available_memory, size, total_memory

BYTES_PER_AGENT = 3000
"""An agent's process, record and ledger."""
BYTES_PER_OWNER = 8
"""Bytes that a block takes per owner besides its numbers: where an owner's begin."""
BYTES_PER_SLOT = 40
"""Bytes that an inbox takes for each directed edge and kind of message, besides the vectors."""
VERSIONS = 4
"""Vectors that are kept at first for each agent; who hears one and the same shares it."""
PROCESS_BYTES = 250 * 2**20
"""A process before it has a world: Python, libraries and compiled code."""
REMEDY = "use fewer agents, test samples, dimensions or edges"

Resolve = Callable[[str], type[Protocol]]
"""The class of a ``kind``."""


class Sizes(NamedTuple):
    """Numbers that stand for a task where a layout is asked for before there are data."""

    agents: int
    dimension: int
    first: None = None


def expected_bytes(scenario: Scenario, files: Files | None = None, resolve: Resolve = catalog.resolve) -> int:
    """Memory of data, graph, states and inboxes, to within a factor of about two, of the protocol that needs most.

    Without files, none is looked at, and what they decide counts as little as it can be; by default protocols are those
    that everybody has. Raises `InputError` or `OutOfResources` if a file cannot be looked at, or there is no such
    protocol.
    """
    extent = returned(scenario.task.extent(files), Extent, scenario.task.extent)
    counted = scenario.topology.expected_edges
    edges = returned(counted(extent, files), (int, float, np.number), counted)
    making = scenario.topology.making(extent, edges)
    sizes = Sizes(extent.agents, scenario.task.width(extent))
    layouts = [expected_layout(resolve(given.kind), given, sizes) for given in scenario.protocols.values()]
    each = 4 if getattr(scenario.task.model, "precision", "float64") == "float32" else 8
    worlds = [world_bytes(layout, sizes.agents, edges, each) for layout in layouts]
    return int(extent.data + making + max(worlds, default=0.0))


def expected_layout(protocol: type[Protocol], parameters: ProtocolParameters, sizes: Sizes) -> Layout:
    """Layout of a protocol, asked of it before there are data and a graph.

    Where its layout depends on more than the numbers of agents and dimensions, it counts as a model for each agent,
    which it sends.
    """
    default = Layout({"model": sizes.dimension}, messages={"model": MessageKind(sizes.dimension)})
    return early_layout(protocol, parameters, sizes) or default


def early_layout(protocol: type[Protocol], parameters: ProtocolParameters, sizes: Sizes) -> Layout | None:
    """Layout of a protocol before there are data and a graph; None where it depends on these."""
    try:
        bare = object.__new__(protocol)
        bare.parameters, bare.problem = parameters, Problem(cast(Any, sizes), cast(Any, None))
        layout = bare.layout()
        world_bytes(layout, 1, 1)
        return layout
    except INTERRUPTED:
        raise
    except BaseException:  # whatever code raises that misses what it was not given
        return None


def world_bytes(layout: Layout, agents: int, edges: float, each: int = 8) -> float:
    """Memory of agents and undirected edges with their blocks, and of inboxes, `each` number of so many bytes."""
    own = sum(each * _mean(width) + BYTES_PER_OWNER for width in layout.agent.values())
    owned = sum(each * _mean(width) + BYTES_PER_OWNER for width in layout.edge.values())
    kinds = layout.messages.values()
    versions = VERSIONS * agents + 2 * edges * sum(kind.addressed for kind in kinds)
    vectors = versions * each * max((_mean(kind.width) for kind in kinds), default=0.0)
    return agents * (BYTES_PER_AGENT + own) + 2 * edges * (owned + len(kinds) * BYTES_PER_SLOT) + vectors


def _mean(width: Width) -> float:
    return float(np.mean(width)) if np.size(width) else 0.0


def check_machine(loaded: LoadedScenario) -> None:
    """Refuse a scenario of which this machine could not hold a run if nothing else ran on it.

    Raises `OutOfResources` with the numbers.
    """
    total = total_memory()
    for point in (*loaded.trials, *loaded.points):
        scenario = point.scenario
        needed = expected_bytes(scenario, resolve=loaded.code.protocol)
        if needed > total:
            raise OutOfResources(
                f"{scenario.scenario}: needs about {size(needed)} of memory, and this machine has {size(total)}; "
                f"{REMEDY}"
            )
        _check_limit(scenario, needed)


def check_memory(
    scenario: Scenario, files: Files | None = None, resolve: Resolve = catalog.resolve, *, processes: int = 1
) -> None:
    """Refuse a scenario of which so many runs at a time cannot fit, by an `OutOfResources` with the numbers.

    Files are looked at; the rest as of `expected_bytes`.
    """
    needed, available = expected_bytes(scenario, files, resolve), available_memory()
    if processes * needed > SHARE * available:
        where, fewer = (f" in {processes} processes", " --jobs,") if processes > 1 else ("", "")
        raise OutOfResources(
            f"{scenario.scenario}: needs about {size(processes * needed)} of memory{where}, and "
            f"{size(available)} are available; {REMEDY.replace('fewer', f'fewer{fewer}')}"
        )
    _check_limit(scenario, needed)


def processes_that_fit(scenario: Scenario, files: Files | None, resolve: Resolve) -> int:
    """Number of runs that fit into memory at one time, at least one; each takes ``limits.memory``, if it is set."""
    needed = scenario.limits.limits().memory or expected_bytes(scenario, files, resolve)
    return max(int(SHARE * available_memory() / (needed + PROCESS_BYTES)), 1)


def _check_limit(scenario: Scenario, needed: int) -> None:
    most = scenario.limits.limits().memory
    if most is not None and needed > most:
        raise OutOfResources(
            f"{scenario.scenario}: needs about {size(needed)} of memory, and limits.memory admits {size(most)}; "
            f"raise it, or {REMEDY}"
        )
