"""Wake-up times: laws, rates, phases, recorded orders, what is refused, and the order in which agents wake."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.network.clocks import (
    ClockParameters,
    Periodic,
    Poisson,
    Recorded,
    Times,
    wake_up_ranks,
)
from hushnet.simulator.network.randomness import QUANTUM, Draws, stable_ids
from hushnet.simulator.network.rates import LognormalRates, StragglerRates, UniformRates
from hushnet.simulator.rules.heap import pop, push, replace_top
from hushnet.simulator.tables.allocation import zeros
from hushnet.simulator.tables.run import DUE
from pydantic import TypeAdapter
from scipy import stats


def times(parameters, agents, ticks, *, seed=1, ids=None):
    """(agents, ticks) wake-up times."""
    ids = list(range(agents)) if ids is None else ids
    clock = parameters.build(ids, stable_ids(ids), Draws(seed), None)
    every = np.empty((agents, ticks))
    for agent in range(agents):
        now = 0.0
        for tick in range(ticks):
            now = every[agent, tick] = clock.next_time(agent, tick, now)
    return every


def intervals(parameters, agents, ticks, *, seed=1):
    return np.diff(times(parameters, agents, ticks, seed=seed), axis=1, prepend=0.0)


def test_poisson_intervals_are_exponential_and_uncorrelated():
    """Seed 21; a KS test and a correlation of successive intervals, false-alarm probability 1e-4 each."""
    lengths = intervals(Poisson(kind="poisson", rate=2.5), 40, 500, seed=21)
    assert stats.kstest(lengths.ravel(), "expon", args=(0, 1 / 2.5)).pvalue > 1e-4
    assert stats.pearsonr(lengths[:, :-1].ravel(), lengths[:, 1:].ravel()).pvalue > 1e-4


def test_every_wake_up_is_later_by_a_multiple_of_the_quantum():
    for parameters in (Poisson(kind="poisson", rate=1e9), Periodic(kind="periodic", period=0.3, jitter=0.9)):
        lengths = intervals(parameters, 3, 200) / QUANTUM
        assert (lengths >= 1).all()
        assert (lengths == np.rint(lengths)).all()


def test_listed_rates_scale_the_intervals_agent_by_agent():
    unit = intervals(Poisson(kind="poisson"), 3, 100)
    scaled = intervals(Poisson(kind="poisson", rate=[0.25, 1.0, 4.0]), 3, 100)
    assert np.allclose(scaled, unit * np.array([[4.0], [1.0], [0.25]]), rtol=0, atol=3 * QUANTUM)


@pytest.mark.parametrize(
    ("rates", "law"),
    [
        (UniformRates(kind="uniform", low=0.5, high=2.0), stats.uniform(0.5, 1.5)),
        (
            LognormalRates(kind="lognormal", mean=2.0, sigma=0.7),
            stats.lognorm(0.7, scale=2.0 * math.exp(-(0.7**2) / 2)),
        ),
    ],
)
def test_rates_follow_their_distribution(rates, law):
    """Seed 24; KS test over 4,000 agents, false-alarm probability 1e-4 for each distribution."""
    clock = Poisson(kind="poisson", rate=rates).build(
        list(range(4000)), np.arange(4000, dtype=np.uint64), Draws(24), None
    )
    assert stats.kstest(1 / clock.means, law.cdf).pvalue > 1e-4


def test_stragglers_are_slow_in_the_share_asked_for():
    """Seed 25; two-sided binomial test over 4,000 agents, false-alarm probability 1e-4."""
    rates = StragglerRates(kind="stragglers", share=0.2, slow=0.05, rate=2.0)
    clock = Poisson(kind="poisson", rate=rates).build(
        list(range(4000)), np.arange(4000, dtype=np.uint64), Draws(25), None
    )
    means = clock.means.tolist()
    assert set(means) == {1 / 0.05, 1 / 2.0}
    assert stats.binomtest(means.count(1 / 0.05), 4000, 0.2).pvalue > 1e-4


def test_a_periodic_clock_with_a_common_phase_ticks_together():
    every = times(Periodic(kind="periodic", period=1.5, phase="common"), 4, 30)
    assert np.array_equal(every, np.tile(1.5 * np.arange(1, 31), (4, 1)))


def test_random_phases_spread_first_wake_ups_over_one_period():
    """Seed 26; KS test over 2,000 agents, false-alarm probability 1e-4; later intervals are exact."""
    lengths = intervals(Periodic(kind="periodic", period=4.0), 2000, 3, seed=26)
    assert stats.kstest(lengths[:, 0], "uniform", args=(0, 4)).pvalue > 1e-4
    assert (lengths[:, 1:] == 4.0).all()


def test_jitter_keeps_every_interval_within_its_bounds_and_fills_them():
    """Seed 27; KS test over 8,000 intervals, false-alarm probability 1e-4."""
    lengths = intervals(Periodic(kind="periodic", period=2.0, jitter=0.25, phase="common"), 20, 400, seed=27)
    assert (np.abs(lengths - 2.0) <= 0.5 + QUANTUM).all()
    assert stats.kstest(lengths.ravel(), "uniform", args=(1.5, 1.0)).pvalue > 1e-4


def test_a_recorded_order_replays_exactly():
    ids, order = ["a", "b", "c"], ["b", "a", "b", "c", "b", "a"]
    clock = Recorded(kind="recorded", order=order, spacing=0.5).build(ids, stable_ids(ids), Draws(0), None)
    woken = []
    for agent in range(3):
        tick, now = 0, 0.0
        while not math.isinf(now := clock.next_time(agent, tick, now)):
            woken.append((now, ids[agent]))
            tick += 1
    assert sorted(woken) == [(0.5 * (k + 1), name) for k, name in enumerate(order)]


def test_a_recorded_order_is_read_from_a_file_relative_to_the_scenario(tmp_path):
    (tmp_path / "order.txt").write_text("\ufeff2\n0\n\n 2 \n", encoding="utf-8")
    clock = Recorded(kind="recorded", path="order.txt").build([0, 1, 2], stable_ids([0, 1, 2]), Draws(0), tmp_path)
    assert clock.times == [[2.0], [], [1.0, 3.0]]


def test_given_wake_ups_begin_anew_after_a_period(tmp_path):
    (tmp_path / "w.csv").write_text("agent,time\n0,1\n0,2.5\n1,4\n")
    clock = Times(kind="times", path="w.csv", repeat=4.0).build([0, 1, 2], stable_ids([0, 1, 2]), Draws(0), tmp_path)
    woken = [[clock.next_time(agent, tick, 0.0) for tick in range(4)] for agent in range(3)]
    assert woken == [[1.0, 2.5, 5.0, 6.5], [4.0, 8.0, 12.0, 16.0], [math.inf] * 4]
    with pytest.raises(InputError, match=r"w.csv:4: time 4.0 must be greater than 0 and at most 3.0 \(repeat\)"):
        Times(kind="times", path="w.csv", repeat=3.0).build([0, 1], stable_ids([0, 1]), Draws(0), tmp_path)


def test_a_file_of_a_recorded_order_that_names_nobody_is_an_input_error(tmp_path):
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="names no agent"):
        Recorded(kind="recorded", path="empty.txt").build([0, 1], stable_ids([0, 1]), Draws(0), tmp_path)


def test_ranks_of_wake_ups_follow_time_then_agent_and_stop_with_the_clock():
    ids = [0, 1, 2]
    recorded = Recorded(kind="recorded", order=[2, 0, 2, 2]).build(ids, stable_ids(ids), Draws(0), None)
    assert wake_up_ranks(recorded, 3, 2).tolist() == [[1, -1], [-1, -1], [0, 2]]
    assert wake_up_ranks(recorded, 3, 1).tolist() == [[1], [-1], [0]]
    together = Periodic(kind="periodic", period=[1.0, 2.0, 1.0], phase="common")
    clock = together.build(ids, stable_ids(ids), Draws(0), None)
    # Wake-ups after an agent's second one are no updates: it has fallen silent.
    assert wake_up_ranks(clock, 3, 2).tolist() == [[0, 2], [3, 5], [1, 4]]


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        ({"kind": "poisson", "rate": 2.0}, 60),
        ({"kind": "poisson", "rate": [1.0, 3.0, 2.0]}, 60),
        ({"kind": "poisson", "rate": {"kind": "uniform", "low": 0.5, "high": 2.0}}, 15),
        ({"kind": "periodic", "period": 0.5, "jitter": 0.3}, 60),
        ({"kind": "recorded", "order": [0, 1, 0], "spacing": 1.0}, 3),
        ({"kind": "recorded", "order": [0, 1] * 20, "spacing": 1.0}, 10),
        ({"kind": "recorded", "path": "clock.txt"}, 0),
    ],
    ids=str,
)
def test_wake_ups_that_are_expected_are_rates_times_time(clock, expected):
    assert TypeAdapter(ClockParameters).validate_python(clock).wakes(10.0, 3) == pytest.approx(expected)


Entry = tuple[float, int, int]


def heap_of(entries: list[Entry]) -> tuple[Any, Any]:
    heap, sizes = zeros(len(entries) + 1, DUE), np.zeros(1, dtype=np.int64)
    for entry in entries:
        push(heap, sizes, 0, *entry)
    return heap, sizes


def taken(heap: Any, sizes: Any) -> list[Entry]:
    found = []
    while sizes[0]:
        found.append(tuple(heap[0].tolist()))
        pop(heap, sizes, 0)
    return found


def entries_of(rng: np.random.Generator, count: int) -> list[Entry]:
    """Many at one time, as of periodic clocks."""
    times = rng.integers(0, max(1, count // 3), size=count).astype(float).tolist()
    return list(zip(times, rng.permutation(count).tolist(), rng.permutation(count).tolist(), strict=True))


@pytest.mark.parametrize("count", [1, 4, 5, 6, 21, 22, 86])
def test_who_wakes_goes_back_among_the_others(count):
    rng = np.random.default_rng(7)
    waiting = entries_of(rng, count)
    heap, sizes = heap_of(waiting)
    for _ in range(20 * count):
        now = tuple(heap[0].tolist())
        assert now == min(waiting)
        waiting.remove(now)
        if rng.random() < 0.02 and len(waiting) > 1:
            pop(heap, sizes, 0)
            continue
        waiting.append((now[0] + float(rng.integers(0, 4)), *now[1:]))
        replace_top(heap, sizes[0], *waiting[-1])
    assert taken(heap, sizes) == sorted(waiting)
