"""What a world will hold in memory, estimated from its scenario before anything is built."""

from __future__ import annotations

import psutil

from ..agents.errors import OutOfResources
from ..agents.tasks.linear_classification import LinearClassification
from ..agents.tasks.mean_estimation import MeanEstimation
from ..agents.tasks.stand_ins import EpsilonLike, GisetteLike
from ..agents.tasks.synthetic_ratings import SyntheticRatings
from .scenario import Scenario
from .topology import (
    AngularSimilarity,
    BarabasiAlbert,
    Complete,
    ErdosRenyi,
    GaussianKernel,
    NearestNeighbours,
    RandomRegular,
    Ring,
    WattsStrogatz,
)

BYTES_PER_EDGE = 300
"""An undirected edge in networkx, with its attribute, both ways."""
BYTES_PER_AGENT = 3000
"""An agent's process, view and ledger."""
RESERVE = 0.9
"""Share of the available memory that a run may plan with."""


def expected_bytes(scenario: Scenario) -> int:
    """Memory of data, graph, states and inboxes, to within a factor of about two; 0 where the data decide it."""
    task = scenario.task
    if isinstance(task, LinearClassification | EpsilonLike):
        agents, dimension, data = task.agents, task.dimension, task.expected_bytes()
    elif isinstance(task, SyntheticRatings):
        agents, dimension, data = task.users, task.features, 8 * task.users * task.items
    elif isinstance(task, MeanEstimation):
        agents, dimension, data = task.agents, 1, 2 * 8 * task.agents * (task.samples // 2 + 2)
    elif isinstance(task, GisetteLike):
        agents, dimension = task.outline().agents or 1, task.dimension
        data = 3 * 8 * (task.rows + task.test_rows) * task.dimension
    else:
        return 0
    edges, dense = _edges(scenario, agents)
    inboxes = 2 * edges * (8 * dimension + 32)
    return int(data + dense + edges * BYTES_PER_EDGE + inboxes + agents * (BYTES_PER_AGENT + 8 * dimension))


def check_machine(scenario: Scenario) -> None:
    """Refuse a scenario that this machine could not hold if nothing else ran on it; raises like `check_memory`."""
    needed, total = expected_bytes(scenario), psutil.virtual_memory().total
    if needed > total:
        raise OutOfResources(
            f"{scenario.scenario}: needs about {needed / 2**30:,.1f} GiB of memory, and this machine has "
            f"{total / 2**30:.1f} GiB; use fewer agents, test samples, dimensions or edges"
        )


def check_memory(scenario: Scenario, *, processes: int = 1) -> None:
    """Refuse a scenario that cannot fit.

    Parameters
    ----------
    scenario : Scenario
    processes : int
        How many of its runs are to be in memory at the same time.

    Raises
    ------
    OutOfResources
        With the numbers.
    """
    needed, available = processes * expected_bytes(scenario), psutil.virtual_memory().available
    if needed > RESERVE * available:
        where, fewer = (f" in {processes} processes", "--jobs, ") if processes > 1 else ("", "")
        raise OutOfResources(
            f"{scenario.scenario}: needs about {needed / 2**30:.1f} GiB of memory{where}, and "
            f"{available / 2**30:.1f} GiB are available; use fewer {fewer}agents, test samples, dimensions or edges"
        )


def _edges(scenario: Scenario, agents: int) -> tuple[float, float]:
    """Expected undirected edges, and bytes of dense matrices that making the graph takes."""
    topology = scenario.topology
    match topology:
        case Complete():
            return agents**2 / 2, 0.0
        case AngularSimilarity():
            return 0.3 * agents**2 / 2, 3 * 8.0 * agents**2
        case GaussianKernel():
            return agents**2 / 2, 3 * 8.0 * agents**2
        case NearestNeighbours():
            return 0.75 * topology.k * agents, 16.0 * min(agents, 1024) * agents
        case Ring():
            return topology.reach * agents, 0.0
        case ErdosRenyi():
            return topology.probability * agents**2 / 2, 0.0
        case WattsStrogatz():
            return topology.neighbours * agents / 2, 0.0
        case BarabasiAlbert():
            return topology.links * agents, 0.0
        case RandomRegular():
            return topology.degree * agents / 2, 0.0
        case _:
            return 2.0 * agents, 0.0
