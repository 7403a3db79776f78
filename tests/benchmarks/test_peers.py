"""The benchmark beside other simulators compares updates that learn the same."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from . import peers

CASE = replace(peers.CASES[100], agents=20, degree=4)


def alike(outcomes, reference):
    """Whether runs made about as many updates as others, and learnt about as much, which is more than nothing."""
    for mine, other in zip(outcomes, reference, strict=True):
        assert mine.seconds > 0
        assert mine.updates == pytest.approx(other.updates, rel=0.6)  # an agent of hushnet waits for its answer
        assert mine.loss == pytest.approx(other.loss, abs=0.05)
        assert mine.loss < math.log(2) - 0.1
        assert mine.accuracy > 0.8


def test_hushnet_and_the_script_learn_the_same_by_turns():
    measured = peers.measure(CASE, 30, 2)
    alike(measured["SimPy script"], measured["hushnet"])
    assert [len(outcomes) for outcomes in measured.values()] == [2] * len(measured)
    assert len(peers.lines(CASE, measured)) == len(measured)
    assert peers.lines(CASE, measured)[0].startswith("| 20 | hushnet |")


@pytest.mark.skipif(not peers.installed(), reason="gossipy is not installed; python -m tests.benchmarks.peers does it")
def test_gossipy_learns_the_same():
    setting = peers.setting_of(CASE, 30)
    alike([peers.run_gossipy(setting, 30)], [peers.run_hushnet(setting, 30)])
