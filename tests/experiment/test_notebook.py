"""In a notebook, runs show how far they are, and results show themselves; the example notebook does what it shows."""

from __future__ import annotations

import ast
import json
import re
import sys
import types
from pathlib import Path

import nbclient
import nbformat
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator import run
from hushnet.simulator.api import Result

NOTEBOOK = Path(__file__).resolve().parents[2] / "scenarios" / "notebook.ipynb"
LITTLE = {
    "schema": 1,
    "scenario": "little",
    "seeds": 2,
    "task": {"kind": "mean_estimation", "agents": 4},
    "topology": {"kind": "complete"},
    "protocols": {"alone": {"kind": "local"}, "cd": {"kind": "coordinate_descent"}},
    "stop": {"time": 2},
    "record": {"every": 1, "metrics": ["objective"], "objective_of": "cd"},
    "figures": [{"name": "one", "y": "objective", "x": "time"}],
}


@pytest.fixture
def kernel(monkeypatch):
    """A Jupyter kernel, as far as one is asked for; gives what was displayed."""
    displayed = []

    class Handle:
        def update(self, shown):
            displayed.append(shown)

    def display(shown, *, display_id):
        assert display_id is True
        displayed.append(shown)
        return Handle()

    ipython, inside = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    inside.HTML, inside.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", inside)
    return displayed


def test_runs_show_how_far_they_are(kernel, tmp_path):
    run(LITTLE, out=tmp_path / "out")
    counts = [re.findall(r'value="(\d+)" max="4"', shown) for shown in kernel]
    assert counts == [["0"], ["1"], ["2"], ["3"], ["4"]]
    assert "preparing" in kernel[0]
    assert "left" in kernel[1]
    assert kernel[-1].endswith("done")


def test_results_and_comparisons_show_themselves(tmp_path):
    result = run(LITTLE, out=tmp_path / "out")
    shown = result._repr_html_()
    assert shown.count("<table") == 1
    assert 'alt="one"' in shown
    compared = result.compare("alone")._repr_html_()
    assert "Differences from alone" in compared
    assert "<table" in compared
    hostile = run(
        {**LITTLE, "protocols": {**LITTLE["protocols"], "alone": {"kind": "local", "label": "<img src=x>"}}},
        out=tmp_path / "hostile",
    )
    for text in (hostile._repr_html_(), hostile.compare()._repr_html_()):
        assert "<img src=x>" not in text


def cells():
    return [
        "".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"
    ]


def test_the_example_notebook_does_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, shown = {}, []
    for text in cells():
        body = ast.parse(text)
        last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
        exec(compile(body, "notebook", "exec"), names)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), "notebook", "eval"), names))
    assert isinstance(shown[0], Result)
    assert all(getattr(value, "_repr_html_", None) or value is not None for value in shown)
    assert "<table" in shown[0]._repr_html_()
    assert len(shown) == 5


@pytest.mark.slow
def test_in_a_real_kernel_runs_report_and_results_are_tables_and_pictures(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    progress, result = outputs[0]
    assert "done" in progress["data"]["text/html"]
    for output, part in (
        (result, "<table"),
        (outputs[1][0], "<table"),
        (outputs[2][0], "<img"),
        (outputs[3][0], "<table"),
    ):
        assert part in output["data"]["text/html"]


def test_metrics_given_to_run_can_be_drawn_and_be_targets(tmp_path):
    spread = lambda snapshot: float(snapshot.models.std())  # noqa: E731
    asked = {"target": {"metric": "spread", "level": 100.0}, "figures": [{"y": "spread", "x": "time"}]}
    result = run({**LITTLE, **asked}, out=tmp_path / "out", metrics={"spread": spread})
    [figure] = result.figures()
    assert figure.axes[0].get_ylabel() == "spread"
    assert "max-width: 100%" in result._repr_html_()
    assert "time_to_target" in set(result.compare().differences["measure"])
    with pytest.raises(InputError, match=r"figures\[0\].y = 'spread': metric is not recorded"):
        run({**LITTLE, **asked, "target": None}, out=tmp_path / "other")


def test_an_error_in_a_notebook_is_its_sentence():
    assert InputError("loss = 2: must be at most 1")._render_traceback_() == ["InputError: loss = 2: must be at most 1"]


CLASS = """
from hushnet.protocols.base import Layout, MessageKind, Protocol
from hushnet.protocols.steps import average
from hushnet.simulator import run
class Mine(Protocol):
    def layout(self):
        return Layout(agent={"model": 1}, messages={"model": MessageKind(1, mirrors="model")})
    def start(self, me):
        me.send("model", me.model, me.public("zeros"))
    def step(me):
        me.model = average(me)
        me.message = me.model
"""


@pytest.mark.slow
def test_a_class_of_a_cell_runs_in_two_processes_and_errors_are_a_sentence(tmp_path):
    given = {**LITTLE, "figures": [], "protocols": {"mine": {"kind": "mine"}}, "seeds": 4}
    given["record"] = {"every": 1, "metrics": ["mse"]}
    sources = [
        CLASS,
        f"run({given!r}, protocols={{'mine': Mine}}, jobs=2).manifests[0]['status']",
        f"run({ {**given, 'stop': {'time': -1}}!r}, protocols={{'mine': Mine}})",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources=resources, allow_errors=True
    ).execute()
    _, made, wrong = (cell.outputs for cell in notebook.cells)
    assert made[-1]["data"]["text/plain"] == "'complete'"
    assert "".join(wrong[-1]["traceback"]) == "InputError: scenario: stop.time = -1: must be at least 1e-09"
