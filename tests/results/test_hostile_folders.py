"""A results folder or bundle that is damaged, or a stranger's: one sentence in every command, nothing behind a link."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import stat
import subprocess
import sys

import pytest
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.bundle.archive import made_with, tables
from hushnet.simulator.bundle.claims import claims
from hushnet.simulator.cli import main
from hushnet.simulator.storage.files import json_text
from hushnet.simulator.storage.run_folder import _signed

from .conftest import written_to
from .test_figures import OVER_TIME


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


@pytest.mark.parametrize(("name", "text"), by_turns(["index.json", "manifest.json"], [(text,) for text in FOREIGN]))
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


@pytest.mark.parametrize(("kind", "name"), [("pipe", "curve.png"), ("folder", "curve.csv"), ("device", "curve.png")])
def test_what_stands_in_a_figures_place_and_is_no_file_is_one_sentence(experiment, tmp_path, capsys, kind, name):
    curve = {"name": "curve", "y": "accuracy", "x": "time", "style": {"formats": ["png"]}}
    root = experiment(figures=[curve])
    path = root / "figures" / name
    path.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/null")
    code, error = read("plot", root, tmp_path, capsys)
    assert code == 2
    assert "is not a regular file" in error
    assert error.count("\n") == 1


SECRET = "a secret of somebody else's\n"
HEADER = "claim,value,tolerance\n"


@pytest.fixture
def results(experiment):
    return experiment(figures=[OVER_TIME])


def said(capsys, *command):
    """The exit code of a command and what it complains of."""
    capsys.readouterr()
    code = main([str(part) for part in command])
    found = capsys.readouterr()
    return code, found.err + found.out


@pytest.fixture(scope="module")
def claimed(tmp_path_factory):
    """Results, and beside them the tables of their bundle, unpacked."""
    root = tmp_path_factory.mktemp("claimed")
    results, folder = written_to(root), root / "b"
    folder.mkdir()
    collection = load_all(results)
    claims(collection, "c").to_csv(folder / "claims.csv", index=False)
    tables(results).to_csv(folder / "tables.csv", index=False)
    (folder / "made-with.json").write_text(json_text(made_with(collection)))
    return results, folder


@pytest.fixture
def checked(claimed, tmp_path, capsys):
    """A function that checks results against a copy of the bundle's tables, in which one file is another."""
    results, folder = claimed
    shutil.copytree(folder, tmp_path / "b")

    def check(name, put):
        path = tmp_path / "b" / name
        path.unlink()
        put(path)
        code, text = said(capsys, "bundle", results, "--check", tmp_path / "b" / "claims.csv")
        assert code == 2, text
        assert f"{path}: " in text

    return check


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tables.csv", b""),
        ("tables.csv", b"protocol,seed\ncd,0\n"),
        ("tables.csv", b"a,b\n1,2,3\n1,2\n1,2,3,4\n"),
        ("made-with.json", b'{"versions": ["numpy"]}'),
        ("made-with.json", b"[]"),
        ("claims.csv", b"\xff\xfe"),
        ("claims.csv", HEADER.encode() + b"a,nan,0.1\n"),
        ("claims.csv", HEADER.encode() + b"a,1,-1\n"),
    ],
)
def test_a_table_of_a_bundle_that_is_none_is_one_sentence(checked, name, content):
    checked(name, lambda path: path.write_bytes(content))


@pytest.mark.parametrize(
    ("name", "put"),
    [
        ("tables.csv", os.mkfifo),
        ("made-with.json", lambda path: path.symlink_to("/dev/zero")),
        ("claims.csv", lambda path: path.symlink_to("gone")),
    ],
)
def test_what_is_no_file_in_a_bundle_is_not_waited_for(checked, name, put):
    checked(name, put)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("plot", "figures/1-accuracy-vs-time.csv"),
        ("report", "report.html"),
        ("compare", "compare"),
        ("plot", "index.json"),
        ("compare", "0000000000000000/trace.parquet"),
    ],
)
def test_nothing_is_read_or_written_behind_a_link(results, tmp_path, capsys, command, name):
    path = results / name
    target = tmp_path / "target"
    if path.exists():
        path.rename(target)
    elif "." in path.name:
        target.write_text(SECRET)
    else:
        target.mkdir()
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target)
    before = sorted(target.iterdir()) if target.is_dir() else target.read_bytes()
    code, text = said(capsys, command, results)
    assert code == 2, text
    assert "link" in text
    assert (sorted(target.iterdir()) if target.is_dir() else target.read_bytes()) == before


def test_a_table_that_declares_more_than_its_bytes_can_hold_is_not_unpacked(results):
    script = (
        "import resource, sys, pyarrow as pa, pyarrow.parquet as pq\n"
        "from hushnet.simulator.cli import main\n"
        "path = sys.argv[1]\n"
        "schema = pq.read_schema(path)\n"
        "rows = 2_000_000\n"
        "piece = pa.table([pa.nulls(rows, f.type) for f in schema], schema=schema)\n"
        "with pq.ParquetWriter(path, schema, compression='zstd') as writer:\n"
        "    for _ in range(50):\n"
        "        writer.write_table(piece)\n"
        "del piece\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "code = main(['compare', sys.argv[2]])\n"
        "grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "sys.exit(code if grown < 500_000 else 99)\n"
    )
    run = results / "0000000000000000"
    manifest = json.loads((run / "manifest.json").read_text())
    del manifest["checksums"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    command = [sys.executable, "-c", script, run / "trace.parquet", results]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "declares 100,000,000 rows of 10 columns" in done.stderr


def tiny_run(tmp_path):
    """The command that runs a tiny scenario into ``r``."""
    scenario = {
        "schema": 1, "scenario": "s", "topology": {"kind": "complete"},
        "task": {"kind": "mean_estimation", "agents": 3},
        "protocols": {"a": {"kind": "local"}}, "stop": {"time": 1}, "seeds": 1, "engine": "event",
    }  # fmt: skip
    (tmp_path / "s.yaml").write_text(json.dumps(scenario))
    return ["run", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "r"), "--quiet"]


@pytest.mark.parametrize("kind", ["pipe", "file", "socket"])
def test_what_stands_in_a_runs_place_and_is_no_folder_is_replaced_and_not_waited_for(tmp_path, kind):
    command = tiny_run(tmp_path)
    assert main(command) == 0
    (manifest,) = (tmp_path / "r").glob("*/manifest.json")
    shutil.rmtree(manifest.parent)
    if kind == "pipe":
        os.mkfifo(manifest.parent)
    elif kind == "file":
        manifest.parent.write_text("x")
    else:
        os.mknod(manifest.parent, 0o600 | stat.S_IFSOCK)
    signal.alarm(60)
    try:
        assert main(command) == 0
    finally:
        signal.alarm(0)
    assert manifest.is_file()
    assert not list((tmp_path / "r").glob(".*.old"))
