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
