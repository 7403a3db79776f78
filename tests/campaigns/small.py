"""Sweeps of a second, for campaigns that run them by the thousand, and what of their results must not vary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hushnet.simulator.storage.run_folder import state

BEGIN = """\
schema: 1
scenario: small
task: {kind: linear_classification, agents: 4, dimension: 2, samples: [4, 6], test_samples: 3}
topology: {kind: complete}
stop: {time: 3}
engine: event
seeds: 2
"""
SWEPT = """\
protocols: {local: {kind: local}, mp: {kind: model_propagation}}
record: {every: 1.0, metrics: [objective, accuracy, traffic], messages: {between: [0, 2]}}
sweep: {network.loss: [0.0, 0.3]}
"""
TUNED = """\
protocols: {mp: {kind: model_propagation}}
record: {every: 1.0, metrics: [accuracy]}
tune: {over: {mp.alpha: [0.5, 0.9]}, seeds: 2}
"""
OWN = """\
protocols: {local: {kind: local}, own: {kind: './own.py:Own'}}
record: {every: 1.0, metrics: [accuracy]}
figures: [{y: accuracy, x: time}]
"""
LEAST = """\
protocols: {mp: {kind: model_propagation}}
record: {every: 1.0, metrics: [objective]}
seeds: 1
"""
SCENARIOS = {"swept": BEGIN + SWEPT, "tuned": BEGIN + TUNED, "own": BEGIN + OWN, "least": BEGIN[:-9] + LEAST}
OWN_CODE = """\
from hushnet.protocols.base import Layout, MessageKind, Protocol

class Own(Protocol):
    decides = True
    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        pass

    def step(self, me):
        model = me.model
        model[:] = (model + me.heard.mean(axis=0)) / 2 + me.data.features.mean(axis=0)
        me.send("model", model, me.plain())
"""
VARYING = {".hushnet.json": "names its folder by chance", "run.log": "has times of day"}
"""Files whose bytes are others in every folder; manifests differ in timings, and in the commit that
only a checkout knows."""
STAYING = {".hushnet.json", ".lock", ".cache"}
"""Hidden names that have their place in a results folder."""


def write(folder: Path, name: str) -> Path:
    """A scenario's file, and the code that it names."""
    (folder / "own.py").write_text(OWN_CODE)
    path = folder / f"{name}.yaml"
    path.write_text(SCENARIOS[name])
    return path


def arguments(scenario: Path, out: Path, jobs: int = 1) -> list[str]:
    """What ``hushnet`` is given to run it."""
    return ["run", str(scenario), "--out", str(out), "--quiet", "--trust-code", "--jobs", str(jobs)]


def content(root: Path) -> dict[str, bytes]:
    """Every file of a results folder, but for what varies."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.name not in VARYING)
    return {path.relative_to(root).as_posix(): _lasting(path) for path in files}


def _lasting(path: Path) -> bytes:
    if path.name != "manifest.json":
        return path.read_bytes()
    manifest: dict[str, Any] = json.loads(path.read_text())
    del manifest["timings"], manifest["commit"], manifest["checksums"]["manifest"]
    return json.dumps(manifest).encode()


def different(expected: dict[str, bytes], root: Path) -> list[str]:
    """What is wrong with a results folder that should have this content."""
    found = content(root)
    wrong = [f"{name} is lost" for name in expected.keys() - found.keys()]
    wrong += [f"{name} is left over" for name in found.keys() - expected.keys()]
    wrong += [f"{name} is different" for name in expected.keys() & found.keys() if expected[name] != found[name]]
    hidden = {path.name for path in root.rglob(".*")} - STAYING
    return sorted([*wrong, *(f"{name} is left over" for name in hidden if name not in found)])


def runs(root: Path) -> dict[Path, bytes]:
    """Manifests of runs, those of trials included; an error for what stands there and is no whole run."""
    folders = [path for path in (*root.glob("[0-9a-f]*"), *root.glob("tuning/[0-9a-f]*")) if len(path.name) == 16]
    half = [str(path) for path in folders if state(path) != "complete"]
    if half:
        raise AssertionError(f"half written: {', '.join(half)}")
    return {path: (path / "manifest.json").read_bytes() for path in folders}
