"""hushnet writes, replaces and removes files only in folders of its own, and what it writes can be read."""

from __future__ import annotations

import errno
import os
import shutil
import zipfile
from pathlib import Path

import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.input_files import at_home
from hushnet.simulator.cli import main
from hushnet.simulator.storage.ownership import MARKER, claim
from hushnet.simulator.storage.run_folder import write_runs
from hushnet.simulator.storage.store import Store

from .synthetic import make_run

SCENARIO = """\
schema: 1
scenario: tiny
task: {kind: linear_classification, agents: 4, dimension: 2, samples: [3, 5]}
topology: {kind: complete}
protocols:
  local: {kind: local}
  cd: {kind: coordinate_descent, mu: 0.5}
stop: {time: 2}
seeds: 2
figures: [{y: accuracy, x: time}]
style: {formats: [png]}
"""

USERS = {
    "dataset/prices.csv": "1,2",
    "origin/story.txt": "once",
    "failures/lessons.txt": "learned",
    "failures/0123456789abcdef.txt.bak": "kept",
    "graphs/mine.parquet": "no parquet",
    "graphs/social.parquet": "no parquet",
    ".cache/minimum-mine.npz": "small",
    ".env.20240115": "SECRET=1",
    ".backup.deadbeef/old.txt": "old",
    "index.json": '{"pages": []}',
    "figures/holiday.png": "beach",
    ".lock": "taken",
    "s.yaml": SCENARIO,
}


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def tree(root: Path) -> dict[str, bytes | None]:
    """Everything below a folder: the bytes of files, None for folders."""
    return {p.relative_to(root).as_posix(): p.read_bytes() if p.is_file() else None for p in sorted(root.rglob("*"))}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a scenario and its results."""
    root = tmp_path_factory.mktemp("finished")
    put(root, {"s.yaml": SCENARIO})
    assert main(["run", str(root / "s.yaml"), "--out", str(root / "out"), "--quiet"]) == 0
    return root


def test_a_folder_with_somebody_elses_files_is_refused_and_left_as_it_is(tmp_path, monkeypatch, capsys):
    put(tmp_path, USERS)
    monkeypatch.chdir(tmp_path)
    before = tree(tmp_path)
    assert main(["run", "s.yaml", "--out", "."]) == 2
    assert tree(tmp_path) == before
    said = capsys.readouterr().err.strip()
    assert "is not a results folder of hushnet" in said
    assert "dataset" in said
    assert "\n" not in said


def test_users_files_survive_in_a_results_folder_even_under_names_like_ours(finished, tmp_path):
    root = tmp_path / "out"
    shutil.copytree(finished / "out", root)
    kept = {
        name: text
        for name, text in USERS.items()
        if name.partition("/")[0] not in ("dataset", "origin", "index.json", ".lock")
    }
    put(root, kept)
    assert main(["run", str(finished / "s.yaml"), "--out", str(root), "--seeds", "3", "--quiet"]) == 0
    for name, text in kept.items():
        assert (root / name).read_text() == text, name


@pytest.mark.parametrize("name", ["dataset/prices.csv", "origin/story.txt", "index.json"])
def test_a_name_that_is_replaced_as_a_whole_is_refused_where_it_is_not_ours(finished, tmp_path, name):
    root = tmp_path / "out"
    shutil.copytree(finished / "out", root)
    top = root / name.partition("/")[0]
    shutil.rmtree(top) if top.is_dir() else top.unlink()
    put(root, {name: USERS[name]})
    before = tree(root)
    assert main(["run", str(finished / "s.yaml"), "--out", str(root), "--quiet"]) == 2
    assert tree(root) == before


def test_results_that_were_copied_without_their_marker_are_adopted(finished, tmp_path, capsys):
    root = tmp_path / "out"
    shutil.copytree(finished / "out", root)
    (root / MARKER).unlink()
    before = tree(root)
    assert main(["run", str(finished / "s.yaml"), "--out", str(root), "--quiet"]) == 0
    assert set(tree(root)) - set(before) == {MARKER}


def test_a_folder_that_is_moved_while_runs_are_written_does_not_become_two(tmp_path):
    store = Store(tmp_path / "out").claimed()
    store.save("0123456789abcdef", make_run())
    store.root.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="was moved, removed or replaced"):
        store.save("1123456789abcdef", make_run())
    assert not store.root.exists()
    Store(tmp_path / "out").save("2123456789abcdef", make_run())
    with pytest.raises(InputError, match="was moved, removed or replaced"):
        store.save("1123456789abcdef", make_run())
    assert Store(tmp_path / "elsewhere").state("0123456789abcdef") == "complete"


WRITING = {
    "run": (["run", "s.yaml", "--out", "out", "--quiet", "--seeds", "3"], {"out"}),
    "plot": (["plot", "out"], {"out"}),
    "compare": (["compare", "out"], {"out"}),
    "report": (["report", "out", "--out", "page.html"], {"page.html"}),
    "bundle": (["bundle", "out", "--out", "all.zip"], {"all.zip"}),
    "check": (["check", "s.yaml"], set()),
    "dry run": (["run", "s.yaml", "--out", "out", "--dry-run"], set()),
    "new protocol": (["new", "protocol", "fine"], {"fine.py", "test_fine.py"}),
    "list": (["list"], set()),
}


@pytest.mark.parametrize("command", sorted(WRITING))
def test_a_command_writes_nothing_but_what_it_is_asked_for(finished, tmp_path, monkeypatch, command):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    put(tmp_path, {name: text for name, text in USERS.items() if name != "s.yaml"})
    monkeypatch.chdir(tmp_path)
    before = tree(tmp_path)
    arguments, places = WRITING[command]
    assert main(arguments) == 0
    after = tree(tmp_path)
    changed = {name for name in {*before, *after} if before.get(name, b"") != after.get(name, b"")}
    assert {name.partition("/")[0] for name in changed} <= places
    assert not set(before) - set(after), "something was removed"


@pytest.mark.parametrize("command", ["report", "bundle"])
def test_a_target_that_is_no_regular_file_is_refused(finished, tmp_path, command, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    for target in (pipe, circle):
        assert main([command, str(finished / "out"), "--out", str(target)]) == 2
        assert "is not a regular file" in capsys.readouterr().err
    assert pipe.is_fifo()
    assert circle.is_symlink()


def test_a_bundle_packs_nothing_that_a_link_points_at(finished, tmp_path):
    root = tmp_path / "out"
    shutil.copytree(finished / "out", root)
    (tmp_path / "secret.txt").write_text("SECRET=1")
    (root / "origin" / "notes.txt").symlink_to(tmp_path / "secret.txt")
    assert main(["bundle", str(root), "--out", str(tmp_path / "all.zip")]) == 0
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert "notes.txt" not in archive.namelist()
        assert not any(b"SECRET" in archive.read(name) for name in archive.namelist())


def test_a_manifest_that_could_not_be_read_again_is_not_written(tmp_path):
    result = make_run()
    result.manifest["totals"] = {"time": {"of": 3}}
    with pytest.raises(ValueError, match="its manifest could not be read again"):
        write_runs({tmp_path / "run": result})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("given", ["~nobody-of-that-name/x", os.fsdecode(b"r\xff")])
def test_a_home_or_a_name_that_is_none_is_one_sentence(given, capsys):
    with pytest.raises(InputError):
        at_home(Path(given))
    assert main(["compare", given]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("number", [errno.ENOTEMPTY, errno.EAGAIN, errno.EOPNOTSUPP, errno.EINVAL, errno.ENAMETOOLONG])
def test_what_a_command_meets_of_the_system_is_never_unforeseen(number, monkeypatch, capsys):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("hushnet.simulator.report.report_page.write_report", refuse)
    assert main(["report", "x"]) in (2, 5)
    said = capsys.readouterr().err
    assert "hushnet report" in said
    assert os.strerror(number) in said
    assert "unforeseen" not in said
    assert "did not foresee" not in said


def test_a_torn_marker_says_so_and_nothing_is_written(finished, tmp_path, capsys):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    out = tmp_path / "out"
    command = ["run", str(tmp_path / "s.yaml"), "--out", str(out), "--quiet"]
    whole = (out / MARKER).read_text()
    for torn in ("", whole[:20], "{}"):
        (out / MARKER).write_text(torn)
        capsys.readouterr()
        assert main(command) == 2
        assert f"{out / MARKER}: is damaged" in capsys.readouterr().err
    (out / MARKER).unlink()
    assert main(command) == 0


def test_a_marker_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    order = []
    fsync, link = os.fsync, os.link
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append("fsync"), fsync(handle))[1])
    monkeypatch.setattr(os, "link", lambda *names: (order.append("link"), link(*names))[1])
    claim(tmp_path / "new")
    assert order[:2] == ["fsync", "link"]
    assert "fsync" in order[2:]
