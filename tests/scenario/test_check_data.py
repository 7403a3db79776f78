"""``hushnet check`` reads own files, and with --data-dir all data, as a run would, and runs nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hushnet.simulator.cli import main


def test_missing_data_are_said_with_the_place_in_the_file(tmp_path, capsys):
    assert main(["check", "zhang2018-fig1a"]) == 0
    assert main(["check", "zhang2018-fig1a", "--data-dir", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "zhang2018-fig1a.yaml:" in error
    assert "adult.data: no such file; unpack https://" in error


def test_what_only_data_can_refuse_is_refused(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text(
        "who,x,y\n" + "".join(f"{'ab'[k % 2]},{k},{'uv'[k % 3 == 0]}\n" for k in range(9))
    )
    scenario = tmp_path / "own.yaml"
    scenario.write_text(
        "schema: 1\nscenario: own\nseeds: 1\ntask: {kind: csv, path: rows.csv, label: y, agent: who}\n"
        "topology: {kind: random_regular, degree: 4}\nprotocols: {a: {kind: local}}\nstop: {time: 2}\n"
    )
    for given in ([], ["--data-dir", str(tmp_path)]):
        assert main(["check", str(scenario), *given]) == 2
        assert "own.yaml:5" in capsys.readouterr().err
    assert main(["check", str(scenario), "--set", "task.path=no.csv"]) == 2
    assert "no.csv: cannot be read" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.yaml", "rows.csv"]


@pytest.mark.skipif(
    not (Path(os.environ.get("HUSHNET_DATA", "")) / "a9a" / "a9a").is_file(),
    reason="set HUSHNET_DATA to a folder that holds a9a/a9a",
)
def test_what_is_there_is_named_with_its_checksum(capsys):
    assert main(["check", "hu2019-fig1", "--data-dir", os.environ["HUSHNET_DATA"]]) == 0
    said = capsys.readouterr().out
    assert "md5 fb3596510d780aaf76a06dc721d49662" in said
    assert "as published" in said
    assert "valid" in said
