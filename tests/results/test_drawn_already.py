"""A finished scenario draws no figure a second time, and draws it again as soon as anything differs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.cli import main
from hushnet.simulator.figures import current
from hushnet.simulator.figures.current import FILE, drawn_already
from hushnet.simulator.storage.run_folder import read_manifest

TEXT = """\
schema: 1
scenario: little
seeds: 2
task: {kind: mean_estimation, agents: 4}
topology: {kind: complete}
protocols: {alone: {kind: local, label: alone}, cd: {kind: coordinate_descent}}
stop: {time: 2}
record: {every: 1, metrics: [objective], objective_of: cd}
figures: [{name: one, y: objective, x: time}]
style: {formats: [png]}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "little.yaml").write_text(TEXT)
    assert main(["run", str(folder / "little.yaml"), "--out", str(folder / "out"), "--quiet"]) == 0
    return folder


@pytest.fixture
def drawn(made, tmp_path):
    folder = shutil.copytree(made, tmp_path / "drawn")
    return folder / "little.yaml", folder / "out"


def pictures(out):
    return {file.name: file.stat().st_mtime_ns for file in (out / "figures").glob("one.[ps]*g")}


def draws(path, out, *more):
    """Whether the same command, given once more, writes a picture anew."""
    before = pictures(out)
    assert main(["run", str(path), "--out", str(out), "--quiet", *more]) == 0
    return pictures(out) != before


def test_nothing_is_drawn_where_nothing_has_changed(drawn):
    path, out = drawn
    before = {file: file.stat().st_mtime_ns for file in (out / "figures").iterdir()}
    program = (
        "import sys; from hushnet.simulator.cli import main; code = main(sys.argv[1:]);"
        "print('DREW' if 'matplotlib.figure' in sys.modules else 'KEPT', code)"
    )
    arguments = ["run", str(path), "--out", str(out), "--quiet"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert said[-1] == "KEPT 0"
    assert f"figure: {out / 'figures'}: one.png" in said
    assert {file: file.stat().st_mtime_ns for file in (out / "figures").iterdir()} == before
    assert not draws(path, out)


@pytest.mark.parametrize(
    "change",
    [
        lambda out: (out / "figures" / "one.png").unlink(),
        lambda out: (out / "figures" / "one.csv").write_text("mine"),
        lambda out: (out / "figures" / FILE).unlink(),
        lambda out: (out / "figures" / FILE).write_text("[]"),
        lambda out: (out / "figures" / FILE).write_text(json.dumps({"made_of": "another", "files": {}})),
    ],
    ids=["a file is gone", "a file is another", "nobody knows", "it is damaged", "of other runs"],
)
def test_it_is_drawn_again_where_anything_differs(drawn, change):
    path, out = drawn
    whole = {file.name: file.read_bytes() for file in (out / "figures").iterdir()}
    change(out)
    assert draws(path, out)
    assert {file.name: file.read_bytes() for file in (out / "figures").iterdir()} == whole


def test_what_a_checkout_knows_of_its_commit_draws_nothing(drawn, monkeypatch):
    _, out = drawn
    assert drawn_already(out, load_all(out)) is not None

    def elsewhere(folder):
        manifest, checksums = read_manifest(folder)
        return {**manifest, "commit": "of another checkout"}, checksums

    monkeypatch.setattr(current, "read_manifest", elsewhere)
    assert drawn_already(out, load_all(out)) is not None
