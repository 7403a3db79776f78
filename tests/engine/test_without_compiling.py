"""``NUMBA_DISABLE_JIT=1``, for debuggers and coverage: everything runs in Python, with the same results."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
from hushnet.simulator import run
from hushnet.simulator.analysis.results import load_all

SCENARIO = """\
schema: 1
scenario: plain
task: {kind: linear_classification, agents: 4, dimension: 2, samples: [5, 10], test_samples: 5}
topology: {kind: ring}
network: {latency: {kind: exponential, mean: 0.3}, loss: 0.1}
protocols:
  cd: {kind: coordinate_descent}
  admm: {kind: collaborative_admm}
  rounds: {kind: coordinate_descent, schedule: rounds}
stop: {time: 3}
record: {every: 1.0}
"""


def test_without_compiling_a_scenario_runs_on_the_same_engines_to_the_same_results(tmp_path):
    (tmp_path / "plain.yaml").write_text(SCENARIO)
    command = [sys.executable, "-m", "hushnet.simulator.cli", "run", "plain.yaml", "--quiet", "--out", "out"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    plain, compiled = load_all(tmp_path / "out"), run(tmp_path / "plain.yaml", out=tmp_path / "compiled").collection
    assert len(plain.runs) == len(compiled.runs)
    assert not set(plain.runs) & set(compiled.runs), "results of one form are never taken for those of the other"
    keys = ["protocol", "time", "activations", "messages", "metric", "statistic"]
    assert plain.trace[keys].equals(compiled.trace[keys])
    np.testing.assert_allclose(plain.trace["value"], compiled.trace["value"], rtol=1e-9, atol=1e-9)
    for one, other in zip(plain.manifests, compiled.manifests, strict=True):
        assert one["form"]["asked"] == "nothing compiled"
        assert json.dumps(one["totals"]) == json.dumps(other["totals"])
        assert one["engine"] == other["engine"]
