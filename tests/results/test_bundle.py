"""A bundle is all that a reviewer needs: every file a scenario names, and claims that hold when it is made again."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from hushnet.agents.errors import HushnetError, InputError
from hushnet.agents.models import Softmax
from hushnet.simulator import run
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.bundle import check_bundle, write_bundle
from hushnet.simulator.bundle.claims import check_claims, claims, read_claims
from hushnet.simulator.bundle.lock import lock_file, needed
from hushnet.simulator.bundle.wheel import wheel_files
from hushnet.simulator.cli import main
from hushnet.simulator.storage.store import Store
from rich.console import Console

from .synthetic import FALSE, make_run

SCENARIO = """\
# What a comment says stays.
schema: 1
scenario: tiny
task: {kind: linear_classification, agents: 6, dimension: 3, samples: [10, 20], points: ball}
topology: {kind: complete}
engine: event
protocols:
  local: {kind: local}
  mine: {kind: "./code/mine.py:Mine", step_size: 0.2}
stop: {time: 3}
record: {every: 1.0, metrics: [accuracy, "./code/mine.py:heaviest"]}
seeds: 2
sweep: {network.loss: [0.0, 0.3]}
"""
PLUGIN = '''\
"""A protocol and a metric of our own."""

import numpy as np
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.agents.losses import local_gradient


class MineParameters(ProtocolParameters):
    step_size: float = 0.1


class Mine(Protocol):
    decides = True
    Parameters = MineParameters

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.send("model", me.model, me.public("zeros"))

    def step(self, me):
        model = me.model
        model -= self.parameters.step_size * local_gradient(model, me.data, self.problem.task.loss, 0.1)
        me.send("model", model, me.plain("a model without noise"))


def heaviest(snapshot):
    return float(np.linalg.norm(snapshot.models, axis=1).max())
'''


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """The bundle of a tiny experiment with code of its own."""
    folder = tmp_path_factory.mktemp("author")
    (folder / "code").mkdir()
    (folder / "code" / "mine.py").write_text(PLUGIN)
    (folder / "tiny.yaml").write_text(SCENARIO)
    results = folder / "results"
    run(folder / "tiny.yaml", out=results, trust_code=True, contract=False)
    return write_bundle(results)


@pytest.fixture
def unpacked(bundle, tmp_path):
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path / "reviewer")
    return tmp_path / "reviewer"


def test_a_bundle_has_all_that_a_reviewer_needs(bundle, unpacked):
    names = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert names == {
        *("README.md", "SHA256SUMS", "claims.csv", "code/mine.py", "data.csv", "made-with.json"),
        *("requirements.txt", "rerun.sh", "resolved.json", "scenario.yaml", "tables.csv", wheel_files()[0]),
    }
    assert (unpacked / "scenario.yaml").read_text() == SCENARIO
    assert (unpacked / "code" / "mine.py").read_text() == PLUGIN
    readme = (unpacked / "README.md").read_text()
    for name in names - {"README.md"}:
        assert f"| {name} |" in readme
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=unpacked, check=True)
    table = pd.read_csv(unpacked / "claims.csv")
    assert list(table.columns) == ["claim", "value", "tolerance", "why", "command", "minutes"]
    assert "final accuracy of mine, network.loss = 0.3" in set(table["claim"])
    assert "difference in final accuracy of mine to local, network.loss = 0.0" in set(table["claim"])
    assert set(table["command"]) == {"hushnet run scenario.yaml --out results --quiet --trust-code"}
    assert len(pd.read_csv(unpacked / "data.csv")) == 4  # two seeds at two grid points


def test_run_again_elsewhere_all_claims_hold_and_a_tampered_one_does_not(unpacked, monkeypatch, capsys):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", str(unpacked / "rerun.sh")], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(unpacked / "claims.csv")
    assert f"all {len(table)} claims hold" in done.stdout
    found = check_claims(unpacked / "results", read_claims(unpacked / "claims.csv"))
    assert (found["measured"] == found["value"]).all()  # on the same versions, to the last digit

    row = table.index[table["claim"] == "final accuracy of mine, network.loss = 0.3"][0]
    table.loc[row, "value"] += table.loc[row, "tolerance"] * 1.01
    table.to_csv(unpacked / "claims.csv", index=False)
    monkeypatch.chdir(unpacked)
    assert main(["bundle", "results", "--check", "claims.csv"]) == 1
    said = capsys.readouterr()
    assert "DOES NOT HOLD: final accuracy of mine, network.loss = 0.3" in said.out
    assert f"1 of {len(table)} claims do not hold" in said.err


def test_what_was_changed_at_the_command_line_is_in_the_bundled_scenario(tmp_path, capsys):
    scenario = tmp_path / "tiny.yaml"
    scenario.write_text(
        SCENARIO.replace('  mine: {kind: "./code/mine.py:Mine", step_size: 0.2}\n', "").replace(
            ', "./code/mine.py:heaviest"', ""
        )
    )
    out = tmp_path / "results"
    assert main(["run", str(scenario), "--seeds", "1", "--set", "stop.time=2", "--out", str(out), "--quiet"]) == 0
    assert main(["bundle", str(out), "--out", str(tmp_path / "b.zip")]) == 0
    assert "b.zip" in capsys.readouterr().out
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        archive.extractall(tmp_path / "unpacked")
    again = run(tmp_path / "unpacked" / "scenario.yaml", out=tmp_path / "again")
    assert again.collection.runs == load_all(out).runs
    assert "--trust-code" not in (tmp_path / "unpacked" / "rerun.sh").read_text()


def test_tolerances_are_half_intervals_and_else_a_share(experiment):
    many = claims(load_all(experiment()), "c").set_index("claim")
    half = many.loc["final accuracy of cd", "tolerance"]
    assert many.loc["final accuracy of cd", "why"] == "half the 95 % interval over 3 runs"
    assert half == pytest.approx(4.302652729911275 * 0.01 / 3**0.5)
    assert many.loc["epsilon_claimed of cd_eps", ["value", "tolerance"]].tolist() == [0.15, pytest.approx(1.5e-7)]
    assert not any("to_target of local" in claim for claim in many.index)


def test_a_number_that_was_not_measured_again_does_not_hold(experiment, tmp_path):
    root = experiment([make_run("cd_eps", seed, privacy=FALSE) for seed in range(3)])
    table = claims(load_all(root), "c")
    assert check_claims(root, table)["holds"].all()
    extra = pd.DataFrame([{"claim": "final accuracy of sgd", "value": 0.9, "tolerance": 0.1}])
    pd.concat([table, extra]).to_csv(tmp_path / "claims.csv", index=False)
    console = Console(width=60)
    with console.capture() as capture, pytest.raises(HushnetError, match=f"1 of {len(table) + 1} claims do not hold"):
        check_bundle(root, tmp_path / "claims.csv", console)
    assert "DOES NOT HOLD: final accuracy of sgd: claimed 0.90" in capture.get()


def test_unfinished_or_unexplained_results_are_not_bundled(experiment):
    with pytest.raises(InputError, match="does not say what it was made from"):
        write_bundle(experiment())
    runs = [make_run(seed=0), make_run(seed=1)]
    runs[1].manifest["code"] = "older"
    with pytest.raises(InputError, match="different versions"):
        write_bundle(experiment(runs))


def test_the_lock_file_pins_everything_that_is_needed_and_nothing_else():
    pins = needed()
    assert {"numpy", "simpy", "pandas", "python-dateutil", "ruamel-yaml"} <= set(pins)
    assert not {"hushnet", "pytest", "ruff", "pyright"} & set(pins)
    assert pins["numpy"] == importlib.metadata.version("numpy")
    lines = lock_file().splitlines()
    assert lines[0].startswith("# Python 3.")
    assert f"numpy=={pins['numpy']}" in lines
    assert [line.partition("==")[0] for line in lines[1:]] == sorted(pins)


QUICK = """\
schema: 1
scenario: quick
task: {kind: mean_estimation, agents: 4}
topology: {kind: complete}
engine: event
protocols: {alone: {kind: local}, cd: {kind: coordinate_descent}}
stop: {time: 2}
record: {every: 1, metrics: [objective], objective_of: cd}
seeds: 2
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A bundle of a scenario without code of its own, unpacked; and its results."""
    folder = tmp_path_factory.mktemp("packed")
    (folder / "quick.yaml").write_text(QUICK)
    assert main(["run", str(folder / "quick.yaml"), "--out", str(folder / "results"), "--quiet"]) == 0
    with zipfile.ZipFile(write_bundle(folder / "results", folder / "quick.zip")) as archive:
        archive.extractall(folder / "unpacked")
    return folder


def test_a_bundle_has_hushnet_itself_as_a_wheel_that_is_the_same_every_time(packed):
    (wheel,) = (packed / "unpacked").glob("*.whl")
    name, files = wheel_files()
    assert wheel.name == name
    with zipfile.ZipFile(wheel) as archive:
        assert archive.namelist() == sorted(files)
        content = {entry: archive.read(entry) for entry in archive.namelist()}
    for line in content[next(entry for entry in content if entry.endswith("RECORD"))].decode().splitlines():
        entry, said, size = line.rsplit(",", 2)
        if said:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content[entry]).digest()).rstrip(b"=").decode()
            assert (said, size) == (f"sha256={digest}", str(len(content[entry])))
    assert "hushnet/scenarios/quickstart.yaml" in content
    assert "hushnet/simulator/report/page.html" in content
    assert not any("tests/" in entry or "__pycache__" in entry for entry in content)
    again = write_bundle(packed / "results", packed / "again.zip").read_bytes()
    assert again == (packed / "quick.zip").read_bytes()


def test_tables_are_compared_byte_by_byte(packed, tmp_path):
    said = Console(record=True, width=200)
    check_bundle(packed / "results", packed / "unpacked" / "claims.csv", said)
    assert "12 of 12 tables are the same, byte by byte" in said.export_text()
    changed = tmp_path / "unpacked"
    shutil.copytree(packed / "unpacked", changed)
    table = pd.read_csv(changed / "tables.csv", dtype=str)
    table.loc[0, "sha256"] = "0" * 64
    table.to_csv(changed / "tables.csv", index=False)
    said = Console(record=True, width=200)
    check_bundle(packed / "results", changed / "claims.csv", said)
    assert "11 of 12 tables are the same" in said.export_text()


def test_runs_of_float32_are_resumed_and_packed_with_the_libraries_of_their_model(tmp_path, monkeypatch):
    """The pretended library has the name of an extra, which installs Plotly."""
    monkeypatch.setattr(Softmax, "libraries", ("report",))
    model = "{kind: linear_classification, agents: 4, dimension: 2, samples: [6, 8], model: {kind: linear}}"
    text = QUICK.replace("{kind: mean_estimation, agents: 4}", model).replace("local", "solitary")
    text = text.replace("coordinate_descent", "decentralised_sgd").replace("objective_of: cd", "objective_of: null")
    (tmp_path / "quick.yaml").write_text(
        text + "sweep: {task.model: [{kind: linear}, {kind: softmax, precision: float32}]}\n"
    )
    first, again = tmp_path / "first", tmp_path / "again"
    for out in (first, again):
        run(tmp_path / "quick.yaml", out=out)
        shutil.rmtree(next(entry.folder for entry in Store(out).entries() if "float32" in str(entry.manifest)))
        run(tmp_path / "quick.yaml", out=out)
    with zipfile.ZipFile(write_bundle(first, tmp_path / "bundle.zip")) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert {"report": "missing"}.items() <= json.loads((tmp_path / "unpacked/made-with.json").read_text())[
        "versions"
    ].items()
    assert "plotly" not in needed()
    assert f"plotly=={importlib.metadata.version('plotly')}\n" in (tmp_path / "unpacked/requirements.txt").read_text()
    check_bundle(again, tmp_path / "unpacked/claims.csv", said := Console(record=True, width=200))
    assert "24 of 24 tables are the same, byte by byte" in said.export_text()


def test_runs_of_other_code_are_not_packed_with_this_one(packed, tmp_path, monkeypatch):
    monkeypatch.setattr("hushnet.simulator.bundle.archive.code_version", lambda: "0.1.0+another")
    with zipfile.ZipFile(write_bundle(packed / "results", tmp_path / "other.zip")) as archive:
        assert not any(name.endswith(".whl") for name in archive.namelist())
        assert "another version\n   has packed this bundle" in archive.read("README.md").decode()


@pytest.mark.slow
def test_a_bundle_reruns_from_nothing_in_a_fresh_environment(packed, tmp_path):
    """Needs a package index; nothing of this checkout is used."""
    python = tmp_path / "fresh" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "fresh")], check=True)
    install = [str(python), "-m", "pip", "install", "-q"]
    subprocess.run([*install, "-r", "requirements.txt"], check=True, cwd=packed / "unpacked")
    (wheel,) = (packed / "unpacked").glob("*.whl")
    subprocess.run([*install, "--no-deps", str(wheel)], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PATH"] = f"{python.parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["sh", "rerun.sh"], cwd=packed / "unpacked", env=environment, capture_output=True, text=True, check=True
    )
    assert "12 of 12 tables are the same, byte by byte" in done.stdout


ROWS = "a,b,label,agent\n" + "".join(f"{k % 5},{k % 3},{'xy'[k % 7 > 3]},{k % 4}\n" for k in range(40))
EDGES = "source,target,weight\n0,1,1\n1,2,2\n2,3,1\n3,0,1\n"
DELAYS = "sender,receiver,delay\n" + "".join(f"{a},{b},0.1\n" for a in range(4) for b in range(4) if a != b)
READS_FILES = """\
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
    "mine.py": READS_FILES,
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


def unpack(out, tmp_path):
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
    there = unpack(out, tmp_path)
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
    there = unpack(tmp_path / "r", tmp_path)
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
    readme = (unpack(out, tmp_path) / "README.md").read_text()
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
    there = unpack(tmp_path / "results", tmp_path)
    assert "is a published data set" in (there / "README.md").read_text()
    assert main(["replay", str(tmp_path / "results")]) == 0
    shutil.rmtree(tmp_path / "home")
    assert main(["replay", str(tmp_path / "results")]) == 2
