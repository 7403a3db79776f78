"""A small sweep for the tests of who executes it: eight agents, two protocols, and one of a user's own."""

from __future__ import annotations

import json
from pathlib import Path

SCENARIO = """\
schema: 1
scenario: small
task: {kind: linear_classification, agents: 8, dimension: 4, samples: [5, 20], test_samples: 10}
topology: {kind: ring, reach: 2}
network: {latency: {kind: exponential, mean: 0.5}, loss: 0.1}
engine: event
protocols:
  local: {kind: local}
  own: {kind: './own.py:Own'}
stop: {time: 4}
record: {every: 1.0, metrics: [accuracy, traffic]}
seeds: 4
sweep: {network.loss: [0.0, 0.3]}
"""
OWN = """\
import os, time
from pathlib import Path
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters

class OwnParameters(ProtocolParameters):
    seconds: float = 0.0
    fails: bool = False
    kills: bool = False
    hold: bool = False

class Own(Protocol):
    decides = True
    Parameters = OwnParameters

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        time.sleep(self.parameters.seconds)
        hold = Path(__file__).with_name("hold") if self.parameters.hold else None
        while hold and hold.exists() and any(hold.parent.glob("out/*/manifest.json")):  # a run is there: nothing begins
            time.sleep(0.02)
        fate = self.problem.task.train.features[0, 0] > 0.8 and me.agent == 3  # in the data of seed 0
        if fate and self.parameters.fails:
            raise ZeroDivisionError("a mistake of the user's")
        if fate and self.parameters.kills:
            os.kill(os.getpid(), 9)

    def step(self, me):
        model = me.model
        model[:] = (model + me.heard.mean(axis=0)) / 2 + me.data.features.mean(axis=0)
        me.send("model", model, me.plain())
"""


def write(folder: Path, **fields: object) -> Path:
    """The scenario with some fields of the user's protocol, and that protocol."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "own.py").write_text(OWN)
    given = "".join(f", {name}: {json.dumps(value)}" for name, value in fields.items())
    path = folder / "small.yaml"
    path.write_text(SCENARIO.replace("'./own.py:Own'", f"'./own.py:Own'{given}"))
    return path


def content(root: Path) -> dict[str, bytes]:
    """All that runs leave behind and that must not depend on who executed them, and when."""
    files = [*root.rglob("*.parquet"), root / "index.json"]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(files)}


def strays(root: Path) -> set[str]:
    """What has no business in a store after an experiment."""
    return {path.name for path in root.iterdir() if path.name.startswith(".")} - {".lock", ".cache", ".hushnet.json"}
