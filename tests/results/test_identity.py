"""A run's name changes with everything that decides its numbers, and with nothing else."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
import textwrap

import pytest
from hushnet.protocols.algorithms.baselines import Local
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.experiment.sources import keep_sources, kept_files
from hushnet.simulator.language.loading import load
from hushnet.simulator.storage.provenance import named_files, run_id
from hushnet.simulator.storage.user_code import source_hash

RESOLVED = {
    "schema": 1,
    "network": {"loss": 0.1},
    "protocols": {"cd": {"kind": "coordinate_descent", "mu": 0.04, "label": "CD"}, "local": {"kind": "local"}},
    "seeds": 5,
    "figures": [],
}


def identify(resolved=None, protocol="cd", seed=0, **changes):
    fixed = {"code_version": "0.1.0+a", "plugin_source": None, "data_fingerprint": "d", "libraries": {"numpy": "2"}}
    return run_id(resolved or RESOLVED, protocol, seed, **({**fixed, "form": "compiled"} | changes))


def test_the_run_id_ignores_what_changes_no_run():
    drawn = {**RESOLVED, "figures": [{"x": "time", "y": "accuracy"}], "seeds": 20}
    drawn["protocols"] = {**RESOLVED["protocols"], "new": {"kind": "local"}}
    drawn["protocols"]["cd"] = {**RESOLVED["protocols"]["cd"], "label": "coordinate descent"}
    assert identify() == identify(drawn)
    assert len(identify()) == 16
    assert int(identify(), 16) >= 0


def test_the_run_id_depends_on_all_that_changes_a_run():
    nearly = {**RESOLVED, "network": {"loss": math.nextafter(0.1, 1)}}
    names = [
        identify(),
        identify(nearly),
        identify(protocol="local"),
        identify(seed=1),
        identify(seed=(1, 0)),
        identify(code_version="0.1.0+b"),
        identify(plugin_source="class Mine: ..."),
        identify(data_fingerprint="e"),
        identify(libraries={"numpy": "2.1"}),
        identify(form="python"),
    ]
    assert len(set(names)) == len(names)


SCENARIO = """\
schema: 1
scenario: tiny
task: {kind: linear_classification, agents: 4, dimension: 2, samples: [5, 5], test_samples: 2}
topology: {kind: edge_list, path: edges.csv}
clock: {kind: recorded, path: order.txt}
network: {latency: {kind: matrix, path: delays.csv}}
availability: {kind: trace, path: up.csv}
protocols:
  local: {kind: local}
  mine: {kind: './mine.py:Mine', step: 0.5}
stop: {time: 2}
record: {every: 1.0, metrics: [accuracy, './measure.py:norm'], objective_of: mine}
"""
PROTOCOL = """\
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from {helper} import twice

class MineParameters(ProtocolParameters):
    step: float = 0.1

class Mine(Protocol):
    decides = True
    Parameters = MineParameters

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={{"model": p}}, messages={{"model": MessageKind(p)}})

    def start(self, me):
        pass

    def step(self, me):
        me.model += twice(self.parameters.step)
"""
EDGES = "source,target,weight\n0,1,1\n1,2,1\n2,3,1\n"
DELAYS = "sender,receiver,delay\n" + "".join(f"{i},{j},0.1\n" for i in range(4) for j in range(4) if i != j)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A scenario that reads a file in every way that there is, and names code in every way that there is."""
    helper = f"helper_{tmp_path.name}".replace("-", "_")
    monkeypatch.syspath_prepend(tmp_path)
    files = {
        "tiny.yaml": SCENARIO,
        "edges.csv": EDGES,
        "order.txt": "0\n1\n2\n3\n",
        "delays.csv": DELAYS,
        "up.csv": "agent,up_from,up_to\n" + "".join(f"{i},0,10\n" for i in range(4)),
        f"{helper}.py": "def twice(x):\n    return 2 * x\n",
        "mine.py": PROTOCOL.format(helper=helper),
        "measure.py": "def norm(snapshot):\n    return float((snapshot.models ** 2).sum())\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    yield tmp_path
    sys.modules.pop(helper, None)


def named(folder, *overrides):
    """Names of the scenario's runs, by protocol."""
    loaded = load(folder / "tiny.yaml", trust_code=True, overrides=overrides)
    experiment = Experiment(loaded, folder / "out")
    return {run.protocol: experiment.run_id(run) for run in experiment.runs()}


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("edges.csv", "2,3,1", "2,3,2"),
        ("order.txt", "2\n3", "3\n2"),
        ("delays.csv", "0,1,0.1", "0,1,0.2"),
        ("up.csv", "3,0,10", "3,0,9"),
        ("measure.py", "** 2", "** 4"),
        ("mine.py", "me.model", "me.model "),
    ],
)
def test_every_file_that_a_scenario_reads_decides_its_runs_names(written, file, old, new):
    before = named(written)
    assert named(written) == before
    change(written / file, old, new)
    after = named(written)
    assert before["mine"] != after["mine"]
    # It is measured by the objective of mine, and sends nothing that could be late.
    assert (before["local"] != after["local"]) == (file != "delays.csv")


