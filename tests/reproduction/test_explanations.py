"""The scripts that explain two privacy findings say what their texts say."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def test_a_drawn_record_is_seen_at_once_where_theorem_1_claims_epsilon_1():
    facts = runpy.run_path(str(HERE / "explain_liu2022.py"))["facts"]
    large = facts(20_000)
    assert large["sigma"] == pytest.approx(0.0910456, abs=1e-7)
    assert large["shift"] == pytest.approx(21.97, abs=0.01)
    assert large["detected"] > 0.94 > 0.04 > large["allowed"]
    assert large["verified"] == pytest.approx(1800, rel=0.02)
    small = facts(50)
    assert small["detected"] < small["allowed"]
    assert small["verified"] < 1


def test_the_printed_noise_of_admm_sharing_never_leaves_the_range_of_the_data():
    distances = runpy.run_path(str(HERE / "explain_hu2019.py"))["distances"]
    for sigma in (1.0, 1e3, 1e6):
        own, other = distances(sigma)
        assert own < 1e-12
        assert other > 0.01


@pytest.mark.parametrize("name", ["explain_liu2022.py", "explain_hu2019.py"])
def test_the_scripts_run(name):
    done = subprocess.run([sys.executable, HERE / name], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) in (2, 3)
