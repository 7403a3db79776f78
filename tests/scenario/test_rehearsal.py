"""What drawing or the engine would refuse after all runs is refused by ``check``, and by ``run`` before the first."""

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
