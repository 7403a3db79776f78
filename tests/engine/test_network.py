"""Delays and losses: laws, units, files, and what the fate of a message may depend on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.network.latency import Constant, Exponential, Gamma, Lognormal, Matrix, Uniform
from hushnet.simulator.network.network import Bernoulli, GilbertElliott, Network, NetworkParameters
from hushnet.simulator.network.randomness import QUANTUM, Draws, stable_ids
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

AGENTS = 2000
EVERYBODY = np.arange(1, AGENTS)


def network(*, seed=1, ids=None, base=None, **fields):
    ids = list(range(AGENTS)) if ids is None else ids
    return Network(NetworkParameters(**fields), ids, stable_ids(ids), Draws(seed), base)


def delays(latency, *, ticks=20, seed=1, **fields):
    """Delays of one broadcast at each of some ticks, flattened."""
    net = network(latency=latency, seed=seed, **fields)
    return np.concatenate([net.delays_and_losses(0, EVERYBODY, tick, 0, 0.0, 8)[0] for tick in range(ticks)])


LAWS = {
    "uniform": (Uniform(kind="uniform", low=0.2, high=1.0), stats.uniform(0.2, 0.8)),
    "exponential": (Exponential(kind="exponential", mean=0.7), stats.expon(scale=0.7)),
    "lognormal": (
        Lognormal(kind="lognormal", mean=0.3, sigma=0.8),
        stats.lognorm(0.8, scale=0.3 * math.exp(-(0.8**2) / 2)),
    ),
    "gamma": (Gamma(kind="gamma", mean=0.5, shape=3.0), stats.gamma(3.0, scale=0.5 / 3.0)),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_average_of_a_latency_is_the_mean_of_its_law(name):
    latency, law = LAWS[name]
    assert latency.average == pytest.approx(law.mean(), rel=1e-12)


def test_the_mean_delay_counts_a_messages_bytes_and_the_links_that_a_file_lists(tmp_path):
    (tmp_path / "delays.csv").write_text("sender,receiver,delay\n0,1,2\n1,0,4\n")
    listed = Matrix(kind="matrix", path="delays.csv", default=9.0)
    assert network(ids=[0, 1], base=tmp_path, latency=listed).mean_delay(800) == 3.0
    (tmp_path / "delays.csv").write_text("sender,receiver,delay\n")
    assert network(ids=[0, 1], base=tmp_path, latency=listed).mean_delay(800) == 9.0
    assert network(latency=Exponential(kind="exponential", mean=0.5), bandwidth=1600.0).mean_delay(800) == 1.0


BURSTY = {"kind": "gilbert_elliott", "mean_good": 1.0, "mean_bad": 1.0}


@pytest.mark.parametrize(
    ("loss", "lossless"),
    [
        (0.0, True),
        (1e-9, False),
        ({**BURSTY, "loss_good": 0.0, "loss_bad": 0.0}, True),
        ({**BURSTY, "loss_good": 0.0, "loss_bad": 0.1}, False),
        ({**BURSTY, "loss_good": 0.1, "loss_bad": 0.0}, False),
        ({**BURSTY, "loss_good": 0.1, "loss_bad": 0.1}, False),
    ],
)
def test_a_network_is_lossless_if_no_state_of_a_link_loses_anything(loss, lossless):
    assert NetworkParameters.model_validate({"loss": loss}).lossless == lossless


@pytest.mark.parametrize("name", LAWS)
def test_delays_follow_their_law(name):
    """Seed 31, 39,980 delays; KS test, false-alarm probability 1e-4 for each law."""
    latency, law = LAWS[name]
    assert stats.kstest(delays(latency, seed=31), law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("loss", [0.2, {**BURSTY, "loss_good": 0.1, "loss_bad": 0.6}])
@pytest.mark.parametrize("bandwidth", [None, 30.0])
def test_a_copy_alone_has_the_fate_that_it_has_among_others(name, loss, bandwidth):
    fields = {"latency": LAWS[name][0].model_dump(), "loss": loss, "bandwidth": bandwidth}
    parameters = NetworkParameters.model_validate(fields)
    alone, together = (Network(parameters, range(300), stable_ids(range(300)), Draws(6)) for _ in range(2))
    for tick, now in ((0, 0.5), (3, 4.0)):
        delays, losses = together.delays_and_losses(2, np.arange(3, 300), tick, 1, now, 48)
        delays_and_losses = [
            alone.delays_and_losses(2, np.array([receiver]), tick, 1, now, 48) for receiver in range(3, 300)
        ]
        assert np.array_equal(np.hstack(delays_and_losses), [delays, losses])


@pytest.mark.parametrize("name", LAWS)
def test_delays_are_multiples_of_the_quantum_and_never_negative(name):
    units = delays(LAWS[name][0], ticks=2, bandwidth=7.0) / QUANTUM
    assert (units == np.rint(units)).all()
    assert (units >= 0).all()


def test_bandwidth_adds_the_time_that_the_bytes_take():
    latency = Exponential(kind="exponential", mean=0.5)
    free, shared = network(latency=latency), network(latency=latency, bandwidth=64.0)
    for size in (0, 8, 800):
        usual = free.delays_and_losses(0, EVERYBODY, 3, 0, 0.0, size)[0]
        slower = shared.delays_and_losses(0, EVERYBODY, 3, 0, 0.0, size)[0]
        assert np.allclose(slower - usual, size / 64.0, rtol=0, atol=QUANTUM)


@given(low=st.floats(0, 0.99), high=st.floats(0, 0.99), seed=st.integers(0, 2**64 - 1), tick=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_raising_the_loss_rate_only_adds_losses(low, high, seed, tick):
    low, high = min(low, high), max(low, high)
    few = network(loss=low, seed=seed).delays_and_losses(0, EVERYBODY[:200], tick, 0, 0.0, 8)[1]
    many = network(loss=high, seed=seed).delays_and_losses(0, EVERYBODY[:200], tick, 0, 0.0, 8)[1]
    assert not (few & ~many).any()


def test_losses_have_the_probability_asked_for_and_do_not_follow_the_delays():
    """Seed 34, 39,980 messages; binomial test, and rank test of delays by loss, false-alarm probability 1e-4 each."""
    net = network(latency=Exponential(kind="exponential", mean=1.0), loss=0.3, seed=34)
    delays_and_losses = [net.delays_and_losses(0, EVERYBODY, tick, 0, 0.0, 8) for tick in range(20)]
    late, lost = (np.concatenate(column) for column in zip(*delays_and_losses, strict=True))
    assert stats.binomtest(int(lost.sum()), len(lost), 0.3).pvalue > 1e-4
    assert stats.mannwhitneyu(late[lost], late[~lost]).pvalue > 1e-4


def bursts(*, seed, step, ticks, links, mean_good=6.0, mean_bad=2.0):
    loss = GilbertElliott(kind="gilbert_elliott", mean_good=mean_good, mean_bad=mean_bad)
    net = network(loss=loss, seed=seed)
    return np.array([net.delays_and_losses(0, EVERYBODY[:links], tick, 0, tick * step, 8)[1] for tick in range(ticks)])


def test_a_bursty_link_is_stationary_from_the_start():
    """Seed 35, 1,999 links at time 0 and at time 40; binomial tests, false-alarm probability 1e-4 each."""
    loss = GilbertElliott(kind="gilbert_elliott", mean_good=6.0, mean_bad=2.0)
    net = network(loss=loss, seed=35)
    for now in (0.0, 40.0):
        lost = int(net.delays_and_losses(0, EVERYBODY, 0, 0, now, 8)[1].sum())
        assert stats.binomtest(lost, len(EVERYBODY), 2.0 / 8.0).pvalue > 1e-4


def test_losses_of_a_bursty_link_come_together_as_the_on_off_law_says():
    """Seed 36, 1,000 independent links; P(lost a time s after a loss) = p + (1 - p) exp(-s (1/good + 1/bad)), a
    z test over links (their deviations from it have mean 0), false-alarm probability 6e-5."""
    step, share = 1.0, 0.25
    lost = bursts(seed=36, step=step, ticks=60, links=1000)
    expected = share + (1 - share) * math.exp(-step * (1 / 6.0 + 1 / 2.0))
    deviations = np.sum(lost[:-1] * (lost[1:] - expected), axis=0)
    assert abs(deviations.sum()) < 4 * math.sqrt(np.sum(deviations**2))
    assert expected > 1.5 * share


def test_a_bursty_link_does_not_depend_on_when_it_was_asked():
    loss = GilbertElliott(kind="gilbert_elliott", mean_good=1.0, mean_bad=1.0)
    often, once = network(loss=loss), network(loss=loss)
    for now in np.arange(0.0, 30.0, 0.37):
        often.delays_and_losses(0, EVERYBODY[:50], 1, 0, float(now), 8)
    expected = once.delays_and_losses(0, EVERYBODY[:50], 5, 0, 30.0, 8)[1]
    assert np.array_equal(often.delays_and_losses(0, EVERYBODY[:50], 5, 0, 30.0, 8)[1], expected)
    assert 0 < expected.sum() < 50


def test_a_fate_belongs_to_the_users_ids_and_not_to_positions():
    latency = Exponential(kind="exponential", mean=1.0)
    one = network(ids=["a", "b", "c"], latency=latency).delays_and_losses(0, np.array([2]), 7, 0, 0.0, 8)[0]
    other = network(ids=["c", "x", "a"], latency=latency).delays_and_losses(2, np.array([0]), 7, 0, 0.0, 8)[0]
    assert np.array_equal(one, other)


def matrix(tmp_path, rows, *, default=None, ids=("a", "b", "c")):
    (tmp_path / "delays.csv").write_text("sender,receiver,delay\n" + rows)
    latency = Matrix(kind="matrix", path="delays.csv", default=default)
    return network(ids=list(ids), latency=latency, base=tmp_path)


def test_a_delay_file_gives_each_direction_its_own_delay(tmp_path):
    net = matrix(tmp_path, "a,b,0.5\nb,a,2\na, c ,0.25\n")
    assert net.delays_and_losses(0, np.array([1, 2]), 0, 0, 0.0, 8)[0].tolist() == [0.5, 0.25]
    assert net.delays_and_losses(1, np.array([0]), 9, 0, 0.0, 8)[0].tolist() == [2.0]


def test_a_missing_link_without_a_default_is_refused_before_anything_runs(tmp_path):
    net = matrix(tmp_path, "a,b,0.5\nb,a,0.5\n")
    net.check_links(np.array([0, 1]), np.array([1, 0]))
    with pytest.raises(InputError, match="no delay from 'b' to 'c'") as error:
        net.check_links(np.array([0, 1, 1]), np.array([1, 0, 2]))
    assert error.value.field == ("network", "latency", "path")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,b,0.5\na,z,0.5\n", r"delays.csv:3: 'z' is not the id"),
        ("a,b,-1\n", r"delays.csv:2: delay -1"),
        ("a,b,soon\n", r"delays.csv:2: delay 'soon' must be a finite number"),
        ("a,b,inf\n", r"delays.csv:2: delay 'inf'"),
        ("\na,b\n", r"delays.csv:3: has 2 values"),
        ("a,b,1\nb,a,1\na,b,2\n", r"delays.csv:4: the link from 'a' to 'b' is listed twice"),
    ],
)
def test_a_bad_row_of_a_delay_file_is_named(tmp_path, rows, message):
    with pytest.raises(InputError, match=message) as error:
        matrix(tmp_path, rows)
    assert error.value.field == ("network", "latency", "path")


def test_a_delay_file_needs_its_header_and_its_file(tmp_path):
    (tmp_path / "delays.csv").write_text("from,to,delay\n")
    for path, message in (("delays.csv", "delays.csv:1: the header"), ("none.csv", "none.csv: cannot be read")):
        with pytest.raises(InputError, match=message):
            network(ids=["a"], latency=Matrix(kind="matrix", path=path), base=tmp_path)


def test_a_bare_number_is_a_constant_latency_or_a_loss_probability():
    parameters = NetworkParameters.model_validate({"latency": 2, "loss": 0.1})
    assert parameters.latency == Constant(kind="constant", value=2.0)
    assert parameters.loss == Bernoulli(kind="bernoulli", probability=0.1)


@pytest.mark.parametrize(
    "fields", [{"latency": True}, {"latency": {"kind": "uniform", "low": 2.0, "high": 1.0}}, {"start": "guess"}]
)
def test_impossible_networks_are_refused(fields):
    with pytest.raises(ValidationError):
        NetworkParameters.model_validate(fields)
