"""The objective of model propagation, with its exact minimiser.

It is quadratic, so its minimiser solves one sparse linear system; see `hushnet.protocols.algorithms.model_propagation`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ..graph import Graph
from ..optimisation.compiled_sums import read_only, squared_gaps
from ..quantity import OWN, Quantity
from .objectives import Models, Objective


@final
@dataclass(frozen=True)
class Propagation(Objective):
    """Q = 1/2 (sum_{i<j} W_ij |theta_i - theta_j|^2 + sum_i D_ii pull_i |theta_i - solitary_i|^2).

    Equation (3) of Vanhaesebrouck et al. (2017) and (15) of Bellet et al. (2018), with pull_i = mu c_i. The minimiser
    is not unique for an agent that Q says nothing about: one without neighbours, or whose whole component of the graph
    has no pull. Such agents keep their solitary models.
    """

    graph: Graph
    """Over n agents."""
    solitary: Models
    """(n, p) float64."""
    mu_c: NDArray[np.float64]
    """(n,) float64: mu c_i >= 0."""

    @cached_property
    @override
    def fingerprint(self) -> str:
        graph = self.graph
        digest = hashlib.blake2s(b"Propagation", digest_size=16)
        for array in (graph.offsets, graph.heads, graph.weights, self.solitary, self.mu_c):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @property
    @override
    def quantity(self) -> Quantity:
        words = "objective (3) of Vanhaesebrouck et al. 2017 around solitary models"
        return Quantity(words, "sum over agents", "training rows", OWN, self.fingerprint)

    @cached_property
    def held(self) -> NDArray[np.float64]:
        """(n,) D_ii pull_i."""
        return self.graph.strengths * self.mu_c

    @override
    def value(self, models: Models) -> float:
        graph = self.graph
        moved = models - self.solitary
        gap = squared_gaps(*map(read_only, (graph.offsets, graph.heads, graph.weights, models)))
        return 0.5 * float(gap + self.held @ np.einsum("np,np->n", moved, moved))

    @override
    def value_and_gradient(self, models: Models) -> tuple[float, Models]:
        return self.value(models), self.graph.laplacian @ models + self.held[:, None] * (models - self.solitary)

    @override
    def minimise(self) -> tuple[Models, float]:
        """Solve equation (4) as (D - W + D diag(mu c)) Theta = D diag(mu c) Solitary."""
        from scipy.sparse import csc_array, diags_array
        from scipy.sparse.linalg import splu

        models = self.solitary.astype(np.float64, copy=True)
        kept = np.flatnonzero(self._determined())
        if len(kept):
            matrix = csc_array((self.graph.laplacian + diags_array(self.held))[kept][:, kept])
            right = self.held[kept, None] * self.solitary[kept]
            factors = splu(matrix)
            solution = factors.solve(right)
            # One step of iterative refinement: a small mu makes the system ill-conditioned.
            models[kept] = solution + factors.solve(right - matrix @ solution)
        return models, self.value(models)

    def _determined(self) -> NDArray[np.bool_]:
        """(n,) whether somebody in an agent's component of the graph is held to its solitary model."""
        from scipy.sparse.csgraph import connected_components

        count, part = connected_components(self.graph.laplacian, directed=False)
        return np.bincount(part, weights=self.held, minlength=count)[part] > 0
