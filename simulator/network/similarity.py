"""Similarity graphs: weights that are computed from the agents' profiles."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from ...agents.errors import InputError
from ...agents.graph import Graph
from ...agents.parameters import Positive, Size, Spread
from ...agents.tasks.extent import Extent, Files
from ...agents.tasks.task import Task
from .graphs import BYTES_PER_PACKED_EDGE, TOPOLOGIES, Topology, pairs_of

BLOCK = 1024
"""Agents whose distances from all others are held at once."""
BYTES_PER_CHOICE = 150
"""A pair of agents in two sets."""


@TOPOLOGIES.register
class AngularSimilarity(Topology):
    """W_ij = exp((cos phi_ij - 1) / gamma) between the task's profiles (Bellet et al. 2018, section 5.1)."""

    from_profiles: ClassVar[bool] = True

    kind: Literal["angular_similarity"]
    gamma: Positive = 0.1
    """Width of the kernel."""
    cutoff: float = Field(default=0.01, ge=0, lt=1)
    """Weights below this are dropped."""

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        if not extent.around:
            return self.connected(extent)
        least = 1.0 + self.gamma * math.log(self.cutoff) if self.cutoff > 0 else -1.0  # cosine of an edge
        return math.acos(max(least, -1.0)) / math.pi * pairs_of(extent.agents)

    @override
    def making(self, extent: Extent, edges: float) -> float:
        """Memory that making takes: matrices of all pairs, and profiles of unit length."""
        return 3 * 8 * extent.agents**2 + 2 * 8 * extent.agents * extent.profile + edges * BYTES_PER_PACKED_EDGE

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> Graph:
        unit = _unit_rows(_profiles(task))
        weights = np.exp((np.clip(unit @ unit.T, -1.0, 1.0) - 1.0) / self.gamma)
        weights[weights < self.cutoff] = 0.0
        np.fill_diagonal(weights, 0.0)
        return Graph.from_matrix(np.maximum(weights, weights.T))


@TOPOLOGIES.register
class GaussianKernel(Topology):
    """W_ij = exp(-|v_i - v_j|^2 / (2 sigma^2)) between the profiles (Vanhaesebrouck et al. 2017, section 5.1)."""

    from_profiles: ClassVar[bool] = True

    kind: Literal["gaussian_kernel"]
    sigma: Spread = 0.1
    """Width of the kernel."""
    cutoff: float = Field(default=0.0, ge=0, lt=1)
    """Weights below this are dropped; at 0 all agents are neighbours."""

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        return pairs_of(extent.agents) if self.cutoff == 0 else self.connected(extent)

    @override
    def making(self, extent: Extent, edges: float) -> float:
        """Memory that making takes: matrices of all pairs, and profiles of unit length."""
        return 3 * 8 * extent.agents**2 + 2 * 8 * extent.agents * extent.profile + edges * BYTES_PER_PACKED_EDGE

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> Graph:
        from scipy.spatial.distance import pdist, squareform

        profiles = np.asarray(_dense(_profiles(task)), dtype=np.float64)
        weights = squareform(np.exp(-pdist(profiles, "sqeuclidean") / (2 * self.sigma**2)))
        weights[weights < self.cutoff] = 0.0
        return Graph.from_matrix(weights)


@TOPOLOGIES.register
class NearestNeighbours(Topology):
    """Each agent with its k nearest others by the task's profiles."""

    from_profiles: ClassVar[bool] = True

    kind: Literal["knn"]
    k: Size = 10
    """Neighbours that each agent chooses."""
    metric: Literal["cosine", "euclidean"] = "cosine"
    """What is compared between profiles."""
    join: Literal["union", "mutual"] = "union"
    """An edge where either (union) or both (mutual) choose the other."""

    @override
    def check_size(self, agents: int) -> None:
        if self.k >= agents:
            raise InputError(f"must be below the number of agents, {agents}", field=("topology", "k"))

    @override
    def expected_edges(self, extent: Extent, files: Files | None) -> float:
        share = 0.75 if self.join == "union" else 0.25  # from half to all of the choices; from none to half
        return min(share * self.k * extent.agents, pairs_of(extent.agents))

    @override
    def making(self, extent: Extent, edges: float) -> float:
        """Memory that making takes: distances from a block of agents, profiles, a set of all choices."""
        distances = 2 * 8 * min(extent.agents, BLOCK) * extent.agents
        profiles = 2 * 8 * extent.agents * extent.profile
        return distances + profiles + self.k * extent.agents * BYTES_PER_CHOICE + edges * BYTES_PER_PACKED_EDGE

    @override
    def edges(self, task: Task, *, rng: np.random.Generator, base: Path | None) -> Graph:
        """Choose the nearest agents of each; ties go to the lower index."""
        chosen = np.zeros((task.agents, task.agents), dtype=bool) if task.agents <= 4096 else None
        pairs: set[tuple[int, int]] = set()
        for agent, nearest in _nearest(_profiles(task), self.k, self.metric):
            if chosen is not None:
                chosen[agent, nearest] = True
            else:
                pairs.update((agent, int(other)) for other in nearest)
        if chosen is not None:
            pairs = set(zip(*(axis.tolist() for axis in np.nonzero(chosen)), strict=True))
        keep = pairs if self.join == "union" else {(u, v) for u, v in pairs if (v, u) in pairs}
        undirected = sorted({(min(u, v), max(u, v)) for u, v in keep})
        tails, heads = np.array(undirected, dtype=np.int64).reshape(-1, 2).T
        return Graph.from_edges(task.agents, tails, heads, np.ones(len(tails)))


def _profiles(task: Task) -> Any:
    if task.profiles is None:
        raise InputError(
            f"needs profiles of the agents, which the task {task.name!r} does not have", field=("topology",)
        )
    return task.profiles


def _unit_rows(profiles: Any) -> NDArray[np.float64]:
    dense = profiles.toarray() if hasattr(profiles, "toarray") else np.asarray(profiles, dtype=np.float64)
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    return dense / np.where(norms > 0, norms, 1.0)


def _nearest(profiles: Any, k: int, metric: str):
    """Yield (agent, its k nearest others), in blocks of rows to bound memory."""
    rows = _unit_rows(profiles) if metric == "cosine" else np.asarray(_dense(profiles), dtype=np.float64)
    squares = np.sum(rows**2, axis=1)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        products = block @ rows.T
        far = -products if metric == "cosine" else squares[None, :] - 2 * products
        far[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        for offset, distances in enumerate(far):
            yield start + offset, np.argsort(distances, kind="stable")[:k]


def _dense(profiles: Any) -> Any:
    return profiles.toarray() if hasattr(profiles, "toarray") else profiles
