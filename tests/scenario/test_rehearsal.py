"""What data, drawing or the engine would refuse after all runs is refused before the first, and nothing else."""

from __future__ import annotations

import importlib
import itertools
import re

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
LOCAL, DESCENT = "protocols: {local: {kind: local}}", "protocols: {cd: {kind: coordinate_descent}}"
KINKED = "protocols: {admm: {kind: collaborative_admm, alpha: 0.9, schedule: rounds}}"


def yaml_file(folder, lines, base=BASE):
    """A scenario of these lines."""
    path = folder / "s.yaml"
    path.write_text(f"{base}{lines}\n")
    return path


APART = {
    "objectives that a trial sets apart": (
        "protocols: {a: {kind: dual_averaging}, b: {kind: push_sum_dual_averaging}}\n"
        "tune: {over: {a.mu: [0.1, 0.5]}, seeds: 1}\nfigures: [{y: objective, x: time}]",
        "figures[0].y",
        "are not of one kind",
    ),
    "times to a target of objectives apart, in panels apart": (
        "protocols: {a: {kind: dual_averaging}, b: {kind: dual_averaging, mu: 0.1}}\n"
        "figures: [{y: time_to_target, x: protocol, facet: protocol}]",
        "figures[0].y",
        "are not of one kind",
    ),
}


@pytest.mark.parametrize(("lines", "place", "says"), APART.values(), ids=APART)
def test_run_refuses_objectives_that_are_not_of_one_kind_before_the_first_reported_run(lines, place, says, tmp_path):
    with pytest.raises(InputError, match=f"{re.escape(place)}.*{says}"):
        run(yaml_file(tmp_path, lines), out=tmp_path / "out")
    assert not list((tmp_path / "out").glob("*/manifest.json"))


def test_a_loss_with_kinks_has_no_objective_to_be_measured_by(tmp_path):
    text = BASE.replace("test_samples: 3}", "test_samples: 3, loss: hinge}")
    path = yaml_file(tmp_path, f"{KINKED}\nrecord: {{every: 1, objective_of: admm}}", text)
    with pytest.raises(InputError, match=r"record.objective_of.*minimises no objective"):
        run(path, out=tmp_path / "out")


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
    lines = [DESCENT, "network: {latency: 50, start: zero}", "record: {every: 1, metrics: [age, accuracy]}"]
    path.write_text("\n".join([BASE + lines[0], *lines[1:], PICTURES, ""]))
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
EVERY = "{every: 1.0}"
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


@pytest.mark.parametrize(
    "task",
    [
        "{kind: linear_classification, agents: 10000000, dimension: 10000000}",
        "{kind: mean_estimation, agents: 10000000, samples: 10000000}",
        "{kind: synthetic_ratings, users: 10000000, items: 10000000}",
        "{kind: epsilon_like, agents: 10000000, samples: 10000000}",
        "{kind: gisette_like, rows: 10000000, dimension: 10000000}",
    ],
)
def test_what_no_machine_holds_is_refused_by_check(tmp_path, capsys, task):
    (tmp_path / "s.yaml").write_text(
        "".join(f"{key}: {entry}\n" for key, entry in {**SMALL, "task": task, "record": EVERY}.items())
    )
    assert main(["check", str(tmp_path / "s.yaml")]) == 5
    assert "GiB of memory, and this machine has" in capsys.readouterr().err


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
