"""What data, drawing or the engine would refuse after all runs is refused before the first, and nothing else."""

from __future__ import annotations

import importlib
import itertools

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.api import run
from hushnet.simulator.cli import main
from hushnet.simulator.figures.facets import plots
from hushnet.simulator.language.figure_parameters import Figure
from hushnet.simulator.language.loading import load
from hushnet.simulator.limits.rehearsal import is_plain_curve, made_up, recorded
from hushnet.simulator.metrics import METRICS
from hushnet.simulator.metrics.costs import LABELS

BASE = """\
schema: 1
scenario: rehearsed
task: {kind: linear_classification, agents: 4, dimension: 2, samples: [4, 6], test_samples: 3}
topology: {kind: ring}
engine: event
stop: {time: 2}
"""


def test_what_only_the_data_tell_of_their_size_is_refused_before_the_first_run(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("owner,x,label\n" + "".join(f"{k % 3},{k},{k % 2}\n" for k in range(12)))
    path, out = tmp_path / "s.yaml", tmp_path / "out"
    text = BASE.replace("linear_classification, agents: 4, dimension: 2, samples: [4, 6], test_samples: 3", "TASK")
    text = text.replace("kind: TASK", "kind: csv, path: rows.csv, label: label, agent: owner")
    both = "protocols: {local: {kind: local}, admm: {kind: consensus_admm, penalty: [1, 1]}}"
    path.write_text(f"{text}{both}\nrecord: {{every: 1, metrics: [accuracy]}}\n")
    for command in (["check", str(path)], ["run", str(path), "--out", str(out), "--quiet"]):
        assert main(command) == 2
        assert "has 2 values; one for each of the 3 agents is needed" in capsys.readouterr().err
    assert not list(out.glob("*/manifest.json"))


PICTURES = "figures: [{y: age, x: time}, {y: accuracy, x: time}]\nstyle: {formats: [png]}"


def test_a_figure_that_luck_left_empty_is_said_and_the_others_are_drawn(tmp_path, capsys):
    path = tmp_path / "s.yaml"
    late = "network: {latency: 50, start: zero}\nrecord: {every: 1, metrics: [age, accuracy]}\n"
    path.write_text(f"{BASE}protocols: {{cd: {{kind: coordinate_descent}}}}\n{late}{PICTURES}\n")
    assert main(["check", str(path)]) == 0
    assert main(["run", str(path), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "warning: figures: 1-age-vs-time: y 'age' was not recorded" in said, said
    assert [each.name for each in (tmp_path / "out" / "figures").glob("*.png")] == ["2-accuracy-vs-time.png"]
    assert main(["plot", str(tmp_path / "out")]) == 2, "whoever asks for figures alone is told by the code as well"


def test_what_is_there_already_needs_no_rehearsal(tmp_path, monkeypatch):
    scenario = {
        "schema": 1,
        "scenario": "there",
        "task": {"kind": "linear_classification", "agents": 3, "dimension": 2, "samples": [4, 6]},
        "topology": {"kind": "complete"},
        "engine": "event",
        "protocols": {"local": {"kind": "local"}},
        "stop": {"time": 1.0},
        "figures": [{"y": "accuracy", "x": "time"}],
    }
    run(scenario, out=tmp_path / "out")

    def rehearse(_):
        raise InputError("rehearsed")

    monkeypatch.setattr(importlib.import_module("hushnet.simulator.experiment.perform"), "rehearse", rehearse)
    run(scenario, out=tmp_path / "out")
    with pytest.raises(InputError, match="rehearsed"):
        run({**scenario, "figures": [{"y": "accuracy", "x": "updates"}]}, out=tmp_path / "out")


def test_a_curve_that_is_not_rehearsed_would_not_have_been_refused():
    loaded, plain = load("async-variants"), 0
    protocols, resolve = loaded.scenario.protocols, loaded.code.protocol
    known = {key: recorded(resolve(given.kind), given, loaded.scenario.traced()) for key, given in protocols.items()}
    made = made_up(loaded, known)
    for y, x, shown in itertools.product(METRICS, LABELS, (None, *([key] for key in protocols))):
        for statistic in ("", *METRICS[y].statistics, "none of them"):
            figure = Figure.model_validate({"y": y, "x": x, "protocols": shown, "statistic": statistic})
            if is_plain_curve(loaded.scenario, figure, known):
                plain += 1
                assert plots(made, figure.model_dump())
    assert plain > 50


SMALL = {
    "schema": "1",
    "scenario": "fitting",
    "task": "{kind: linear_classification, agents: 6, dimension: 2, samples: [5, 5], test_samples: 2}",
    "topology": "{kind: complete}",
    "protocols": "{p: {kind: local}}",
    "stop": "{time: 1}",
    "record": "{every: 1.0, metrics: [accuracy]}",
}
COLUMNS = "{kind: gisette_like, rows: 20, dimension: 6, split: {by: columns, parts: [3, 3]}}"


FIT = [
    {"task": "{kind: csv, path: rows.csv, label: y, agent: who}", "clock": "{kind: poisson, rate: [1.0, 2.0]}"},
    {"task": COLUMNS, "topology": "{kind: star}", "protocols": "{p: {kind: feature_sharing}}"},
    {"task": COLUMNS, "topology": "{kind: edge_list, path: edges.csv}", "protocols": "{p: {kind: feature_sharing}}"},
    {"topology": "{kind: erdos_renyi, probability: 0.001}"},
    {"topology": "{kind: random_regular, degree: 1, allow_disconnected: true}"},
]


@pytest.mark.parametrize("fields", FIT, ids=range(len(FIT)))
def test_what_data_and_graph_decide_is_not_refused_by_check(tmp_path, capsys, fields):
    (tmp_path / "rows.csv").write_text("who,x,y\n" + "".join(f"{k % 2},{k},{k // 2 % 2}\n" for k in range(12)))
    (tmp_path / "edges.csv").write_text("source,target,weight\n0,1,1\n0,2,1\n")
    (tmp_path / "s.yaml").write_text("".join(f"{key}: {entry}\n" for key, entry in {**SMALL, **fields}.items()))
    assert main(["check", str(tmp_path / "s.yaml")]) == 0, capsys.readouterr().err


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
