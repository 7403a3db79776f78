"""The table of step times is what estimates read."""

from __future__ import annotations

import json

import pytest
from hushnet.simulator.experiment.step_times import Size, Steps, StepTimes

from . import step_times


@pytest.mark.slow
def test_a_table_is_written_that_estimates_read(tmp_path, monkeypatch):
    monkeypatch.setattr(step_times, "GRID", {"dimension": [2, 3], "rows": [5, 6], "degree": [4, 5]})
    content = step_times.table(quick=True, only=("edge_consensus_admm", "dual_averaging"))
    text = step_times.written(content)
    assert json.loads(text) == content
    assert max(map(len, text.splitlines())) < 200
    ways = {"edge_consensus_admm exchange plain", "dual_averaging rounds plain"}
    expected = {f"{way} {form}" for way in ways for form in ("compiled", "compiled lossy", "event")}
    assert set(content["steps"]) == expected | {"dual_averaging rounds gaussian compiled"}
    assert {len(one) for one in content["steps"].values()} == {8}
    assert len(content["record"]) == 4
    times = StepTimes(content)
    first = content["steps"]["edge_consensus_admm exchange plain event"][0]
    at = Size(2, 5, 4)
    found = times.step(Steps("edge_consensus_admm", "exchange", "plain", "event"), at)
    assert found is not None
    assert round(1e6 * found, 6) == first
    assert times.run > 0
    assert times.record(10, at) > 0
