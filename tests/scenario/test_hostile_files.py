"""Whatever a scenario names where a file should be: one sentence, no waiting, no memory, nothing written."""

from __future__ import annotations

import bz2
import gzip
import lzma

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
