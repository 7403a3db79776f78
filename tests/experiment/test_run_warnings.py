"""What runs say of themselves: limits that they reach, worlds in which nothing happens, models that stand still."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.base import Layout, MessageKind, Protocol
from hushnet.simulator import run
from hushnet.simulator.analysis.aggregate import curves, final_values
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.analysis.targets import reached
from hushnet.simulator.cli import main
from hushnet.simulator.report.comparing import compare_folders
from hushnet.simulator.report.report_page import write_report

PRIVATE = {"mu": 0.5, "privacy": {"mechanism": "laplace", "multiplier": 2.0, "updates": 20, "clip": 1.0}}


class Sketch(Protocol):
    def layout(self):
        return Layout(agent={"model": 3, "dual": 3}, messages={"model": MessageKind(3)})

    def start(self, me):
        pass


class StandsStill(Sketch):
    def step(self, me):
        me.dual += 1.0


class Explodes(Sketch):
    def step(self, me):
        me.model = np.sin(me.now)
        me.dual = 3.0 ** (me.updates + 1)


class Collects(Sketch):
    def prepare(self):
        self.history = []

    def step(self, me):
        me.model = me.now
        self.history.extend([me.now] * 10)


def warnings_of(tmp_path, protocol, *, time=40, **fields):
    scenario = {
        "schema": 1,
        "scenario": "warnings",
        "task": {"kind": "linear_classification", "agents": 4, "dimension": 3, "samples": [4, 8]},
        "topology": {"kind": "ring"},
        "protocols": {"mine": {"kind": "mine", **fields}},
        "stop": {"time": time},
        "record": {"every": 5, "metrics": ["accuracy"]},
        "seeds": 1,
    }
    result = run(scenario, protocols={"mine": protocol}, out=tmp_path / "results", contract=False)
    [manifest] = result.manifests
    return [warning for warning in manifest["warnings"] if "not checked" not in warning]


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (StandsStill, r"mine: no model has changed in \d+ steps"),
        (Explodes, r"mine: the block dual grows without bound: \S+ at time 15, \S+ at time 40"),
        (
            Collects,
            r"mine: the protocol's attribute history grows without bound: \d+ entries at time 15, \d+ at time 40",
        ),
    ],
)
def test_a_run_warns(tmp_path, protocol, sentence):
    [warning] = warnings_of(tmp_path, protocol)
    assert re.match(sentence, warning)


def test_releases_planned_and_not_made_are_counted(tmp_path):
    [warning] = [text for text in warnings_of(tmp_path, CoordinateDescent, time=5, **PRIVATE) if "planned" in text]
    assert warning.startswith("mine: releases planned for each agent 20, made ")


def test_a_plan_that_was_kept_needs_no_remark(tmp_path):
    assert not any("planned" in text for text in warnings_of(tmp_path, CoordinateDescent, time=60, **PRIVATE))


SCENARIO = """\
schema: 1
scenario: stopped
task: {kind: linear_classification, agents: 6, dimension: 3, samples: [5, 20], test_samples: 10}
topology: {kind: ring}
engine: event
protocols:
  cd: {kind: coordinate_descent}
  alone: {kind: local}
