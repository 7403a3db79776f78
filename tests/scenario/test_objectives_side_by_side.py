"""Figures and targets that hold objectives of several kinds side by side are refused before any run."""

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.api import run
from hushnet.simulator.cli import main

SCENARIO = """\
schema: 1
scenario: kinds
task: {kind: linear_classification, agents: 12, dimension: 3, samples: [4, 4], points: ball}
topology: {kind: ring}
engine: event
protocols:
  admm: {kind: consensus_admm}
  push: {kind: push_sum_dual_averaging}
  averaging: {kind: dual_averaging}
stop: {time: 2}
record: {every: 1.0, metrics: [objective, accuracy]}
"""
ASIDE = "seeds: 1\nfigures:\n  - {y: accuracy}\n  - "


@pytest.mark.parametrize(
    "shown",
    [
        ASIDE + "{y: objective, protocols: [push, averaging]}",
        ASIDE + "{y: objective, facet: protocol}",
        "seeds: 1\ntarget: {metric: accuracy, level: 0.5}\nfigures: [{y: time_to_target}]",
    ],
)
def test_what_is_of_one_kind_or_in_panels_of_its_own_is_let_through(shown, tmp_path):
    file = tmp_path / "kinds.yaml"
    file.write_text(SCENARIO + shown + "\n")
    assert main(["check", str(file)]) == 0
    run(file, out=tmp_path / "out")


def test_what_only_data_tell_is_refused_as_well(tmp_path):
    given = {
        "schema": 1,
        "scenario": "weights",
        "task": {"kind": "linear_classification", "agents": 6, "dimension": 3, "samples": [2, 9]},
        "topology": {"kind": "ring"},
        "protocols": {
            "relative": {"kind": "coordinate_descent", "confidence": "relative"},
            "one": {"kind": "coordinate_descent", "confidence": [1.0] * 6},
        },
        "stop": {"time": 2},
        "record": {"every": 1.0, "metrics": ["objective"]},
        "seeds": 1,
        "figures": [{"y": "objective"}],
    }
    with pytest.raises(InputError, match=r"figures\[0\]\.y = 'objective'.*not of one kind"):
        run(given, out=tmp_path / "out")
    assert not list(tmp_path.glob("out/**/manifest.json"))
