"""Exact view of an observer where all that is sent is linear in released values, with Gaussian noise or without.

What an observer has heard is M (x + noise), a row of M for every message and a column for every release but its own,
which it knows. Multiplied by their noise's deviation sigma, columns have a common scale, and with an orthonormal basis
q_1, ..., q_r of the rows' span, the view is as good as the r values q_k . (x / sigma + z), z standard normal. Another
data set of agent u moves the value of each of its releases l by at most Delta_l, whatever was heard, and the view by mu
at most, where

    mu(u -> observer)^2 = sum_{l, m of u} abs(sum_k q_kl q_km) (Delta_l / sigma_l) (Delta_m / sigma_m),

which is no more than sum_k (sum_l abs(q_kl) Delta_l / sigma_l)^2 and does not depend on the basis. The view reveals no
more than one Gaussian release of that mu, and with one release an agent no less (Dong, Roth, Su 2022, theorem 1; for
gossip Koskela and Kulkarni 2025, arXiv 2505.19969). Noise that two agents share (`SharedNoise`) is a column more, which
no data move, unless the observer is one of the two. No message helps against noise that is in no other one; a message
that is lost may raise a number, where it would have brought noise of others into what is heard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...protocols.linear_map import START, LinearMap
from ...protocols.privacy.composition import gaussian_epsilons
from ...protocols.privacy.mechanisms import GAUSSIAN, Release, mechanism_of
from ..world.world import World
from .deliveries import AT_START, Deliveries

Array = NDArray[np.float64]
MOST_NUMBERS = 2**27
"""Numbers of all messages' weights at most (a GiB); runs with more have their bound by data flow."""
KNOWN = 1e-9
"""Squared distance of a unit vector from the span of what was heard up to which it counts as in it."""
DEPENDENT = 1e-12
"""Relative size below which what a further message adds counts as rounding."""


@dataclass(frozen=True)
class LinearView:
    """Weights of all R releases of a run so far in what was sent, by the linear map that its protocol declares."""

    declared: LinearMap
    releases: list[Release]
    """In order of their agents, and of each agent's steps."""
    owners: NDArray[np.int64]
    numbers: NDArray[np.int64]
    """`owners` and `numbers`: (R,) int64: Agent of each, and its step, from 0, or `START`."""
    sent: Array
    """(W, R) float64: Weights of what each step has sent."""
    starts: Array
    """(n, R) float64: Weights of what each agent's start sends."""
    blocks: dict[str, Array]
    """dict of str to (n, R) float64: Weights of the agents' blocks now."""

    def epsilons(
        self,
        deliveries: Deliveries,
        parties: Sequence[tuple[NDArray[np.bool_], NDArray[np.bool_]]],
        delta: float,
    ) -> list[Array]:
        """Return the (n,) epsilons of agents against each party, exact where each agent has one release.

        A party is the (C,) copies that it has heard, and the (n,) agents whose releases it knows, of whom epsilon is 0;
        delta is in [0, 1). There are none where a release is not Gaussian, and so without a bound.
        """
        if not all(map(_is_gaussian, self.releases)):
            return []
        noisy = np.array([release.noisy for release in self.releases], dtype=bool)
        scales = np.array([release.scale for release in self.releases])
        shifts = np.array([0.0 if release.free else 1.0 / release.multiplier for release in self.releases])
        found: list[Array] = []
        for copies, own in parties:
            unknown = np.flatnonzero(noisy & ~own[self.owners])
            heard = self.heard(deliveries, copies)
            basis = _basis(np.hstack([heard[:, unknown] * scales[unknown], self._shared(heard, own)]))
            basis = basis[:, : len(unknown)]
            squares = _squares(basis, shifts[unknown], self.owners[unknown], len(own))
            found.append(gaussian_epsilons(np.sqrt(squares), delta))
        return found

    def reconstructed(
        self, deliveries: Deliveries, parties: Sequence[tuple[NDArray[np.bool_], NDArray[np.bool_]]]
    ) -> list[NDArray[np.bool_]]:
        """Return whose values each party can compute exactly, where no noise is added to them; parties as there.

        An agent's value is known if its unit vector is in the span of what was heard, the knowledge matrix of El Mrini,
        Cyffers, Bellet (2024, arXiv 2402.10001). Members of the party itself do not count.
        """
        plain = np.array([not release.noisy and not release.free for release in self.releases], dtype=bool)
        found: list[NDArray[np.bool_]] = []
        for copies, own in parties:
            unknown = np.flatnonzero(~own[self.owners])
            basis = _basis(self.heard(deliveries, copies)[:, unknown]) if plain.any() else np.zeros((0, len(unknown)))
            known = plain[unknown] & ((basis**2).sum(axis=0) > 1 - KNOWN)
            found.append(np.isin(np.arange(len(own)), self.owners[unknown[known]]))
        return found

    def _shared(self, heard: Array, own: NDArray[np.bool_]) -> Array:
        """(k, K) deviation that the noise of each pair of others adds to some (k, R) messages."""
        shared = self.declared.shared
        if shared is None:
            return np.zeros((len(heard), 0))
        begun = np.zeros((len(heard), len(own)))
        starts = self.numbers == START
        begun[:, self.owners[starts]] = heard[:, starts]
        hidden = ~own[shared.pairs].any(axis=1)
        adds, subtracts = shared.pairs[hidden].T
        return (begun[:, adds] - begun[:, subtracts]) * shared.scales[hidden]

    def heard(self, deliveries: Deliveries, copies: NDArray[np.bool_]) -> Array:
        """(k, R) weights of the different messages among some (C,) copies."""
        made = np.unique(deliveries.made_by[copies])
        begun = np.unique(deliveries.sender[copies & (deliveries.made_by == AT_START)])
        return np.concatenate([self.starts[begun], self.sent[made[made >= 0]]])


