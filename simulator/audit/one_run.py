"""Few runs as an audit: in each of them one record of every agent is turned or not, and all are guessed.

Steinke, Nasr, Jagielski (2023), "Privacy auditing with one (1) training run". A coin decides about every agent's
record; the observer guesses each coin by the sign of its likelihood ratio. If no record has more than (epsilon, delta),
the number of right guesses is nearly dominated by heads of coins of e^epsilon / (1 + e^epsilon), whatever the guesses
have to do with one another (theorem 5.2 there). What agents release depends on others only by what these have sent, so
that one run on the opposite records, led along the same transcript, gives everybody's ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...agents.tables import Table
from ...agents.tasks.base import Task
from ...protocols.privacy.accounting import verified
from .game import trial_seed
from .noise import Array, log_likelihood
from .pairs import Pair
from .worlds import Subject


@dataclass(frozen=True)
class Guesses:
    """Ratios of all guesses.

    Parameters
    ----------
    turned, usual : (n,) float64
        log p(seen | the record is turned) - log p(seen | it is not), of records that are turned, and that are not.
    verified, claimed : float
        The largest epsilons of any agent in these runs.
    """

    turned: Array
    usual: Array
    verified: float
    claimed: float


def guess(subject: Subject, pairs: Sequence[Pair], runs: int) -> Guesses:
    """Make runs in which every pair's record is turned by a coin of its own, and guess the coins.

    Parameters
    ----------
    subject : Subject
        Whose releases are not sampled.
    pairs : sequence of Pair
        At most one for every agent.
    runs : int
        >= 1.
    """
    turned: list[float] = []
    usual: list[float] = []
    proved = claimed = 0.0
    for run in range(runs):
        seed = trial_seed(f"{subject.key} one run", run, changed=False)
        coins = np.random.default_rng(seed).random(len(pairs)) < 0.5
        world, seen = subject.record(mixed(subject.task, pairs, coins), seed=seed)
        other = subject.led(mixed(subject.task, pairs, ~coins), seen, seed=seed)
        claims = world.ledger.epsilon("claimed", subject.delta)
        for pair, coin in zip(pairs, coins.tolist(), strict=True):
            own, others = (sum(map(log_likelihood, watch.draws[pair.agent])) for watch in (seen, other))
            (turned if coin else usual).append(own - others if coin else others - own)
            proved = max(proved, verified(world.ledger.histogram(pair.agent), subject.delta))
            claimed = max(claimed, float(claims[pair.agent]))
    return Guesses(np.array(turned), np.array(usual), proved, claimed)


def mixed(task: Task, pairs: Sequence[Pair], turned: NDArray[np.bool_]) -> Task:
    """The data of D' for agents whose coins say so, and of D for the others that have a pair."""
    features, labels = task.train.features.copy(), task.train.labels.copy()
    for pair, coin in zip(pairs, turned.tolist(), strict=True):
        table = (pair.neighbour if coin else pair.data).train
        if task.columns is not None:
            held = task.columns[pair.agent]
            features[:, held] = table.features[:, held]
            continue
        first, last = (int(task.train.offsets[pair.agent + end]) for end in (0, 1))
        features[first:last], labels[first:last] = table.features[first:last], table.labels[first:last]
    return replace(task, train=Table(features, labels, task.train.offsets))
