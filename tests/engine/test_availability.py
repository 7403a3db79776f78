"""When agents are up: shares, durations, days, trace files, joining and leaving."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hushnet.agents.availability import Diurnal, OnOff, Trace, Window
from hushnet.agents.errors import InputError
from hushnet.simulator.network.randomness import QUANTUM, Draws, Purpose, quantise
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

AGENTS = 3000


def timelines(parameters, agents=AGENTS, *, seed=1, base=None, ids=None):
    ids = list(range(agents)) if ids is None else ids
    draws = Draws(seed)
    return parameters.timelines(
        ids,
        list(range(len(ids))),
        draw=lambda number, index: draws.pair(Purpose.AVAILABILITY, number, 0, index),
        round_time=quantise,
        base=base,
    )


def until(timeline, horizon):
    """Changes of state up to a time, as a list."""
    return list(itertools.takewhile(lambda change: change[0] <= horizon, timeline))


def up_at(timeline, now):
    return until(timeline, now)[-1][1]


ON_OFF = [
    OnOff(kind="on_off", online=0.7, mean_down=5.0),
    OnOff(kind="on_off", online=0.4, mean_down=1.0, distribution="lognormal", sigma=1.0),
]


@pytest.mark.parametrize("parameters", ON_OFF)
@pytest.mark.parametrize("now", [0.0, 0.5, 60.0])
def test_the_share_of_agents_online_is_stationary(parameters, now):
    """Seed 41, 3,000 agents; a binomial test for each law and time, false-alarm probability 1e-4 each."""
    online = sum(up_at(timeline, now) for timeline in timelines(parameters, seed=41))
    assert stats.binomtest(online, AGENTS, parameters.online).pvalue > 1e-4


@pytest.mark.parametrize("parameters", ON_OFF)
def test_full_periods_follow_their_law(parameters):
    """Seed 42, periods 2 to 6 of 1,500 agents; two KS tests for each law, false-alarm probability 1e-4 each."""
    lengths = {True: [], False: []}
    for timeline in timelines(parameters, 1500, seed=42):
        changes = list(itertools.islice(timeline, 8))
        for (start, up), (end, _) in itertools.pairwise(changes[1:]):
            lengths[up].append(end - start)
    for up, mean in ((False, parameters.mean_down), (True, parameters.mean_down * mean_odds(parameters))):
        law = (
            stats.expon(scale=mean)
            if parameters.distribution == "exponential"
            else stats.lognorm(parameters.sigma, scale=mean * math.exp(-(parameters.sigma**2) / 2))
        )
        assert law.mean() == pytest.approx(mean)
        assert stats.kstest(lengths[up], law.cdf).pvalue > 1e-4


def mean_odds(parameters):
    return parameters.online / (1 - parameters.online)


@pytest.mark.parametrize("parameters", ON_OFF)
def test_the_first_period_is_a_residual_life(parameters):
    """Seed 43, 3,000 agents; the residual life's mean, E[X^2] / (2 E[X]), within 5 standard errors of the sample
    (false-alarm probability below 1e-5; the lognormal's skew is why it is not 4)."""
    sigma = parameters.sigma if parameters.distribution == "lognormal" else math.sqrt(math.log(2))
    first = {True: [], False: []}
    for timeline in timelines(parameters, seed=43):
        (_, up), (end, _) = itertools.islice(timeline, 2)
        first[up].append(end)
    for up, mean in ((False, parameters.mean_down), (True, parameters.mean_down * mean_odds(parameters))):
        sample = np.array(first[up])
        expected = mean * math.exp(sigma**2) / 2  # E[X^2] = mean^2 exp(sigma^2); exponential: exp(sigma^2) = 2
        assert abs(sample.mean() - expected) < 5 * sample.std() / math.sqrt(len(sample))


@pytest.mark.parametrize("parameters", [*ON_OFF, Diurnal(kind="diurnal", period=3.0, online=0.5)])
def test_states_alternate_at_times_that_never_decrease_and_are_multiples_of_the_quantum(parameters):
    for timeline in timelines(parameters, 20):
        changes = list(itertools.islice(timeline, 200))
        assert changes[0][0] == 0.0
        for (earlier, before), (later, after) in itertools.pairwise(changes):
            assert earlier <= later
            assert before != after
            assert (later / QUANTUM).is_integer()


@settings(deadline=None)
@given(
    period=st.floats(1e-3, 1e3),
    online=st.floats(0.01, 0.99),
    spread=st.sampled_from([0.0, 1e-13, 0.3, 1.0]),
    seed=st.integers(0, 1000),
)
def test_every_day_has_its_share_of_up_time_from_the_start(period, online, spread, seed):
    parameters = Diurnal(kind="diurnal", period=period, online=online, spread=spread)
    for timeline in timelines(parameters, 5, seed=seed):
        changes = until(timeline, 4 * period)
        edges = [*(time for time, _ in changes), 4 * period]
        up = sum(end - start for (start, state), end in zip(changes, edges[1:], strict=True) if state)
        assert up == pytest.approx(4 * online * period, abs=10 * QUANTUM)


def test_one_time_zone_has_one_phase_and_the_globe_has_all():
    """Seed 44, 3,000 agents; KS test of the phases, false-alarm probability 1e-4."""
    together = Diurnal(kind="diurnal", period=6.0, online=0.5, spread=0.0)
    assert len({tuple(until(timeline, 30.0)) for timeline in timelines(together, 20)}) == 1
    assert all(up_at(timeline, 0.0) for timeline in timelines(together, 20))
    risings = [
        next(time for time, up in timeline if up and time > 0)
        for timeline in timelines(Diurnal(kind="diurnal", period=6.0, online=0.5), seed=44)
    ]
    assert stats.kstest(risings, "uniform", args=(0, 6)).pvalue > 1e-4


def trace(tmp_path, rows, *, others=None, ids=("a", "b")):
    (tmp_path / "up.csv").write_text("agent,up_from,up_to\n" + rows)
    return timelines(Trace(kind="trace", path="up.csv", others=others), ids=list(ids), base=tmp_path)


def test_a_trace_file_gives_each_agent_its_intervals_in_any_order(tmp_path):
    one, other = trace(tmp_path, "b,0,2\na,6,8\na,1.5,4\n")
    assert list(one) == [(0.0, False), (1.5, True), (4.0, False), (6.0, True), (8.0, False)]
    assert list(other) == [(0.0, True), (2.0, False)]


def test_an_unlisted_agent_is_refused_unless_others_says_what_it_does(tmp_path):
    with pytest.raises(InputError, match=r"up.csv: does not list agent 'b'") as error:
        trace(tmp_path, "a,1,2\n")
    assert error.value.field == ("availability", "path")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,0,5\nb,0,1\na,4,6\n", r"up.csv:4: the intervals of agent 'a' overlap at 4"),
        ("a,4,6\na,0,5\nb,0,1\n", r"up.csv:2: the intervals of agent 'a' overlap at 4"),
        ("a,0,5\na,0,5\nb,0,1\n", r"up.csv:3: the intervals of agent 'a' overlap at 0"),
        ("a,5,5\n", r"up.csv:2: up_from 5.0 must be below up_to 5.0"),
        ("a,-1,5\n", r"up.csv:2: up_from -1.0 must be"),
        ("b,0,1\na,noon,5\n", r"up.csv:3: up_from 'noon' must be a finite number"),
        ("a,0,nan\n", r"up.csv:2: up_to 'nan'"),
        ("z,0,1\n", r"up.csv:2: 'z' is not the id"),
        ("a,0\n", r"up.csv:2: has 2 values"),
    ],
)
def test_a_bad_row_of_a_trace_file_is_named(tmp_path, rows, message):
    with pytest.raises(InputError, match=message) as error:
        trace(tmp_path, rows)
    assert error.value.field == ("availability", "path")