def linear_view(world: World, deliveries: Deliveries) -> LinearView | None:
    """Return the weights of all that was sent; None where that is not known to be linear in what was released.

    That is so if the protocol declares no linear map, or one that does not fit what has happened: agents are byzantine,
    what they send is rounded to float32, or the weights are too many.
    """
    linear = world.protocol.linear_map()
    agents, steps = world.setting.graph.agents, len(deliveries.agent)
    exact = world.step_tables.exact and deliveries.in_steps and world.honest.all()
    if linear is None or not exact or len(linear.sent) != 1:
        return None
    stated = [
        (agent, number, release)
        for agent, made in enumerate(np.bincount(deliveries.agent, minlength=agents).tolist())
        if world.started[agent]
        for number in range(START, made)
        if (release := linear.released(agent, number)) is not None
    ]
    if steps * len(stated) > MOST_NUMBERS:
        return None
    columns = {(agent, number): column for column, (agent, number, _) in enumerate(stated)}
    owners, numbers = (np.array([one[k] for one in stated], dtype=np.int64) for k in (0, 1))
    weights = _replayed(world, deliveries, linear, columns)
    return LinearView(linear, [release for *_, release in stated], owners, numbers, *weights)


def _is_gaussian(release: Release) -> bool:
    noisy = release.noisy and mechanism_of(release.mechanism) is GAUSSIAN and release.multiplier > 0
    return release.free or noisy


def _replayed(
    world: World, deliveries: Deliveries, linear: LinearMap, columns: dict[tuple[int, int], int]
) -> tuple[Array, Array, dict[str, Array]]:
    """Make the run again in weights: what steps sent, what starts send, and the blocks at the end."""
    graph = world.setting.graph
    agents, width = graph.agents, len(columns)
    (sent_block,) = linear.sent.values()
    begun = np.zeros((agents, width))
    for (agent, number), column in columns.items():
        begun[agent, column] = number == START
    blocks = {name: factor * begun for name, factor in linear.start.items()}
    blocks.setdefault(sent_block, np.zeros((agents, width)))
    starts, weights = blocks[sent_block].copy(), np.zeros((len(deliveries.agent), width))
    read, made = deliveries.read_by, deliveries.made_by
    order = np.argsort(read, kind="stable")
    bounds = np.searchsorted(read[order], np.arange(len(deliveries.agent) + 1))
    source = np.full(len(graph.heads), AT_START - 1)  # of what is known over each edge: the step, a start, nothing
    step_of = _remembered(linear.step)
    for w, (agent, number) in enumerate(zip(deliveries.agent.tolist(), deliveries.number.tolist(), strict=True)):
        for copy in order[bounds[w] : bounds[w + 1]].tolist():
            source[deliveries.slot[copy]] = made[copy]
        edges = graph.edges_of(agent)
        known = source[edges]
        step = step_of(agent, known >= AT_START)
        before = {name: rows[agent].copy() for name, rows in blocks.items()}
        for name in dict.fromkeys([*step.own, *step.heard, *step.drawn]):
            total = np.zeros(width)
            for one, factor in step.own.get(name, {}).items():
                total += factor * before.get(one, 0.0)
            if name in step.heard:
                given, sources = step.heard[name], graph.heads[edges]
                later, first = np.flatnonzero(known >= 0), np.flatnonzero(known == AT_START)
                total += given[later] @ weights[known[later]] + given[first] @ starts[sources[first]]
            if name in step.drawn and (agent, number) in columns:
                total[columns[agent, number]] += step.drawn[name]
            blocks.setdefault(name, np.zeros((agents, width)))[agent] = total
        weights[w] = blocks[sent_block][agent]
    return weights, starts, blocks


def _remembered(step: Callable[[int, Any], Any]) -> Callable[[int, Any], Any]:
    """Weights of steps, asked once for each agent and all that it may have heard."""
    known: dict[tuple[int, bytes], Any] = {}

    def found(agent: int, heard: NDArray[np.bool_]) -> Any:
        key = agent, heard.tobytes()
        if key not in known:
            known[key] = step(agent, heard)
        return known[key]

    return found


def _basis(rows: Array) -> Array:
    """(r, R) orthonormal basis of the span of some (k, R) rows."""
    from scipy.linalg import qr

    rows = rows[np.any(rows, axis=1)]
    if not len(rows):
        return rows
    # Rows of one length, so that what a late message adds is not small because the message is. Only the small triangle
    # is pivoted, which finds its rank: that of the rows would take several times as long.
    first: Any = qr((rows / np.linalg.norm(rows, axis=1)[:, None]).T, mode="economic")
    second: Any = qr(first[1], mode="economic", pivoting=True)
    rank = int((np.abs(np.diag(second[1])) > DEPENDENT).sum())
    return (first[0] @ second[0][:, :rank]).T


def _squares(basis: Array, shifts: Array, owners: NDArray[np.int64], agents: int) -> Array:
    """(n,) mu^2 of each agent, whose releases are columns of a (r, R) basis, against whoever has that view."""
    counts = np.bincount(owners, minlength=agents)
    found = np.zeros(agents)
    for count in np.unique(counts[counts > 0]).tolist():
        people = np.flatnonzero(counts == count)
        mine = (basis * shifts).T[np.isin(owners, people)].reshape(len(people), count, len(basis))
        # An exact unit vector is at most of length 1 but for rounding.
        largest = shifts[np.isin(owners, people)].reshape(len(people), count)
        grams = np.abs(mine @ mine.transpose(0, 2, 1))
        found[people] = np.minimum(grams, largest[:, :, None] * largest[:, None, :]).sum(axis=(1, 2))
    return found
