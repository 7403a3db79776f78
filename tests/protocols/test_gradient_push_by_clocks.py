"""Gradient push by clocks in a loop of its own: the method diverges where weights get small, and totals keep them."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hushnet.agents.objectives.pooled_objective import PooledObjective
from hushnet.simulator.contract.bench import small_task

from .worlds import gradient

AGENTS, MU, TIME = 8, 0.05, 400.0


def by_loop(alpha, loss, latency, *, seed=2, totals=True):
    """The objective's change, the weight held and under way, and the smallest weight at a step, on a ring of reach 2.

    Spiridonoff, Olshevsky, Paschalidis 2020, algorithm 3, without step sizes that count ticks; `totals` says whether
    messages have totals, or shares alone.
    """
    rng, task = np.random.default_rng(seed), small_task(AGENTS, empty=False)
    p, reach = task.dimension, [[(i + k) % AGENTS for k in (-2, -1, 1, 2)] for i in range(AGENTS)]
    mass = np.tile(np.append(np.zeros(p), 1.0), (AGENTS, 1))
    given, known, taken = (np.zeros((AGENTS, AGENTS, p + 1)) for _ in range(3))
    newest, events, least = np.zeros((AGENTS, AGENTS)), [], 1.0
    for i in range(AGENTS):
        heapq.heappush(events, (rng.exponential(), i, -1, None))
    while events[0][0] <= TIME:
        now, i, sender, said = heapq.heappop(events)
        if sender >= 0:
            if not totals:
                known[i, sender] += said[1]
            elif said[0] > newest[i, sender]:
                newest[i, sender], known[i, sender] = said
            continue
        mass[i] += (known[i] - taken[i]).sum(axis=0)
        taken[i], least = known[i], min(least, mass[i, -1])
        mass[i, :-1] -= alpha * gradient(task, i, mass[i, :-1] / mass[i, -1], MU)
        mass[i] /= 1 + len(reach[i])
        for j in reach[i]:
            given[i, j] += mass[i]
            if rng.random() >= loss:
                said = now, (given[i, j].copy() if totals else mass[i].copy())
                heapq.heappush(events, (now + latency * (1 + 1e-9 * rng.random()), j, i, said))
        heapq.heappush(events, (now + rng.exponential(), i, -1, None))
    objective = PooledObjective.mean_of_agents(task, MU)
    models = mass[:, :-1] / mass[:, -1:]
    change = np.mean(objective.value(models)) - np.mean(objective.value(0 * models))
    return change, mass[:, -1].sum() + (given - taken.transpose(1, 0, 2))[..., -1].sum(), least


@pytest.mark.parametrize(
    ("alpha", "loss", "latency", "learns"),
    [
        (0.1, 0.0, 0.2, True),
        (0.1, 0.3, 0.2, False),
        (0.1, 0.0, 5.0, False),
        (0.005, 0.0, 5.0, False),
        (0.001, 0.0, 5.0, True),
    ],
)
def test_late_messages_make_weights_so_small_that_only_small_steps_converge(alpha, loss, latency, learns):
    """Weights are conserved either way; a step moves z by alpha / w, and w falls fivefold where nothing has come."""
    change, weight, least = by_loop(alpha, loss, latency)
    assert weight == pytest.approx(AGENTS, rel=1e-12)
    assert least < 1e-3
    assert change < 0 if learns else change > 10


def test_shares_without_totals_are_lost_for_good():
    with np.errstate(all="ignore"):
        assert by_loop(1e-3, 0.3, 0.2, totals=False)[2] < 1e-100
