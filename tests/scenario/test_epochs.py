"""Epochs as a limit and as an axis: what is said where they mean nothing."""

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.aggregate import curves
from hushnet.simulator.experiment import run

SMALL = {
    "schema": 1,
    "scenario": "tiny",
    "task": {"kind": "linear_classification", "agents": 4, "dimension": 3, "samples": [5, 9]},
    "topology": {"kind": "ring"},
    "protocols": {"cd": {"kind": "coordinate_descent"}},
    "stop": {"time": 3},
    "record": {"every": 1.0, "metrics": ["accuracy", "updates"]},
    "seeds": 1,
}


def test_a_protocol_without_epochs_is_not_ended_by_them(tmp_path):
    with pytest.raises(InputError, match="does not say what an epoch is"):
        run({**SMALL, "stop": {"time": 3, "epochs": 3.0}}, out=tmp_path)


def test_a_protocol_without_epochs_has_no_such_axis(tmp_path):
    collection = run(SMALL, out=tmp_path)
    with pytest.raises(InputError, match="cd does not say what an epoch of it is"):
        curves(collection, "accuracy", "mean", "epochs")
