"""What is written can be read: numbers that JSON has not, names that a system refuses, paths that look like schemes."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.input_files import at_home
from hushnet.simulator import run
from hushnet.simulator.cli import main
from hushnet.simulator.storage.ownership import MARKER, claim
from hushnet.simulator.storage.run_folder import write_run

from .synthetic import make_run

TINY = {
    "schema": 1,
    "scenario": "tiny",
    "task": {"kind": "linear_classification", "agents": 3, "dimension": 2, "samples": [4, 6], "test_samples": 3},
    "topology": {"kind": "complete"},
    "protocols": {"a": {"kind": "local"}, "b": {"kind": "solitary", "steps": 1}},
    "stop": {"time": 2},
    "record": {"every": 1.0, "metrics": ["accuracy"]},
    "seeds": 2,
    "engine": "event",
    "figures": [{"y": "accuracy", "x": "time"}],
    "style": {"formats": ["png"]},
}


def edges(tmp_path, weight):
    (tmp_path / "edges.csv").write_text(f"source,target,weight\n0,1,{weight}\n1,2,{weight}\n")
    return {**TINY, "topology": {"kind": "edge_list", "path": str(tmp_path / "edges.csv")}}


@pytest.mark.parametrize("weight", ["1e308", "1.1e100"])
def test_weights_whose_sums_would_be_infinite_are_refused_with_their_line(tmp_path, weight):
    with pytest.raises(InputError, match=r"edges\.csv:2: weight .* must be at most 1e\+100"):
        run(edges(tmp_path, weight), out=tmp_path / "r")


def test_a_manifest_that_could_not_be_read_again_is_not_written(tmp_path):
    result = make_run()
    result.manifest["totals"] = {"time": {"of": 3}}
    with pytest.raises(ValueError, match="its manifest could not be read again"):
        write_run(result, tmp_path / "run")
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


def test_a_torn_marker_says_so_and_nothing_is_written(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(json.dumps({**TINY, "seeds": 1}))
    out = tmp_path / "r"
    assert main(["run", str(tmp_path / "s.yaml"), "--out", str(out), "--quiet"]) == 0
    whole = (out / MARKER).read_text()
    for torn in ("", whole[:20], "{}"):
        (out / MARKER).write_text(torn)
        capsys.readouterr()
        assert main(["run", str(tmp_path / "s.yaml"), "--out", str(out), "--quiet"]) == 2
        assert f"{out / MARKER}: is damaged" in capsys.readouterr().err
    (out / MARKER).unlink()
    assert main(["run", str(tmp_path / "s.yaml"), "--out", str(out), "--quiet"]) == 0


def test_a_marker_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    order = []
    fsync, link = os.fsync, os.link
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append("fsync"), fsync(handle))[1])
    monkeypatch.setattr(os, "link", lambda *names: (order.append("link"), link(*names))[1])
    claim(tmp_path / "new")
    assert order[:2] == ["fsync", "link"]
    assert "fsync" in order[2:]
