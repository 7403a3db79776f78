"""The same scenario gives the same bytes: again, with ``--jobs 2``, elsewhere, in other surroundings, from a wheel.

``python -m tests.campaigns.determinism [--seed 0] [--cases 50] [--replay 17]``. A case is a scenario: the shipped ones,
shortened, and mutants of them that ``check`` calls valid. Exit code, sentence, and every file of the results have to be
the same as those of the first run, but for timings, the folder's own token, and the commit, which a wheel has not.
"""

from __future__ import annotations

import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hushnet.simulator.storage.files import yaml_text

from . import mutants, small
from .campaign import campaign, command, exit_with
from .forked import FROM_A_FORK, QUIET, REPOSITORY, Server
from .hostile import mutate

CASES = 50
SURROUNDINGS: dict[str, dict[str, str]] = {
    "here": {"PYTHONHASHSEED": "0", "TZ": "UTC"},
    "hash seed": {"PYTHONHASHSEED": "4711", "TZ": "UTC"},
    "threads": {**dict.fromkeys(QUIET, "4"), "PYTHONHASHSEED": "0", "TZ": "UTC"},
    "zone": {"PYTHONHASHSEED": "0", "TZ": "Pacific/Apia", "LC_ALL": "C"},
    "wheel": {"PYTHONHASHSEED": "0", "TZ": "UTC"},
}
"""Environments by what is different there."""


@dataclass(frozen=True)
class Result:
    """What came of a run."""

    code: int
    said: str
    content: dict[str, bytes]


@cache
def bench() -> tuple[Path, dict[str, Server]]:
    """A folder, and a server for all surroundings."""
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("TMPDIR", "/tmp"), prefix="hushnet-determinism-"))
    scenario = small.write(folder, "own")
    servers = {}
    for name, environment in SURROUNDINGS.items():
        more = {"PYTHONPATH": str(wheel(folder))} if name == "wheel" else {}
        warm = small.arguments(scenario, folder / f"warm {name}")
        server = servers[name] = Server(folder / f"server {name}", warm, {**environment, **more})
        assert server.warmed.code == 0, server.warmed.said
        from_wheel = str(folder) in server.source
        assert from_wheel == (name == "wheel"), server.source
    return folder, servers


def wheel(folder: Path) -> Path:
    """What a user has who installs a wheel, in a folder."""
    source, built, installed = folder / "source", folder / "built", folder / "installed"
    ignored = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__", "results", "tests")
    shutil.copytree(REPOSITORY, source, ignore=ignored)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", built, source], check=True)
    subprocess.run([*pip, "install", "--no-deps", "--target", installed, *built.glob("*.whl")], check=True)
    return installed


def scenarios() -> list[dict[str, Any]]:
    """The shipped scenarios, shortened, and valid mutants of them."""
    rng = random.Random("determinism")
    found = [mutants.small(copy.deepcopy(data)) for data in mutants.scenarios()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mutant.yaml")
        while len(found) < CASES:
            data = mutants.small(copy.deepcopy(rng.choice(mutants.scenarios())))
            for _ in range(rng.choice([1, 2, 3])):
                mutate(data, rng, mutants.scenarios())
            path.write_bytes(yaml_text(data).encode("utf-8", "surrogatepass"))
            if command(["check", str(path)])[0] == 0:
                found.append(data)
    for data in found:
        data["seeds"] = 2
        data["engine"] = rng.choice(["event", "auto"])
    return found


def attempt(data: dict[str, Any], folder: Path, loud: bool) -> tuple[str, list[str]]:
    """Run a scenario in all surroundings."""
    _, servers = bench()

    def result(name: str, place: str = "a", jobs: int = 1) -> Result:
        where = folder / place
        where.mkdir(exist_ok=True)
        scenario, out = where / "scenario.yaml", where / "out"
        scenario.write_text(yaml_text(data))
        shutil.rmtree(out, ignore_errors=True)
        workers = {FROM_A_FORK: "forkserver"} if jobs > 1 else {}
        ended = servers[name].run(small.arguments(scenario, out, jobs), cwd=where, environment=workers)
        content = small.content(out) if out.is_dir() else {}
        return Result(ended.code, ended.said.replace(str(where), ""), content)

    first = result("here")
    others = {
        "again": result("here"),
        "--jobs 2": result("here", jobs=2),
        "another folder": result("here", place="an other – folder"),
        **{name: result(name) for name in SURROUNDINGS if name != "here"},
    }
    if loud:
        print(yaml_text(data), first.code, first.said, *first.content, sep="\n")
    wrong = [f"{name}: {what}" for name, other in others.items() for what in _differences(first, other)]
    if first.code not in (0, 2, 4, 5):
        wrong.append(f"ends with code {first.code}: {first.said[-300:]}")
    name = data.get("scenario", "?")
    return f"code {first.code}", [f"{name}: {what}" for what in wrong]


def _differences(first: Result, other: Result) -> list[str]:
    if first.code != other.code:
        return [f"code {other.code} for {first.code}: {other.said[-300:]}"]
    said = [re.sub(r"compiling .*, once; .*\n", "", one.said) for one in (first, other)]  # that depends on a cache
    wrong = [] if said[0] == said[1] else [f"says {said[1][-300:]!r} for {said[0][-300:]!r}"]
    names = first.content.keys() | other.content.keys()
    wrong += [f"{name} differs" for name in sorted(names) if first.content.get(name) != other.content.get(name)]
    return wrong


if __name__ == "__main__":
    try:
        code = campaign("determinism", attempt, cases=CASES, listed=scenarios, here=True)
    finally:
        if bench.cache_info().currsize:
            for server in bench()[1].values():
                server.close()
            shutil.rmtree(bench()[0], ignore_errors=True)
    exit_with(code)
