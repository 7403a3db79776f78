"""A results folder that is damaged or somebody else's: one sentence that names file and field, in every command."""

from __future__ import annotations

import itertools
import json
import os

import pytest
from hushnet.simulator.cli import main
from hushnet.simulator.storage.files import json_text
from hushnet.simulator.storage.run_folder import _signed


def read(command, root, tmp_path, capsys):
    out = ["--out", str(tmp_path / "out")] if command in ("report", "bundle") else []
    code = main([command, str(root), *out])
    return code, capsys.readouterr().err


INDEX = {
    "runs": [(3, "runs"), ({"a": 1}, "runs"), (["../../etc"], "runs.0"), ([None], "runs.0")],
    "labels": [([], "labels"), ({"cd": 3}, "labels.cd")],
    "figures": [({"y": 1}, "figures"), ([3], "figures.0"), ([{"y": 3}], "figures.0.y"), ([{"at": 3}], "figures.0.at")],
    "time_unit": [("soon", "time_unit"), (30, "time_unit")],
    "grids": [([{}], "grids"), (3, "grids"), ([{"x": 1}], "grids"), ([3] * 12, "grids.0")],
    "target": [(3, "target"), ({"share": 0.9}, "target.metric"), ({"metric": "mse", "level": "x"}, "target.level")],
    "tuning": [({"chosen": 3}, "tuning")],
    "failed": [([{"protocol": "cd"}], "failed.0")],
}


def by_turns(commands, cases):
    """Each case with one of the commands, which all read through one gate."""
    return [(command, *case) for command, case in zip(itertools.cycle(commands), cases, strict=False)]


@pytest.mark.parametrize(
    ("command", "field", "value", "said"),
    by_turns(["plot", "report", "compare", "bundle"], [(f, v, s) for f, cases in INDEX.items() for v, s in cases]),
)
def test_an_index_whose_fields_are_of_another_type_is_one_sentence(
    experiment, tmp_path, capsys, command, field, value, said
):
    root = experiment([])
    index = json.loads((root / "index.json").read_text()) if (root / "index.json").exists() else {}
    (root / "index.json").write_text(json.dumps({**index, field: value}))
    code, error = read(command, root, tmp_path, capsys)
    assert code == 2
    assert f"{root / 'index.json'}: is damaged, it is not the index of an experiment ({said}" in error or (
        field == "grids" and "index.json: is damaged" in error
    )
    assert error.count("\n") == 1


BREACH = {"name": "sum", "worst": "inf", "tolerance": 1e-9, "broken": True}
MANIFEST = [
    ("contract", {"text": "passed"}, "contract.status"),
    ("contract", 3, "contract"),
    ("invariants", [BREACH], "invariants.0.first"),
    ("invariants", [{**BREACH, "first": None}], "invariants.0"),
    ("invariants", [{**BREACH, "first": {"time": 1.0}}], "invariants.0.first.agents"),
    ("no_invariant", [], "no_invariant"),
    ("code", {}, "code"),
]


@pytest.mark.parametrize(("command", "field", "value", "said"), by_turns(["plot", "report"], MANIFEST))
def test_a_manifest_whose_fields_are_of_another_type_is_one_sentence(
    experiment, tmp_path, capsys, command, field, value, said
):
    root = experiment()
    path = sorted(root.glob("*/manifest.json"))[0]
    manifest = {**json.loads(path.read_text()), field: value}
    path.write_text(_signed(json_text({**manifest, "checksums": {**manifest["checksums"], "manifest": "0" * 64}})))
    code, error = read(command, root, tmp_path, capsys)
    assert code == 2
    assert f"{path}: is damaged, it is not the manifest of a run ({said}" in error
    assert error.count("\n") == 1


FOREIGN = ["[]", "3", "", "{", "[" * 100_000, "9" * 9000, '{"scenario": "\\ud800", "runs": []}', "\0", '{"version": 1}']


@pytest.mark.parametrize("name", ["index.json", "manifest.json"])
@pytest.mark.parametrize("text", FOREIGN, ids=range(len(FOREIGN)))
def test_a_file_of_somebody_else_is_one_sentence(experiment, tmp_path, capsys, name, text):
    root = experiment()
    path = next(iter(sorted(root.rglob(name))))
    path.write_text(text)
    code, error = read("compare", root, tmp_path, capsys)
    assert code == 2
    assert f"{path}: is damaged" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("kind", ["pipe", "folder", "sparse file"])
@pytest.mark.parametrize("name", ["index.json", "manifest.json", "trace.parquet"])
def test_what_is_no_file_is_one_sentence_and_is_not_waited_for(experiment, tmp_path, capsys, name, kind):
    root = experiment()
    path = next(iter(sorted(root.rglob(name))))
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as stream:
            stream.truncate(2**41)
    code, error = read("compare", root, tmp_path, capsys)
    assert code == 2
    assert str(path) in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
@pytest.mark.parametrize(("command", "place"), [("plot", "figures/curve.png"), ("plot", "figures/curve.csv")])
def test_what_stands_in_a_figures_place_and_is_no_file_is_one_sentence(
    experiment, tmp_path, capsys, command, place, kind
):
    root = experiment(figures=[{"name": "curve", "y": "accuracy", "x": "time"}])
    path = root / place
    path.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/null")
    code, error = read(command, root, tmp_path, capsys)
    assert code == 2
    assert "is not a regular file" in error
    assert error.count("\n") == 1