def test_a_users_own_modules_count_with_what_imports_them(written):
    before = named(written)["mine"]
    helper = next(written.glob("helper*.py"))
    change(helper, "2 * x", "3 * x")
    assert named(written)["mine"] != before


def test_a_file_that_passes_on_what_another_defines_counts_as_well(written):
    helper = next(written.glob("helper*.py"))
    definition, passing = (written / "mine.py").read_text(), f"from {helper.stem} import Mine\n"
    own = definition.replace(f"from {helper.stem} import twice\n", "def twice(x):\n    return 2 * x\n")
    helper.write_text(f"{own}\nclass Other(Mine):\n    def start(self, me):\n        me.model += 1\n")
    (written / "mine.py").write_text(passing)
    before = named(written)["mine"]
    change(written / "mine.py", "import Mine", "import Other as Mine")
    assert named(written)["mine"] != before
    loaded = load(written / "tiny.yaml", trust_code=True)
    keep_sources(Experiment(loaded, written / "out"))
    assert {"mine.py", helper.name} <= set(kept_files(written / "out" / "origin"))


def test_files_are_known_by_their_content(tmp_path):
    (tmp_path / "a.csv").write_text("1\n")
    latency = {"kind": "matrix", "path": "a.csv"}
    resolved = {"network": {"latency": latency}, "availability": {"path": "gone.csv"}, "task": {"path": "a.csv"}}
    found = named_files(resolved, "cd", tmp_path)
    assert set(found) == {"a.csv"}
    assert found["a.csv"] == "4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865"  # sha256sum of "1\n"
    assert named_files({"protocols": {"cd": latency, "other": {"path": "b"}}}, "cd", tmp_path) == found


def test_code_without_a_file_is_known_by_what_it_does():
    def hashed(codes, seed):
        """In a process of its own, where `__main__` has no file, as in a notebook, and sets have another order."""
        program = (
            "import json, sys\n"
            "from hushnet.simulator.storage.user_code import source_hash\n"
            "from hushnet.protocols.algorithms.baselines import Local\n"
            "for code in json.loads(sys.argv[1]):\n"
            "    exec(code)\n"
            "    print(source_hash([Mine]))\n"
        )
        given = [sys.executable, "-c", program, json.dumps([textwrap.dedent(code) for code in codes])]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(given, capture_output=True, text=True, check=True, env=environment)
        return done.stdout.splitlines()

    mine = """
    class Mine(Local):
        decides = True
        def step(self, me):
            return {0.5, "half", "quarter"} & set(map(lambda x: x + 1, me))
        @property
        def half(self):
            return 0.5
    """
    changes = (("x + 1", "x + 2"), ("return 0.5", "return 0.25"), ("map", "filter"), ("quarter", "third"))
    assert all(old in mine for old, _ in changes)
    codes = [mine, "\n\n" + mine, *(mine.replace(old, new) for old, new in changes)]
    found = hashed(codes, "1")
    assert hashed(codes, "2") == found
    assert found[1] == found[0] != "None"
    assert len(set(found)) == 1 + len(changes)


def made(rate, size=1.0, *, name="a"):
    """A class whose text says nothing about its numbers."""

    class Made(Local):
        decides = True
        scale = 2 * rate

        def step(self, me, size=size):
            return size, name

    return Made


def test_numbers_that_a_class_was_made_with_count():
    classes = [made(1.0), made(2.0), made(1.0, 2.0), made(1.0, name="b")]
    assert source_hash([made(1.0)]) == source_hash([classes[0]])
    assert len({source_hash([found]) for found in classes}) == len(classes)

    class Derived(classes[0]):
        pass

    class Other(classes[1]):
        pass

    assert source_hash([Derived]) != source_hash([Other])


class Mine(Local):
    """A protocol of this file."""


def test_own_code_that_cannot_be_read_just_now_is_no_other_code(monkeypatch):
    before = source_hash([Mine])

    def ail(_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("hushnet.simulator.storage.user_code.read_bytes", ail)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        source_hash([Mine])
    monkeypatch.undo()
    assert source_hash([Mine]) == before