stop: {time: 10}
record: {every: 1.0, metrics: [accuracy, traffic]}
seeds: 2
"""


@pytest.fixture
def shell(tmp_path, capsys):
    """``hushnet run`` of the scenario: exit code, what was said on stderr, and what is there."""
    (tmp_path / "stopped.yaml").write_text(SCENARIO)

    def run(*settings):
        given = [part for setting in settings for part in ("--set", setting)]
        code = main(["run", str(tmp_path / "stopped.yaml"), "--quiet", "--out", str(tmp_path / "out"), *given])
        said = capsys.readouterr()
        return code, said, load_all(tmp_path / "out")

    return run


def by_protocol(collection):
    return {(m["protocol"], m["seed"]): m for m in collection.manifests}


def when(tmp_path):
    return {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/manifest.json")}


def test_a_run_that_reaches_a_limit_is_kept_as_limited_and_made_again_once_it_is_raised(shell, tmp_path):
    code, said, stopped = shell("limits.events=90")
    assert code == 5
    assert len(said.err.strip().splitlines()) == 2
    assert "protocol cd, seed 0: at time" in said.err
    assert "limits.events admits 90" in said.err
    for (protocol, _), manifest in by_protocol(stopped).items():
        assert manifest["status"] == ("limited" if protocol == "cd" else "complete")
        assert (manifest["limit"] is None) == (protocol == "alone")
    limit = by_protocol(stopped)["cd", 0]["limit"]
    assert limit["reached"] == "events"
    assert limit["most"] == 90
    assert limit["events"] >= 90
    assert 0 < limit["time"] == by_protocol(stopped)["cd", 0]["totals"]["time"] < 10
    times = stopped.trace.loc[stopped.trace["protocol"] == "cd", "time"]
    assert 0 < times.max() <= limit["time"]

    before = when(tmp_path)
    for same in ("limits.events=90", "limits.events=80"):
        assert shell(same)[0] == 5
        assert when(tmp_path) == before
    code, _, again = shell("limits.events=95")
    assert code == 5
    assert by_protocol(again)["cd", 0]["limit"]["most"] == 95
    code, said, whole = shell()
    assert code == 0
    assert said.err == ""
    assert {m["status"] for m in whole.manifests} == {"complete"}
    assert whole.runs == stopped.runs
    before = when(tmp_path)
    assert shell("limits.events=90")[0] == 0
    assert when(tmp_path) == before


def test_limited_runs_are_in_no_mean_figure_comparison_or_page(shell, tmp_path):
    code, said, stopped = shell("limits.events=90", "figures=[{y: accuracy, x: time}]")
    assert code == 5
    limited = {run for run, m in zip(stopped.runs, stopped.manifests, strict=True) if m["status"] == "limited"}
    assert len(limited) == 2
    assert stopped.limited == limited
    assert not limited & set(final_values(stopped, "accuracy", "mean")["run"])
    assert not limited & set(curves(stopped, "accuracy", "mean", "time")["run"])
    found = reached(stopped, {"metric": "accuracy", "level": 0.01}, "time")
    assert found[found["run"].isin(limited)]["value"].isna().all()
    figures = sorted((tmp_path / "out" / "figures").glob("*.csv"))
    assert figures
    assert "cd" not in figures[0].read_text()
    assert "2 of 2 runs did not reach their end (limited)" in " ".join(said.out.split())
    with pytest.raises(InputError, match=r"nothing to compare.* 2 of 2 runs of cd did not reach their end \(limited\)"):
        compare_folders([tmp_path / "out"], "alone")
    page = write_report(tmp_path / "out", None).read_text()
    assert "limits.events admits 90" in page


def test_where_all_runs_are_limited_the_reason_is_said_and_nothing_else_fails(shell):
    code, said, _ = shell("limits.events=60", 'protocols={"cd": {"kind": "coordinate_descent"}}')
    assert code == 5
    assert "limits.events admits 60" in said.err
    assert "Traceback" not in said.err


def scenario(**more):
    return {
        "schema": 1,
        "scenario": "silent",
        "task": {"kind": "linear_classification", "agents": 4, "dimension": 2, "samples": [4, 6]},
        "topology": {"kind": "ring"},
        "engine": "event",
        "protocols": {"cd": {"kind": "coordinate_descent"}},
        "record": {"every": 1.0, "metrics": ["accuracy"]},
        "stop": {"time": 20.0},
        **more,
    }


def said(tmp_path, **more):
    return " ".join(run(scenario(**more), out=tmp_path / "out").manifests[0]["warnings"])


def test_delays_beyond_the_run_are_said(tmp_path):
    found = said(tmp_path, network={"latency": 50.0})
    assert "messages has arrived until time 20 (0 lost, 0 dropped, " in found
    assert "still on their way at the end)" in found


def test_a_trace_that_ends_long_before_the_run_is_said(tmp_path):
    trace = tmp_path / "up.csv"
    trace.write_text("agent,up_from,up_to\n" + "".join(f"{agent},0,4\n" for agent in range(4)))
    found = said(tmp_path, availability={"kind": "trace", "path": str(trace)})
    assert "no agent has made a step after time " in found
    assert "no message has arrived after time " in found


def test_nobody_ever_awake_is_said(tmp_path, capsys):
    trace = tmp_path / "up.csv"
    trace.write_text("agent,up_from,up_to\n" + "".join(f"{agent},30,40\n" for agent in range(4)))
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps(scenario(availability={"kind": "trace", "path": str(trace)})))
    assert main(["run", str(path), "--out", str(tmp_path / "out"), "--quiet"]) == 0
    assert "warning: cd: no agent has made a step until time 20: nobody woke, or nobody was up" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize("more", [{}, {"protocols": {"local": {"kind": "local"}}}, {"network": {"latency": 1.0}}])
def test_a_usual_world_is_not_called_silent(more, tmp_path):
    found = said(tmp_path, **more)
    assert "until time" not in found
    assert "after time" not in found


def test_a_folder_that_does_not_exist_is_not_one_without_runs(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for command in ("plot", "compare", "report", "replay"):
        assert main([command, str(tmp_path / "nowhere")]) == 2
        assert "nowhere: does not exist; give a folder" in capsys.readouterr().err
        assert main([command, str(tmp_path / "empty")]) == 2
        assert "holds no" in capsys.readouterr().err