def test_a_window_concerns_its_share_of_agents_at_uniform_times():
    """Seed 45, 3,000 agents; a binomial test and a KS test, false-alarm probability 1e-4 each."""
    window, draws = Window(share=0.3, between=[2.0, 5.0]), Draws(45)
    drawn = [window.time(draws.pair(Purpose.JOIN, agent)) for agent in range(AGENTS)]
    concerned = [time for time in drawn if time is not None]
    assert stats.binomtest(len(concerned), AGENTS, 0.3).pvalue > 1e-4
    assert stats.kstest(concerned, "uniform", args=(2, 3)).pvalue > 1e-4


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (OnOff, {"kind": "on_off", "online": 0.0, "mean_down": 1.0}),
        (OnOff, {"kind": "on_off", "online": 0.5, "mean_down": 0.0}),
        (Diurnal, {"kind": "diurnal", "period": 0.0, "online": 0.5}),
        (Diurnal, {"kind": "diurnal", "period": 1.0, "online": 1.0}),
        (Window, {"share": 0.5, "between": [2.0, 1.0]}),
        (Window, {"share": 0.5, "between": [1.0]}),
        (Window, {"share": 1.5, "between": [1.0, 2.0]}),
    ],
)
def test_impossible_availabilities_are_refused(kind, fields):
    with pytest.raises(ValidationError):
        kind.model_validate(fields)
