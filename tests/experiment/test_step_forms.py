"""Which form of its steps runs follows from scenario and versions; it is foreseen, part of a run's id, and recorded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hushnet.agents.compilation.code_store import CodeStore
from hushnet.agents.errors import InputError
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.steps import average, building
from hushnet.simulator.api import run
from hushnet.simulator.console import run_scenario
from hushnet.simulator.console.words import engines
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.experiment.estimate import forms
from hushnet.simulator.language.loading import load
from hushnet.simulator.world.step_form import asked_form
from numba.core import config

SCENARIO = {
    "schema": 1,
    "scenario": "forms",
    "task": {"kind": "linear_classification", "agents": 4, "dimension": 2, "samples": [5, 5], "test_samples": 2},
    "topology": {"kind": "complete"},
    "protocols": {"cd": {"kind": "coordinate_descent"}},
    "stop": {"time": 3},
    "record": {"every": 1.0, "metrics": ["accuracy"]},
}
UNTRIED = "unless numba refuses its text, which nobody has compiled here yet"


class Mean(Protocol):
    """Averages, and starts at its index."""

    Parameters = ProtocolParameters

    def layout(self):
        return Layout(agent={"model": 2}, messages={"model": MessageKind(2, mirrors="model")})

    def start(self, view, out):
        view.state["model"][:] = view.agent
        out.send("model", view.state["model"], out.public("the agent's index"))


class Refused(Mean):
    """Has a text that numba does not compile."""

    @staticmethod
    def step(me):
        around = average(me)
        text = f"{around[0]:.3f}".encode()
        me.model = around + 0.0 * len(text)
        me.message = me.model


class Printing(Mean):
    """Prints in every step, which compiled code does as well."""

    @staticmethod
    def step(me):
        print("agent", me.agent, "updates", me.updates)
        me.model = average(me)
        me.message = me.model


def identity(**fields):
    experiment = Experiment(load({**SCENARIO, **fields}))
    return experiment.run_id(next(experiment.runs()))


def test_the_form_that_is_asked_for_is_part_of_a_runs_id(monkeypatch):
    usual = identity()
    assert identity() == usual
    names = {usual, identity(debug=True), identity(engine="event"), identity(engine="batched")}
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    names.add(identity())
    assert len(names) == 5


def test_what_is_asked_for_follows_from_engine_debug_and_numba(monkeypatch):
    found = [asked_form(*one, debug=False) for one in (("auto",), ("batched",), ("event",))]
    assert found == ["compiled", "compiled", "python"]
    assert asked_form("auto", debug=True) == "python"
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    assert asked_form("batched", debug=False) == "python"


def test_a_manifest_has_the_form_that_ran_and_why_it_is_python(tmp_path):
    loaded = {**SCENARIO, "protocols": {"cd": {"kind": "coordinate_descent"}, "local": {"kind": "local"}}}
    auto = run(loaded, out=tmp_path / "auto").manifests
    assert [one["form"]["steps"] for one in auto] == ["compiled", "python"]
    assert auto[0]["form"] == {"asked": "compiled", "steps": "compiled", "why": ""}
    assert "has no text" in auto[1]["form"]["why"]
    event = run({**loaded, "engine": "event"}, out=tmp_path / "event").manifests
    assert {(one["form"]["asked"], one["form"]["steps"]) for one in event} == {("python", "python")}
    assert engines(event) == "event, as asked; steps in Python"


def test_results_without_a_form_are_of_an_unknown_one():
    assert engines([{"label": "a", "engine": "event, as asked"}]) == "event, as asked"


def test_whether_a_text_compiles_is_foreseen_once_it_was_tried_and_said_to_be_open_before(tmp_path, monkeypatch):
    store = CodeStore(tmp_path / "store")
    for name in ("_made", "_refused"):
        monkeypatch.setattr(building, name, {})
    monkeypatch.setattr(building, "code_store", lambda: store)
    loaded = {**SCENARIO, "protocols": {"mine": {"kind": "mine"}}}
    experiment = Experiment(load(loaded, extra={"mine": Refused}), tmp_path / "results")
    assert forms(experiment) == ["steps of mine: batched engine, compiled step, " + UNTRIED]
    [manifest] = run(loaded, protocols={"mine": Refused}, out=tmp_path / "results").manifests
    why = manifest["form"]["why"]
    assert manifest["form"]["steps"] == "python"
    assert why.startswith(f"test_step_forms.py:{line_of('text = f')}, `text = f")
    building._refused.clear()
    monkeypatch.setattr(building, "Callback", OnlyKeys)
    assert forms(experiment) == [f"steps of mine: batched engine, Python step, because {why}"]


class OnlyKeys:
    """A `Callback` that compiles nothing."""

    stored_as = staticmethod(building.Callback.stored_as)


def line_of(words):
    """The first line of this file with these words in its code."""
    lines = Path(__file__).read_text().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if line.strip().startswith(words))


def test_debugged_steps_are_the_authors_own_lines(tmp_path, capsys):
    line, seen = line_of("print("), set()

    def trace(frame, event, argument):
        if frame.f_code.co_filename != __file__:
            return None  # whose lines nobody asks for: what compiles on the way would take many times as long
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
    assert manifest["form"] == {"asked": "python", "steps": "python", "why": "the event engine runs plain Python"}
    assert engines([manifest]) == "event, to debug its steps in Python; steps in Python"


def test_what_is_debugged_runs_in_this_process_and_not_compiled(tmp_path):
    with pytest.raises(InputError, match="debug = true: makes steps one by one, and engine: batched plans"):
        load({**SCENARIO, "debug": True, "engine": "batched"})
    with pytest.raises(InputError, match="leave --jobs and --scheduler out"):
        run_scenario(load({**SCENARIO, "debug": True}), out=tmp_path, jobs=2)
