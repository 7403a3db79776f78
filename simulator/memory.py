"""What a world will hold in memory, estimated from its scenario before anything is built."""

from __future__ import annotations

from ..agents.errors import OutOfResources
from ..agents.tasks.extent import Files
from .machine import SHARE, available_memory, size, total_memory
from .scenario import Scenario

BYTES_PER_AGENT = 3000
"""An agent's process, view and ledger."""
REMEDY = "use fewer agents, test samples, dimensions or edges"


def expected_bytes(scenario: Scenario, files: Files | None = None) -> int:
    """Memory of data, graph, states and inboxes, to within a factor of about two.

    Parameters
    ----------
    scenario : Scenario
    files : Files, optional
        Where files are; by default none is looked at, and what they decide counts as little as it can be.

    Raises
    ------
    InputError, OutOfResources
        If a file cannot be looked at.
    """
    extent = scenario.task.extent(files)
    edges = scenario.topology.expected_edges(extent, files)
    making = scenario.topology.making(extent, edges)
    inboxes = 2 * edges * (8 * extent.dimension + 32)
    return int(extent.data + making + inboxes + extent.agents * (BYTES_PER_AGENT + 8 * extent.dimension))


def check_machine(scenario: Scenario) -> None:
    """Refuse a scenario that this machine could not hold if nothing else ran on it; raises like `check_memory`."""
    needed, total = expected_bytes(scenario), total_memory()
    if needed > total:
        raise OutOfResources(
            f"{scenario.scenario}: needs about {size(needed)} of memory, and this machine has {size(total)}; {REMEDY}"
        )
    _check_limit(scenario, needed)


def check_memory(scenario: Scenario, files: Files | None = None, *, processes: int = 1) -> None:
    """Refuse a scenario that cannot fit.

    Parameters
    ----------
    scenario : Scenario
    files : Files, optional
        Where files are, which are looked at.
    processes : int
        How many of its runs are to be in memory at the same time.

    Raises
    ------
    OutOfResources
        With the numbers.
    """
    needed, available = expected_bytes(scenario, files), available_memory()
    if processes * needed > SHARE * available:
        where, fewer = (f" in {processes} processes", " --jobs,") if processes > 1 else ("", "")
        raise OutOfResources(
            f"{scenario.scenario}: needs about {size(processes * needed)} of memory{where}, and "
            f"{size(available)} are available; {REMEDY.replace('fewer', f'fewer{fewer}')}"
        )
    _check_limit(scenario, needed)


def _check_limit(scenario: Scenario, needed: int) -> None:
    most = scenario.limits.limits().memory
    if most is not None and needed > most:
        raise OutOfResources(
            f"{scenario.scenario}: needs about {size(needed)} of memory, and limits.memory admits {size(most)}; "
            f"raise it, or {REMEDY}"
        )
