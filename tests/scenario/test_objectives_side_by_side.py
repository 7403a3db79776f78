"""Figures and targets that hold objectives of several kinds side by side are refused before any run."""

import re

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
KINDS = r"objective of push \(.*mean over agents.*\) and of admm \(.*sum over agents.*\) are not of one kind"


@pytest.mark.parametrize(
    ("shown", "named"),
    [
        (ASIDE + "{y: objective}", r"figures\[1\]\.y = 'objective'"),
        (ASIDE + "{facet: [accuracy, objective]}", r"figures\[1\]\.facet\[1\] = 'objective'"),
        (ASIDE + "{y: time_to_target}", r"figures\[1\]\.y = 'time_to_target'"),
        ("seeds: 1\n\n\ntarget: {metric: objective, share: 0.9}", r"target\.metric = 'objective'"),
    ],
)
def test_kinds_are_refused_before_the_first_run(shown, named, tmp_path, capsys):
    file = tmp_path / "kinds.yaml"
    file.write_text(SCENARIO + shown + "\n")
    assert main(["run", str(file), "--quiet", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert f"{file}:15: " in said
    assert re.search(f"{named}: {KINDS}; set record.objective_of", said), said
    assert not list(tmp_path.glob("out/**/manifest.json"))


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
