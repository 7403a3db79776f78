"""Measured delays, wake-ups and availability that repeats, from files."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hushnet.agents.availability import Trace
from hushnet.agents.errors import InputError
from hushnet.simulator.network.clocks import Times
from hushnet.simulator.network.delay_files import Empirical, Varying
from hushnet.simulator.network.network import Network, NetworkParameters
from hushnet.simulator.network.randomness import Draws, quantise, stable_ids
from scipy import stats

from .test_availability import timelines

ALL = np.array([1, 2])


def network(tmp_path, latency, rows, *, ids=("a", "b", "c")):
    (tmp_path / "d.csv").write_text(rows)
    net = Network(NetworkParameters(latency=latency), list(ids), stable_ids(list(ids)), Draws(1), tmp_path)
    tails, heads = zip(*itertools.permutations(range(len(ids)), 2), strict=True)
    net.check_links(np.array(tails), np.array(heads))
    return net


def delays(net, now=0.0, *, sender=0, tick=0):
    return net.delays_and_losses(sender, ALL if sender == 0 else np.array([0]), tick, 0, now, 8)[0].tolist()


def test_measured_delays_are_drawn_with_equal_probabilities(tmp_path):
    """Seed 1; a chi-square test of 4,000 draws, false-alarm probability 1e-4."""
    samples = [0.5, 0.25, 1.5]
    net = network(tmp_path, Empirical(kind="empirical", path="d.csv"), "delay\n" + "\n".join(map(str, samples)) + "\n")
    found = np.array([delays(net, tick=tick) for tick in range(2000)]).ravel()
    assert {*found} == {*samples}
    assert stats.chisquare([(found == one).sum() for one in samples]).pvalue > 1e-4
    assert net.mean_delay(0) == 0.75


@pytest.mark.parametrize(
    ("repeat", "expected"),
    [(None, {0.0: 3, 1.0: 3, 2.0: 5, 7.9: 5, 100.0: 5}), (4.0, {0.5: 5, 1.0: 3, 4.5: 5, 5.0: 3})],
)
def test_a_delay_that_changes_over_time_is_the_last_one_listed_when_a_message_is_sent(tmp_path, repeat, expected):
    net = network(tmp_path, Varying(kind="varying", path="d.csv", repeat=repeat), "time,delay\n2,5\n1,3\n")
    assert {now: delays(net, now)[0] for now in expected} == expected
    assert net.mean_delay(0) == 4.0


def test_each_link_may_have_a_delay_that_changes_over_time(tmp_path):
    every = itertools.permutations("abc", 2)
    rows = "sender,receiver,time,delay\n" + "".join(f"{one},{other},0,1\n" for one, other in every) + "a,c,3,2\n"
    net = network(tmp_path, Varying(kind="varying", path="d.csv"), rows)
    assert delays(net, 2.0) == [1, 1]
    assert delays(net, 3.0) == [1, 2]
    assert delays(net, 3.0, sender=2) == [1]


REFUSED = {
    "no sample": (Empirical(kind="empirical", path="d.csv"), "delay\n", "lists no delay"),
    "a sample below 0": (Empirical(kind="empirical", path="d.csv"), "delay\n1\n-1\n", r"d.csv:3: delay -1.0"),
    "no delay": (Varying(kind="varying", path="d.csv"), "time,delay\n", "lists no delay"),
    "a time twice": (Varying(kind="varying", path="d.csv"), "time,delay\n1,2\n1,3\n", "d.csv:3: the time 1.0"),
    "beyond repeat": (Varying(kind="varying", path="d.csv", repeat=2), "time,delay\n2,2\n", "below repeat"),
    "half of a link": (
        Varying(kind="varying", path="d.csv"),
        "sender,time,delay\na,1,2\n",
        "must be sender, receiver, time, delay",
    ),
    "a stranger": (Varying(kind="varying", path="d.csv"), "sender,receiver,time,delay\nx,a,1,2\n", "'x' is not the id"),
    "a missing link": (
        Varying(kind="varying", path="d.csv"),
        "sender,receiver,time,delay\na,b,1,2\n",
        "gives no delay from 'a' to 'c'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_of_delays_that_says_too_little_is_refused_before_the_run(case, tmp_path):
    latency, rows, words = REFUSED[case]
    with pytest.raises(InputError, match=words):
        network(tmp_path, latency, rows)


def clock(tmp_path, rows):
    (tmp_path / "w.csv").write_text(rows)
    return Times(kind="times", path="w.csv").build(["a", "b", "c"], stable_ids(["a", "b", "c"]), Draws(1), tmp_path)


def test_agents_wake_at_the_times_that_a_file_lists(tmp_path):
    made = clock(tmp_path, "agent,time\nb,2.5\na,1\nb,0.1\n")
    assert [made.next_time(1, tick, 0.0) for tick in range(3)] == [quantise(0.1), 2.5, np.inf]
    assert made.next_time(0, 0, 0.0) == 1.0
    assert made.next_time(2, 0, 0.0) == np.inf


@pytest.mark.parametrize(
    ("rows", "words"),
    [("x,1\n", "'x' is not the id"), ("a,0\n", "greater than 0"), ("a,1\na,1\n", "twice"), ("", "lists no wake-up")],
)
def test_a_file_of_wake_ups_that_cannot_be_is_refused(tmp_path, rows, words):
    with pytest.raises(InputError, match=words):
        clock(tmp_path, "agent,time\n" + rows)


def test_availability_from_a_file_begins_anew_after_its_period(tmp_path):
    (tmp_path / "up.csv").write_text("agent,up_from,up_to\na,0,1\na,3,4\nb,1,2\nc,0,4\n")
    made = timelines(Trace(kind="trace", path="up.csv", repeat=4.0), ids=["a", "b", "c"], base=tmp_path)
    one, other, always = (list(itertools.islice(own, 5)) for own in made)
    assert one == [(0.0, True), (1.0, False), (3.0, True), (5.0, False), (7.0, True)]
    assert other == [(0.0, False), (1.0, True), (2.0, False), (5.0, True), (6.0, False)]
    assert always == [(0.0, True)]
    with pytest.raises(InputError, match=r"up_to 4.0, by 2\^-30 or more, and both from 0 to 3.5"):
        timelines(Trace(kind="trace", path="up.csv", repeat=3.5), ids=["a", "b", "c"], base=tmp_path)
