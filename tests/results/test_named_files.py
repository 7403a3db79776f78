"""Every file that a scenario names by a path is kept, hashed and packed, or said to be brought."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.bundle import write_bundle
from hushnet.simulator.cli import main

ROWS = "a,b,label,agent\n" + "".join(f"{k % 5},{k % 3},{'xy'[k % 7 > 3]},{k % 4}\n" for k in range(40))
EDGES = "source,target,weight\n0,1,1\n1,2,2\n2,3,1\n3,0,1\n"
DELAYS = "sender,receiver,delay\n" + "".join(f"{a},{b},0.1\n" for a in range(4) for b in range(4) if a != b)
PLUGIN = """\
from pathlib import Path
from hushnet.protocols.algorithms.baselines import Local
class Parameters(Local.Parameters):
    path: str = "thresholds/a.txt"
class Mine(Local):
    Parameters = Parameters
"""
FILES = {
    "rows.csv": ROWS,
    "edges.csv": EDGES,
    "delays.csv": DELAYS,
    "up.csv": "agent,up_from,up_to\n" + "".join(f"{k},0,2\n" for k in range(4)),
    "wakes.txt": "0\n1\n2\n3\n" * 3,
    "mine.py": PLUGIN,
    "thresholds/a.txt": "0.5\n",
}
TASK = "linear_classification, agents: 4, dimension: 2, samples: [6, 8], test_samples: 4"
KINDS = {
    "csv": ("task: {kind: csv, path: rows.csv, label: label, agent: agent}", ["rows.csv"]),
    "edge_list": ("topology: {kind: edge_list, path: edges.csv}", ["edges.csv"]),
    "latency": (
        "network: {latency: {kind: matrix, path: ./delays.csv}}\nprotocols: {mine: {kind: coordinate_descent}}",
        ["delays.csv"],
    ),
    "availability": ("availability: {kind: trace, path: up.csv}", ["up.csv"]),
    "clock": ("clock: {kind: recorded, path: wakes.txt}", ["wakes.txt"]),
    "plug-in": ('protocols: {mine: {kind: "./mine.py:Mine"}}', ["mine.py", "thresholds/a.txt"]),
    "plug-in's folder": ('protocols: {mine: {kind: "./mine.py:Mine", path: thresholds}}', ["thresholds/a.txt"]),
}
BASE = {
    "task": f"task: {{kind: {TASK}}}",
    "topology": "topology: {kind: complete}",
    "protocols": "protocols: {mine: {kind: local}}",
}


def written(folder, line, *, files=FILES):
    """A scenario that has a line, beside its files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    lines = [line, *(base for field, base in BASE.items() if f"{field}:" not in line)]
    end = "stop: {time: 2}\nrecord: {every: 1.0, metrics: [accuracy]}\nseeds: 1\nengine: event\n"
    (folder / "s.yaml").write_text("schema: 1\nscenario: s\n" + "\n".join(lines) + "\n" + end)
    return folder / "s.yaml"


def ran(tmp_path, line, **more):
    """The results of such a scenario, whose folder is gone."""
    (tmp_path / "home").mkdir()
    scenario = written(tmp_path / "home", line, **more)
    out = tmp_path / "results"
    assert main(["run", str(scenario), "--out", str(out), "--quiet", "--trust-code", "--no-contract"]) == 0
    scenario.parent.rename(tmp_path / "moved")
    return out


def unpacked(out, tmp_path):
    """The bundle of results, unpacked in an empty folder."""
    with zipfile.ZipFile(write_bundle(out)) as archive:
        archive.extractall(tmp_path / "empty")
    return tmp_path / "empty"


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_replayed_and_rerun_from_its_bundle_where_the_scenario_is_not(kind, tmp_path, monkeypatch):
    line, names = KINDS[kind]
    out = ran(tmp_path, line)
    read = [hashlib.sha256(FILES[name].encode()).hexdigest() for name in names]
    if kind in ("csv", "edge_list", "latency"):
        assert list(load_all(out).manifests[0]["files"].values()) == read
    assert main(["replay", str(out), "--trust-code"]) == 0
    there = unpacked(out, tmp_path)
    sums = (there / "SHA256SUMS").read_text()
    assert all(f"{total}  {name}\n" in sums for total, name in zip(read, names, strict=True))
    monkeypatch.chdir(there)
    assert main(["run", "scenario.yaml", "--out", "again", "--quiet", "--trust-code", "--no-contract"]) == 0
    assert load_all(there / "again").runs == load_all(out).runs


@pytest.mark.slow
def test_data_that_bear_a_name_of_the_bundles_own_are_packed_all_the_same(tmp_path):
    files = {**FILES, "data.csv": ROWS, "results/edges.csv": EDGES}
    line = "task: {kind: csv, path: data.csv, label: label, agent: agent}\n"
    line += "topology: {kind: edge_list, path: results/edges.csv}"
    (tmp_path / "home").mkdir()
    scenario = written(tmp_path / "home", line, files=files)
    assert main(["run", str(scenario), "--out", str(tmp_path / "r"), "--quiet"]) == 0
    there = unpacked(tmp_path / "r", tmp_path)
    assert (there / "experiment" / "data.csv").read_text() == ROWS
    assert (there / "data.csv").read_text().startswith("data_seed,")
    environment = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "rerun.sh"], cwd=there, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "claims hold" in done.stdout


@pytest.mark.parametrize("absolute", [False, True])
def test_what_lies_outside_is_said_to_be_brought_with_its_checksum(absolute, tmp_path, capsys):
    outside = tmp_path / "shared.csv"
    outside.write_text(EDGES)
    out = ran(tmp_path, f"topology: {{kind: edge_list, path: {outside if absolute else '../shared.csv'}}}")
    readme = (unpacked(out, tmp_path) / "README.md").read_text()
    total = hashlib.sha256(EDGES.encode()).hexdigest()
    assert f"shared.csv` (SHA-256 {total}), which the experiment reads, lies outside the scenario's folder" in readme
    assert str(tmp_path) not in readme
    assert main(["replay", str(out)]) == 0
    outside.write_text(EDGES + "\n")
    capsys.readouterr()
    assert main(["replay", str(out)]) == 2
    assert "shared.csv has changed since: bring back the one that was read" in capsys.readouterr().err
    outside.unlink()
    assert main(["replay", str(out)]) == 2
    assert "is not at" in capsys.readouterr().err


def test_a_published_data_set_that_a_path_names_is_not_copied(tmp_path):
    rows = "".join(f"{user}\t{item}\t{1 + (user + item) % 5}\t0\n" for user in range(1, 5) for item in range(1, 9))
    line = "task: {kind: movielens, path: ratings}\ntopology: {kind: complete}"
    (tmp_path / "home").mkdir()
    scenario = written(tmp_path / "home", line, files={"ratings/u.data": rows})
    scenario.write_text(scenario.read_text().replace("[accuracy]", "[rmse]"))
    assert main(["run", str(scenario), "--out", str(tmp_path / "results"), "--quiet"]) == 0
    assert not (tmp_path / "results" / "origin" / "ratings").exists()
    there = unpacked(tmp_path / "results", tmp_path)
    assert "is a published data set" in (there / "README.md").read_text()
    assert main(["replay", str(tmp_path / "results")]) == 0
    shutil.rmtree(tmp_path / "home")
    assert main(["replay", str(tmp_path / "results")]) == 2
