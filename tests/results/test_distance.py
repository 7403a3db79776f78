"""The metric `distance`: how far models are from the minimiser of their protocol's objective."""

import pytest
from hushnet.simulator.experiment import run


def test_models_that_converge_have_no_distance_left_and_start_at_one(tmp_path):
    """From zero the relative distance is 1; coordinate descent ends at the minimiser."""
    data = {
        "schema": 1,
        "scenario": "tiny",
        "task": {"kind": "linear_classification", "agents": 4, "dimension": 3, "samples": [20, 30]},
        "topology": {"kind": "ring"},
        "protocols": {"cd": {"kind": "coordinate_descent", "start": "zero", "mu": 1.0}},
        "stop": {"time": 400},
        "record": {"every": 100.0, "metrics": ["distance"]},
        "seeds": 1,
    }
    trace = run(data, out=tmp_path).trace
    mean = trace[(trace["metric"] == "distance") & (trace["statistic"] == "mean")]["value"].tolist()
    assert mean[0] == pytest.approx(1.0)
    assert mean[-1] < 1e-3
    assert mean[1] < 1.0
