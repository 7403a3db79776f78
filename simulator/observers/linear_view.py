"""Exact view of an observer where all that is sent is linear in values that were released once with Gaussian noise.

What an observer has heard is M (x + noise), a row of M for every message and a column for every release but its own,
which it knows. Multiplied by their noise's deviation, columns have a common scale, and with an orthonormal basis q_1,
..., q_r of the rows' span, the view is as good as the r values q_k . (x / sigma + z), z standard normal. Another data
set of agent u moves its value by at most Delta_u, and the view by

    mu(u -> observer) = (Delta_u / sigma_u) (sum_k q_ku^2)^(1/2),

so that it reveals no more and no less than one Gaussian release of that mu (Dong, Roth, Su 2022, theorem 1; for gossip
Koskela and Kulkarni 2025, arXiv 2505.19969). No message helps against noise that is in no other one; a message that is
lost may raise a number, where it would have brought noise of others into what is heard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...protocols.linear_map import LinearMap
from ...protocols.privacy.composition import gaussian_epsilon
from ...protocols.privacy.mechanisms import GAUSSIAN, Release, mechanism_of
from .deliveries import AT_START, Deliveries

if TYPE_CHECKING:
    from ..world.world import World

Array = NDArray[np.float64]
MOST_NUMBERS = 2**27
"""Numbers of all messages' weights at most (a GiB); runs with more have their bound by data flow."""
DEPENDENT = 1e-12
"""Relative size below which what a further message adds counts as rounding."""


def linear_epsilons(
    world: World,
    deliveries: Deliveries,
    parties: Sequence[tuple[NDArray[np.bool_], NDArray[np.bool_]]],
    delta: float,
) -> list[Array] | None:
    """Return the exact epsilon of every agent against some parties; None where what is sent is not known to be linear.

    Parameters
    ----------
    world : World
    deliveries : Deliveries
    parties : sequence of ((C,) bool, (n,) bool)
        For each party, the copies that it has heard, and the agents whose releases it knows.
    delta : float
        Where epsilon is read, in [0, 1).

    Returns
    -------
    list of (n,) float64
        0 for agents of the party itself.
    """
    views = message_weights(world, deliveries)
    if views is None:
        return None
    releases, weights, of_starts = views
    noisy = np.array([release.noisy for release in releases])
    scales = np.array([release.scale for release in releases])
    shifts = np.array([0.0 if release.free else 1.0 / release.multiplier for release in releases])
    found: list[Array] = []
    for copies, own in parties:
        made = np.unique(deliveries.made_by[copies])
        begun = np.unique(deliveries.sender[copies & (deliveries.made_by == AT_START)])
        seen = np.concatenate([of_starts[begun], weights[made[made >= 0]]])
        unknown = noisy & ~own
        shares = np.zeros(len(own))
        shares[unknown] = _shares(seen[:, unknown] * scales[unknown])
        found.append(np.array([gaussian_epsilon(mu, delta) for mu in (shifts * np.sqrt(shares)).tolist()]))
    return found


def message_weights(world: World, deliveries: Deliveries) -> tuple[list[Release], Array, Array] | None:
    """Return all releases, and the weights of their values in what was sent.

    Returns
    -------
    releases : list of n Release
    weights : (W, n) float64
        Of what each step has sent.
    starts : (n, n) float64
        Of what each agent's start sends.
    None
        If the protocol declares no linear map, or one that does not fit what has happened: agents have joined or are
        byzantine, noise is not Gaussian, or the weights are too many.
    """
    linear: LinearMap | None = world.protocol.linear_map()
    agents, steps = world.setting.graph.agents, len(deliveries.agent)
    if linear is None or not deliveries.in_steps or not (world.started & world.honest).all():
        return None
    if steps * agents > MOST_NUMBERS:
        return None
    if (deliveries.made_by[: np.count_nonzero(deliveries.order < 0)] != AT_START).any() or len(linear.sent) != 1:
        return None
    releases = [linear.released(agent) for agent in range(agents)]
    if not all(r.free or (r.noisy and mechanism_of(r.mechanism) is GAUSSIAN and r.multiplier > 0) for r in releases):
        return None
    return releases, *_replayed(world, deliveries, linear)


def _replayed(world: World, deliveries: Deliveries, linear: LinearMap) -> tuple[Array, Array]:
    """Make the run again in weights: (W, n) of what steps sent, (n, n) of what starts send."""
    graph = world.setting.graph
    agents = graph.agents
    (sent_block,) = linear.sent.values()
    blocks = {name: factor * np.eye(agents) for name, factor in linear.start.items()}
    blocks.setdefault(sent_block, np.zeros((agents, agents)))
    starts, weights = blocks[sent_block].copy(), np.zeros((len(deliveries.agent), agents))
    read = deliveries.read_by
    order = np.argsort(read, kind="stable")
    bounds = np.searchsorted(read[order], np.arange(len(deliveries.agent) + 1))
    source = np.full(len(graph.heads), AT_START - 1)  # of what is known over each edge: the step, a start, nothing
    step_of = _remembered(linear.step)
    made = deliveries.made_by
    for w, agent in enumerate(deliveries.agent.tolist()):
        for copy in order[bounds[w] : bounds[w + 1]].tolist():
            source[deliveries.slot[copy]] = made[copy]
        edges = graph.edges_of(agent)
        known = source[edges]
        step = step_of(agent, known >= AT_START)
        before = {name: rows[agent].copy() for name, rows in blocks.items()}
        for name, terms in step.own.items():
            rows = blocks.setdefault(name, np.zeros((agents, agents)))
            total = sum((factor * before[one] for one, factor in terms.items()), np.zeros(agents))
            if name in step.heard:
                given = step.heard[name]
                later, begun = np.flatnonzero(known >= 0), np.flatnonzero(known == AT_START)
                total = total + given[later] @ weights[known[later]]
                total = total + given[begun] @ starts[graph.heads[edges][begun]]
            rows[agent] = total
        weights[w] = blocks[sent_block][agent]
    return weights, starts


def _remembered(step: Callable[[int, Any], Any]) -> Callable[[int, Any], Any]:
    """Weights of steps, asked once for each agent and all that it may have heard."""
    known: dict[tuple[int, bytes], Any] = {}

    def found(agent: int, heard: NDArray[np.bool_]) -> Any:
        key = agent, heard.tobytes()
        if key not in known:
            known[key] = step(agent, heard)
        return known[key]

    return found


def _shares(rows: Array) -> Array:
    """(n,) squared length of each unit vector's part in the span of some (k, n) rows, in [0, 1]."""
    from scipy.linalg import qr

    rows = rows[np.any(rows, axis=1)]
    if not len(rows):
        return np.zeros(rows.shape[1])
    # Rows of one length, so that what a late message adds is not small because the message is.
    found: Any = qr((rows / np.linalg.norm(rows, axis=1)[:, None]).T, mode="economic", pivoting=True)
    basis, triangle, _ = found
    rank = int((np.abs(np.diag(triangle)) > DEPENDENT).sum())
    return np.minimum((basis[:, :rank] ** 2).sum(axis=1), 1.0)
