"""Whatever a scenario names where a file should be: one sentence, no waiting, no memory, nothing written."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import signal

import pytest
from hushnet.agents.errors import InputError, LimitReached
from hushnet.agents.input_files import read_within
from hushnet.agents.tasks.csv_reader import read_columns
from hushnet.simulator.cli import main

BASE = {
    "schema": "1",
    "scenario": "hostile",
    "task": "{kind: linear_classification, agents: 4, dimension: 2, samples: [5, 5], test_samples: 2}",
    "topology": "{kind: complete}",
    "protocols": "{local: {kind: local}}",
    "stop": "{time: 1}",
    "record": "{every: 1.0, metrics: [accuracy]}",
}
READERS = {
    "csv table": ("task", "{kind: csv, path: FILE, label: y, split: {kind: even, agents: 2}}"),
    "edge list": ("topology", "{kind: edge_list, path: FILE}"),
    "recorded clock": ("clock", "{kind: recorded, path: FILE}"),
    "delays": ("network", "{latency: {kind: matrix, path: FILE}}"),
    "absences": ("availability", "{kind: trace, path: FILE}"),
    "code": ("protocols", "{mine: {kind: './FILE:Mine'}}"),
}


@pytest.fixture
def hurried():
    """A reader that waits for a pipe's other end is interrupted, not waited for."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("hangs"))
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def said(tmp_path, capsys, reader, name, command="run"):
    """The one sentence about a file that a scenario names."""
    field, value = READERS[reader]
    path = name if reader != "code" else name + ".py"
    text = "".join(f"{key}: {entry}\n" for key, entry in {**BASE, field: value.replace("FILE", path)}.items())
    (tmp_path / "s.yaml").write_text(text)
    options = ["--out", str(tmp_path / "out"), "--quiet"] if command == "run" else []
    assert main([command, str(tmp_path / "s.yaml"), "--trust-code", *options]) == 2
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err + captured.out
    assert len(captured.err.strip().splitlines()) == 1
    return captured.err.strip()


def make(path, kind):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "sparse file":
        with path.open("wb") as stream:
            stream.truncate(2**40)
    elif kind == "one long line":
        path.write_bytes(b"x" * (2**20 + 100))
    elif kind == "not text":
        path.write_bytes(b"a,b\n\xff\xfe\x00\n" * 3)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "sparse file", "not text", "one long line", "nothing"])
@pytest.mark.parametrize("reader", sorted(READERS))
def test_what_is_no_file_of_its_kind_is_one_sentence(tmp_path, capsys, hurried, reader, kind):
    make(tmp_path / ("data" if reader != "code" else "data.py"), kind)
    sentence = said(tmp_path, capsys, reader, "data")
    assert "data" in sentence
    if kind in ("pipe", "folder", "device"):
        assert f"it is a {kind}" in sentence
    if kind == "sparse file":
        assert "1,099,511,627,776 bytes" in sentence


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "sparse file"])
def test_a_scenario_that_is_no_file_is_one_sentence(tmp_path, capsys, hurried, kind):
    make(tmp_path / "s.yaml", kind)
    assert main(["check", str(tmp_path / "s.yaml")]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("reader", "text", "line"),
    [
        ("csv table", "x,y\n1,0\n2,1\n1_000,1\n", 4),
        ("csv table", "x,y\n1,0\n1e999,1\n", 3),
        ("csv table", 'x,y\n1,0\n"2,1\n', 3),
        ("edge list", "source,target,weight\n0,1,1\n" + "9" * 5000 + ",1,1\n", 3),
        ("edge list", "source,target,weight\n0,1,1\n1,2,1e999\n", 3),
        ("recorded clock", "0\n" + "9" * 5000 + "\n", 2),
        ("delays", "sender,receiver,delay\n0,1,nan\n", 2),
        ("absences", "agent,up_from,up_to\n0,1,0\n", 2),
    ],
)
def test_a_sentence_about_a_line_names_it_and_stays_short(tmp_path, capsys, reader, text, line):
    (tmp_path / "data").write_text(text)
    sentence = said(tmp_path, capsys, reader, "data")
    assert f"data:{line}: " in sentence
    assert len(sentence) < 600


def test_ids_of_any_length_stay_text(tmp_path, capsys):
    rows = "".join(f"{i % 3}.5,{i % 2},{str(i % 2 + 1) * 5000}\n" for i in range(20))
    (tmp_path / "data").write_text("x,y,who\n" + rows)
    task = "{kind: csv, path: data, label: y, agent: who}"
    text = "".join(f"{key}: {entry}\n" for key, entry in {**BASE, "task": task}.items())
    (tmp_path / "s.yaml").write_text(text)
    assert main(["run", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out"), "--quiet"]) == 0


def bomb(packer, times):
    """Megabytes of blank lines, packed."""
    return packer.compress(b"label,agent,x\n" + b"\n" * 2**20 * times)


@pytest.mark.parametrize(("packer", "ending"), [(bz2, "bz2"), (gzip, "gz"), (lzma, "xz")])
def test_a_file_that_holds_hundreds_of_times_its_size_is_refused_while_it_is_read(packer, ending, tmp_path):
    file = tmp_path / f"rows.csv.{ending}"
    file.write_bytes(bomb(packer, 12))
    with pytest.raises(InputError, match="which no table is packed to"):
        read_columns(file)


def test_seconds_count_while_data_are_read(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("label,agent,x\n" + "\n" * 2**20)
    with pytest.raises(LimitReached, match=r"rows\.csv: could not be read within 0\.01 s"), read_within(0.01):
        read_columns(file)
    with pytest.raises(InputError, match="has a header line only"), read_within(1000):
        read_columns(file)


def test_a_run_whose_data_take_longer_than_its_limit_is_one_sentence(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("label,agent,x\n" + "\n" * 2**20 + "1,a,2\n0,b,1\n" * 4)
    (tmp_path / "s.yaml").write_text(
        "schema: 1\nscenario: s\ntask: {kind: csv, path: rows.csv, label: label, agent: agent}\n"
        "topology: {kind: complete}\nprotocols: {a: {kind: local}}\nstop: {time: 1}\nseeds: 1\n"
        "limits: {seconds: 0.01}\n"
    )
    assert main(["run", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "r"), "--quiet"]) == 5
    assert "limits.seconds admits" in capsys.readouterr().err
