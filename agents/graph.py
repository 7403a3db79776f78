"""The graph that protocols see: directed edges in compressed rows, each owned by its tail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError

BLOCK = 256
"""Rows of a matrix that are looked at in one go."""


def one_way(tail: int, head: int, there: float, back: float) -> InputError:
    """Return the error about two agents whose edge has different weights in its two directions."""
    return InputError(
        f"makes weight {there:g} from agent {tail} to agent {head} and {back:g} back; messages go both ways along "
        "every edge here, with one weight",
        field=("topology",),
    )


@dataclass(frozen=True)
class Graph:
    """A weighted graph, stored as its directed edges grouped by tail.

    Of a directed graph both directions of every edge are there, and messages go over those that are open: agents hear
    over the others what comes the other way. Its neighbours are those that an agent sends to or hears.
    """

    offsets: NDArray[np.int64]
    """(n + 1,) int64: Agent i owns the directed edges ``offsets[i]`` to ``offsets[i + 1] - 1``."""
    heads: NDArray[np.int64]
    """(E,) int64: Head of each directed edge; ascending within an agent, so sums over neighbours run in index order."""
    weights: NDArray[np.float64]
    """(E,) float64: W_ij >= 0 of each directed edge; symmetric, but of directed graphs."""
    open: NDArray[np.bool_] | None = None
    """(E,) bool, optional: Of a directed graph, over which edges messages go; of others over all."""

    @classmethod
    def from_directed_edges(
        cls, agents: int, tails: NDArray[np.int64], heads: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> Graph:
        """Build from directed edges, each listed once; raises `InputError` if one is listed twice."""
        listed = np.asarray(tails, dtype=np.int64) * agents + np.asarray(heads, dtype=np.int64)
        once, counts = np.unique(listed, return_counts=True)
        for edge in once[counts > 1][:1].tolist():
            tail, head = divmod(edge, agents)
            raise InputError(
                f"makes two edges from agent {tail} to agent {head}; make one of them", field=("topology",)
            )
        pairs = np.unique(np.concatenate([listed, heads * agents + tails]).astype(np.int64))
        open_, own = np.isin(pairs, listed), np.zeros(len(pairs))
        own[np.searchsorted(pairs, listed)] = weights
        both_tails, both_heads = np.divmod(pairs, agents)
        offsets = np.searchsorted(both_tails, np.arange(agents + 1)).astype(np.int64)
        return cls(offsets, both_heads, own, open_)

    @classmethod
    def from_edges(
        cls, agents: int, tails: NDArray[np.int64], heads: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> Graph:
        """Build from undirected edges, each listed once."""
        both_tails = np.concatenate([tails, heads]).astype(np.int64)
        both_heads = np.concatenate([heads, tails]).astype(np.int64)
        both_weights = np.concatenate([weights, weights]).astype(np.float64)
        order = np.lexsort((both_heads, both_tails))
        counts = np.bincount(both_tails, minlength=agents)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(offsets, both_heads[order], both_weights[order])

    @classmethod
    def from_matrix(cls, matrix: NDArray[np.float64]) -> Graph:
        """Build from a symmetric (n, n) weight matrix; zeros and the diagonal are no edges.

        Raises `InputError` if the matrix is not symmetric, up to rounding.
        """
        for start in range(0, len(matrix), BLOCK):
            rows, columns = matrix[start : start + BLOCK], matrix[:, start : start + BLOCK].T
            wrong = np.argwhere(~np.isclose(rows, columns, rtol=1e-9, atol=0, equal_nan=True))
            if len(wrong):
                tail, head = (int(place) for place in wrong[0] + [start, 0])
                raise one_way(tail, head, matrix[tail, head], matrix[head, tail])
        tails, heads = np.nonzero(np.triu(matrix, 1))
        return cls.from_edges(len(matrix), tails, heads, matrix[tails, heads])

    @classmethod
    def joined(cls, parts: Sequence[Graph]) -> Graph:
        """The disjoint union of some graphs, whose agents and edges follow each other."""
        agents, edges = (
            np.cumsum([0, *counts]) for counts in zip(*((p.agents, len(p.heads)) for p in parts), strict=True)
        )
        offsets = [part.offsets[:-1] + edges[k] for k, part in enumerate(parts)]
        heads = [part.heads + agents[k] for k, part in enumerate(parts)]
        weights = [part.weights for part in parts]
        open_ = np.concatenate([part.opened for part in parts]) if any(part.directed for part in parts) else None
        return cls(np.concatenate([*offsets, edges[-1:]]), np.concatenate(heads), np.concatenate(weights), open_)

    @property
    def agents(self) -> int:
        """Number of agents n."""
        return len(self.offsets) - 1

    @cached_property
    def tails(self) -> NDArray[np.int64]:
        """(E,) tail of each directed edge."""
        return np.repeat(np.arange(self.agents), np.diff(self.offsets))

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """(n,) number of neighbours of each agent."""
        return np.diff(self.offsets)

    @property
    def directed(self) -> bool:
        """True if messages may go over an edge in one direction alone."""
        return self.open is not None

    @cached_property
    def opened(self) -> NDArray[np.bool_]:
        """(E,) whether messages go over each directed edge."""
        return np.ones(len(self.heads), dtype=bool) if self.open is None else self.open

    @cached_property
    def out_degrees(self) -> NDArray[np.int64]:
        """(n,) number of agents that each agent sends to."""
        return np.bincount(self.tails[self.opened], minlength=self.agents).astype(np.int64)

    @cached_property
    def in_degrees(self) -> NDArray[np.int64]:
        """(n,) number of agents that each agent hears."""
        return np.bincount(self.heads[self.opened], minlength=self.agents).astype(np.int64)

    @cached_property
    def strengths(self) -> NDArray[np.float64]:
        """(n,) D_ii, the sum of the weights at each agent."""
        return np.bincount(self.tails, weights=self.weights, minlength=self.agents).astype(np.float64)

    @cached_property
    def laplacian(self) -> Any:
        """(n, n) scipy sparse D - W."""
        from scipy.sparse import csr_array, diags_array

        weights = csr_array((self.weights, self.heads, self.offsets), shape=(self.agents, self.agents))
        return csr_array(diags_array(self.strengths) - weights)

    @cached_property
    def reverse(self) -> NDArray[np.int64]:
        """(E,) index of the directed edge head -> tail of each directed edge tail -> head."""
        order = np.lexsort((self.tails, self.heads))
        reverse = np.empty(len(self.heads), dtype=np.int64)
        reverse[order] = np.arange(len(self.heads))
        return reverse

    @cached_property
    def diameter(self) -> float:
        """Largest number of hops on a shortest way from one agent to another; infinite where there is none."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import shortest_path

        ends = self.tails[self.opened], self.heads[self.opened]
        matrix = csr_array((np.ones(len(ends[0])), ends), shape=(self.agents, self.agents))
        return float(shortest_path(matrix, unweighted=True).max(initial=0.0))

    @cached_property
    def spectral_gap(self) -> float:
        """1 - |lambda_2| of the mixing matrix: by how much averaging contracts in a round, from 0 (not at all) to 1.

        Weights are Metropolis's, 1 / (1 + max(degree i, degree j)); of a directed graph, whose matrix is
        column-stochastic, 1 / (1 + degree) of who sends.
        """
        counts = self.out_degrees
        shares = counts[self.tails] if self.directed else np.maximum(counts[self.tails], counts[self.heads])
        matrix = np.zeros((self.agents, self.agents))
        matrix[self.heads, self.tails] = np.where(self.opened, 1.0 / (1.0 + shares), 0.0)
        matrix += np.diag(1.0 - matrix.sum(axis=0))
        values = np.linalg.eigvals(matrix) if self.directed else np.linalg.eigvalsh(matrix)
        second = np.sort(np.abs(values))[-2] if self.agents > 1 else 0.0
        return float(1.0 - min(second, 1.0))

    def edges_of(self, agent: int) -> slice:
        """The directed edges that an agent owns, as a slice."""
        return slice(int(self.offsets[agent]), int(self.offsets[agent + 1]))

    def neighbours(self, agent: int) -> NDArray[np.int64]:
        """(degree,) neighbours of an agent in ascending order."""
        return self.heads[self.edges_of(agent)]
