"""Hostile results folders: whatever stands in one, every command says a sentence, and a run repairs what it can.

``python -m tests.campaigns.folders [--seed 0] [--cases 200] [--replay 17]``
"""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import tempfile
from functools import cache
from pathlib import Path

from hushnet.simulator.storage.run_folder import _signed

from .campaign import campaign, command, exit_with
from .hostile import mutate

SCENARIO = """\
schema: 1
scenario: folder
task: {kind: linear_classification, agents: 3, dimension: 2, samples: [4, 6], test_samples: 3}
topology: {kind: complete}
protocols: {a: {kind: local}, b: {kind: solitary, steps: 1}}
stop: {time: 2}
record: {every: 1.0, metrics: [accuracy, traffic]}
engine: event
seeds: 2
sweep: {network.loss: [0.0, 0.1]}
figures:
  - {y: accuracy, x: time, facet: protocol}
"""
READERS = ("plot", "report", "compare", "bundle")
FOREIGN = [
    "[]", "3", "null", '"x"', "{}", '{"version": 1, "runs": {"a": 1}}', "{" * 5000, "[" * 100_000, "NaN", "\ufeff{}",
    '{"runs": ["../../etc"]}', '{"runs": [], "labels": []}', '{"scenario": "\\ud800", "runs": []}', "9" * 9000, "",
]  # fmt: skip


@cache
def intact() -> Path:
    """A results folder, made once."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="hushnet-campaign-"))
    (folder / "s.yaml").write_text(SCENARIO)
    code, said, _ = command(["run", str(folder / "s.yaml"), "--out", str(folder / "results"), "--quiet"], seconds=600)
    assert code == 0, said
    return folder


def damage(root: Path, rng: random.Random) -> str:
    """Do something to a results folder; what, in words."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    manifests = [path for path in files if path.name == "manifest.json"]
    kind = rng.choice(
        ["index", "index", "index", "signed", "signed", "unsigned", "bytes", "cut", "gone", "special", "foreign"]
    )
    if kind in ("index", "signed", "unsigned"):
        path = root / "index.json" if kind == "index" else rng.choice(manifests)
        before = json.loads(path.read_text())
        content = copy.deepcopy(before)
        said = [mutate(content, rng) for _ in range(rng.choice([1, 1, 1, 2, 5]))]
        text = json.dumps(content, indent=1, sort_keys=kind != "index")
        path.write_text(_signed(text) if kind == "signed" else text)
        return f"{kind} {path.name}: {'; '.join(said)}"
    path = rng.choice([root / "index.json", rng.choice(manifests), rng.choice(files)])
    if kind == "foreign":
        path = rng.choice([root / "index.json", rng.choice(manifests)])
        path.write_text(rng.choice(FOREIGN), encoding="utf-8")
    elif kind == "bytes":
        content = bytearray(path.read_bytes() or b"x")
        for _ in range(rng.choice([1, 10, 100])):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(content)
    elif kind == "cut":
        content = path.read_bytes()
        path.write_bytes(content[: rng.randrange(len(content) + 1)])
    else:
        path.unlink()
        made = rng.choice(["pipe", "folder", "device", "loop", "sparse"]) if kind == "special" else "nothing"
        if made == "pipe":
            os.mkfifo(path)
        elif made == "folder":
            path.mkdir()
        elif made in ("device", "loop"):
            path.symlink_to("/dev/zero" if made == "device" else path)
        elif made == "sparse":
            with path.open("wb") as stream:
                stream.truncate(2**41)
        kind = f"{kind} {made}"
    return f"{kind} {path.relative_to(root)}"


def attempt(rng: random.Random, folder: Path, loud: bool) -> tuple[str, list[str]]:
    """Damage a folder, have every command read it, and run the scenario again over it."""
    source = intact()
    root = folder / "results"
    shutil.copytree(source / "results", root)
    what = damage(root, rng)
    wrong, codes = [], []
    for name in READERS:
        out = ["--out", str(folder / f"{name}.out")] if name in ("report", "bundle") else []
        code, said, failures = command([name, str(root), *out], seconds=120)
        codes.append(code)
        wrong += [f"{what}: {name} {failure}" for failure in failures]
        if loud:
            print(f"{what}: {name}: {code} {said}")
    again = ["run", str(source / "s.yaml"), "--out", str(root), "--quiet"]
    code, said, failures = command(again, seconds=120)
    wrong += [f"{what}: run {failure}" for failure in failures]
    if code == 0:
        wrong += [f"{what}: run leaves {path} different" for path in differences(source / "results", root)]
    if loud:
        print(f"{what}: run: {code} {said}")
    return (
        f"{what.split()[0]}: {'read' if not any(codes) else 'refused'}, {'repaired' if code == 0 else 'refused'}",
        wrong,
    )


def differences(before: Path, after: Path) -> list[str]:
    """Tables of runs that are not the same any more."""
    tables = [path.relative_to(before) for path in before.glob("*/*.parquet")]
    return [
        str(path)
        for path in tables
        if not (after / path).is_file() or (after / path).read_bytes() != (before / path).read_bytes()
    ]


if __name__ == "__main__":
    try:
        exit_with(campaign("folders", attempt, cases=200))
    finally:
        shutil.rmtree(intact(), ignore_errors=True)
