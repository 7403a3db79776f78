"""Bound on what single tokens tell of visits before: later visits hide each by their noise.

Of a walk x_j = T_j(x_{j-1}) - alpha nu_j, an observer sees the tokens that reach it, or that it holds. Between two of
them, at visits i < j <= o, data of agent u move T_j by at most alpha Delta_j at its own visits, and every T_j moves no
two tokens apart. Then the token at o tells no more of u than a Gaussian release of

    mu^2 = sum_k (a_k / sigma_k)^2,   a_k >= 0 of equal sum as the Delta_j of u, and never ahead of them,

by shifted interpolation (Bok, Su, Altschuler 2024, arXiv 2403.00278, section 3; in Renyi divergences Feldman,
Mironov, Talwar, Thakurta 2018, theorem 22). The smallest of these is the isotonic regression of Delta_j / sigma_j^2
with weights sigma_j^2: slopes of the greatest convex minorant of sums of Delta over sums of sigma^2. What was seen
before fixes where a stretch begins, so that mu^2 of stretches add (Dong, Roth, Su 2022, theorem 4). Route and times
follow from draws. Noise of an observer's own visits is known to it, which sees the tokens before and after them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...protocols.privacy.composition import gaussian_epsilons
from ...protocols.privacy.mechanisms import GAUSSIAN, mechanism_of
from ..world.world import World
from .deliveries import AT_START, Deliveries
from .release_record import ReleaseRecord

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class Walk:
    """Visits of one token in their order, and how far it had come at every step of an agent."""

    agents: int
    owners: Ranks
    """(J,) int64: Whose visit each was."""
    shifts: Array
    scales: Array
    """`shifts` and `scales`: (J,) float64: Proved sensitivity and noise scale of each."""
    after: Ranks
    """(W,) int64: Visits behind the token that an agent has, or has passed on, at each step; 0 at first."""
    read: Ranks
    """(W,) int64: The same when the step has read what had arrived, before its own visit."""
    by: Ranks
    """(W,) int64: Whose steps these are."""
    made_by: Ranks
    """(C,) int64: Step that made each copy, of `Deliveries`."""

    @classmethod
    def of(cls, world: World, deliveries: Deliveries, record: ReleaseRecord) -> Walk | None:
        """Return the walk of a run so far; None where releases are not steps of one iterate, or not all placed."""
        if not world.protocol.chain_of_updates() or not deliveries.in_steps or not world.honest.all():
            return None
        if record.at_start.any():
            return None
        steps, agents = record.of_steps(deliveries), len(record.everyone)
        releases = [release for _, release in record.kinds if release is not None]
        if not all(mechanism_of(one.mechanism) is GAUSSIAN and one.sampling == 1.0 and one.noisy for one in releases):
            return None
        drawn = np.flatnonzero(steps >= 0)
        order = np.argsort(deliveries.read_by, kind="stable")
        bounds = np.searchsorted(deliveries.read_by[order], np.arange(len(steps) + 1))
        held, after, read, visits = np.zeros(agents, dtype=np.int64), np.zeros_like(steps), np.zeros_like(steps), 0
        for w, agent in enumerate(deliveries.agent.tolist()):
            makers = deliveries.made_by[order[bounds[w] : bounds[w + 1]]]
            read[w] = max(int(held[agent]), int(after[makers[makers != AT_START]].max(initial=0)))
            if steps[w] >= 0:
                if read[w] != visits:
                    return None  # there is more than one token
                visits += 1
            held[agent] = after[w] = visits if steps[w] >= 0 else read[w]
        made = [releases[kind] for kind in record.kind[steps[drawn]].tolist()]
        shifts, scales = (np.array([getattr(one, name) for one in made]) for name in ("verified_sensitivity", "scale"))
        return cls(agents, deliveries.agent[drawn], shifts, scales, after, read, deliveries.agent, deliveries.made_by)

    def epsilons(self, copies: NDArray[np.bool_], members: NDArray[np.bool_], delta: float) -> Array:
        """Return the (n,) epsilons of agents against a party, at a delta in [0, 1).

        It has heard these of the (C,) copies, and knows the noise of these of the (n,) agents.
        """
        from scipy.optimize import isotonic_regression

        makers = self.made_by[copies]
        inside = members[self.by]
        seen = np.unique(
            np.concatenate([[0], self.after[makers[makers != AT_START]], self.after[inside], self.read[inside]])
        )
        squares = np.zeros(self.agents)
        for first, last in zip(seen[:-1].tolist(), seen[1:].tolist(), strict=True):
            owners, noise = self.owners[first:last], self.scales[first:last] ** 2
            if members[owners].any():
                continue  # one visit of its own
            for agent in np.unique(owners).tolist():
                moves = np.where(owners == agent, self.shifts[first:last], 0.0)
                slopes = isotonic_regression(moves / noise, weights=noise).x
                squares[agent] += (noise * slopes**2).sum()
        return gaussian_epsilons(np.sqrt(squares), delta)
