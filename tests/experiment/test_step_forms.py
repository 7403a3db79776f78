"""Which form of its steps runs follows from scenario and versions; it is foreseen, part of a run's id, and recorded."""

from __future__ import annotations

import sys
from pathlib import Path

import numba
import pandas as pd
import pytest
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.steps import average, batched
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.api import run
from hushnet.simulator.console.words import engines
from hushnet.simulator.experiment import Experiment, plan
from hushnet.simulator.experiment.estimate import forms
from hushnet.simulator.language.loading import load
from hushnet.simulator.world.step_form import asked_form

SCENARIO = {
    "schema": 1,
    "scenario": "forms",
    "task": {"kind": "linear_classification", "agents": 4, "dimension": 2, "samples": [5, 5], "test_samples": 2},
    "topology": {"kind": "complete"},
    "protocols": {"cd": {"kind": "coordinate_descent"}},
    "stop": {"time": 3},
    "record": {"every": 1.0, "metrics": ["accuracy"]},
}


class Mean(Protocol):
    """Averages, and starts at its index."""

    Parameters = ProtocolParameters

    def layout(self):
        return Layout(agent={"model": 2}, messages={"model": MessageKind(2, mirrors="model")})

    def start(self, me):
        me.model = me.agent
        me.send("model", me.model, me.public("the agent's index"))


class Planned(Mean):
    """Has a step function of one agent, in which anything goes."""

    @staticmethod
    def step(me):
        around = average(me)
        text = f"{around[0]:.3f}".encode()
        me.model = around + 0.0 * len(text)
        me.message = me.model


class AtOnce(Mean):
    """Has a step function of many agents."""

    @staticmethod
    @batched
    def step(me):
        me.message = me.model = average(me)


class Deciding(Planned):
    """Decides by numbers whether it sends."""

    decides = True

    @staticmethod
    def step(me):
        me.model = average(me)
        if me.model[0] > 1.5:
            me.message = me.model


class Printing(Mean):
    """Prints in every step."""

    @staticmethod
    def step(me):
        print("agent", me.agent, "updates", me.updates)
        me.model = average(me)
        me.message = me.model


def test_what_is_asked_for_follows_from_engine_debug_and_numba(monkeypatch):
    found = [asked_form(*one, debug=False) for one in (("auto",), ("batched",), ("event",))]
    assert found == ["planned", "planned", "one by one"]
    assert asked_form("auto", debug=True) == "one by one"
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert asked_form("batched", debug=False) == "nothing compiled"


def test_a_manifest_has_the_form_that_ran_and_why_it_is_that(tmp_path):
    loaded = {**SCENARIO, "protocols": {"cd": {"kind": "coordinate_descent"}, "local": {"kind": "local"}}}
    batched = run({**loaded, "engine": "batched"}, out=tmp_path / "batched").manifests
    assert [one["form"]["steps"] for one in batched] == ["batches", "one by one"]
    assert batched[0]["form"] == {"asked": "planned", "steps": "batches", "why": ""}
    assert batched[1]["form"]["why"] == "Local makes no steps"
    event = run({**loaded, "engine": "event"}, out=tmp_path / "event").manifests
    assert {(one["form"]["asked"], one["form"]["steps"]) for one in event} == {("one by one", "one by one")}
    assert engines(event) == "event, as asked"


def test_auto_begins_at_once_where_all_runs_are_short_and_its_runs_are_the_same_ones(tmp_path, monkeypatch):
    short = run(SCENARIO, out=tmp_path / "short")
    assert engines(short.manifests) == "event, for all runs together are short"
    monkeypatch.setattr(plan, "SHORT", 5)
    monkeypatch.setattr(plan, "is_ready", lambda: True)
    long = run(SCENARIO, out=tmp_path / "long")
    assert engines(long.manifests) == "batched (steps in batches)"
    one, other = (load_all(tmp_path / name) for name in ("short", "long"))
    assert one.runs == other.runs
    pd.testing.assert_frame_equal(one.trace, other.trace, check_exact=True)


@pytest.mark.parametrize(("compiled", "name"), [(True, "batched"), (False, "event")])
def test_auto_counts_the_compiling_of_windows_in(tmp_path, monkeypatch, compiled, name):
    """Of a scenario between the two numbers of wake-ups."""
    monkeypatch.setattr(plan, "SHORT", 5)
    monkeypatch.setattr(plan, "is_ready", lambda: compiled)
    assert {one["engine"].split()[0].strip(",") for one in run(SCENARIO, out=tmp_path).manifests} == {name}


class Mixed(Mean):
    """Is the mean of an agent's own model in a batch of one, and of everybody's in a larger one."""

    @batched
    def step(me):
        me.model = 0.0 * average(me) + me.model.mean(axis=0)
        me.message = me.model


def test_a_verdict_on_steps_that_are_made_one_by_one_is_none_on_batches(tmp_path, monkeypatch):
    scenario = {**SCENARIO, "protocols": {"mine": {"kind": "mine"}}}
    short = run(scenario, protocols={"mine": Mixed}, out=tmp_path / "results")
    assert short.manifests[0]["contract"]["status"] == "passed"
    monkeypatch.setattr(plan, "UNCOMPILED", 5)
    monkeypatch.setattr(plan, "SHORT", 5)
    long = run({**scenario, "seeds": 2}, protocols={"mine": Mixed}, out=tmp_path / "results")
    verdict = long.manifests[-1]["contract"]
    assert verdict["status"] == "failed"
    assert "steps in batches of 2" in verdict["text"]


FORESEEN = {
    AtOnce: ("batched engine, steps in batches", "batched (steps in batches)"),
    Planned: ("batched engine, planned steps", "batched (planned steps)"),
    Deciding: (
        "event engine, because Deciding decides by numbers what a step sends",
        "event, because Deciding decides by numbers what a step sends",
    ),
}


@pytest.mark.parametrize("kind", FORESEEN)
def test_the_form_is_foreseen_and_is_the_one_that_runs(kind, tmp_path):
    loaded = {**SCENARIO, "protocols": {"mine": {"kind": "mine"}}, "engine": "batched"}
    experiment = Experiment(load(loaded, extra={"mine": kind}), tmp_path / "results")
    foreseen, made = FORESEEN[kind]
    assert forms(experiment) == [f"steps of mine: {foreseen}"]
    [manifest] = run(loaded, protocols={"mine": kind}, out=tmp_path / "results", contract=False).manifests
    assert manifest["engine"] == made
    assert engines([manifest]) == manifest["engine"]


def line_of(words):
    """The first line of this file with these words in its code."""
    lines = Path(__file__).read_text().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if line.strip().startswith(words))


def test_debugged_steps_are_the_authors_own_lines(tmp_path, capsys):
    line, seen = line_of("print("), set()

    def trace(frame, event, argument):
        if frame.f_code.co_filename != __file__:
            return None  # whose lines nobody asks for
        if event == "line":
            seen.add(frame.f_lineno)
        return trace

    scenario = {**SCENARIO, "protocols": {"mine": {"kind": "mine"}}, "debug": True}
    sys.settrace(trace)
    try:
        [manifest] = run(scenario, protocols={"mine": Printing}, out=tmp_path, contract=False).manifests
    finally:
        sys.settrace(None)
    assert {line, line + 1, line + 2} <= seen
    assert "agent 0 updates 1\n" in capsys.readouterr().out
    why = "the event engine makes each when it is due"
    assert manifest["form"] == {"asked": "one by one", "steps": "one by one", "why": why}
    assert engines([manifest]) == "event, to debug its steps in Python"
