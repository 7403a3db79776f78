"""Errors planted in the project's own rules, one by one, and in which of the frozen engine's worlds each shows.

Each is a rule by name, the file where it stands, and what is written there instead. An error is planted in a copy of
the package, where the worlds run without compiling. ``python -m tests.oracles --mutants`` plants them all.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2s
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from .compare import SEED, WORLDS, unobserved
from .worlds import world

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TABLE, CASES, RESULTS = HERE / "mutants.csv", HERE / "mutants.json", HERE / "RESULTS.md"
PACKAGE = ("agents", "protocols", "scenarios", "simulator")
NEEDED = ("__init__.py", "oracles", "engine/__init__.py", "engine/driving.py")
"""Of the tests, what comparing takes."""
EVERY = ("batched", "event", "planned", "batches")
ENGINES = {
    "simulator/engine/event/": ("event",),
    "simulator/engine/batched/plan": ("planned", "batches"),
    "simulator/engine/batched/step_ports": ("planned", "batches"),
    "simulator/engine/batched/": ("batched", "planned", "batches"),
    "": EVERY,
}
"""By the beginning of a file's name, which engines and forms run it."""
SECONDS = 30
"""Of processor time for one world, which takes a tenth of one; what takes so long does not end."""


@dataclass(frozen=True)
class Mutant:
    """One planted error.

    Parameters
    ----------
    part, rule : str
        What is broken.
    file : str
        Within the package.
    old, new : str
        What stands there, once, and what stands there instead.
    excuse : str
        Why no world shows it, if so.
    """

    part: str
    rule: str
    file: str
    old: str
    new: str
    excuse: str = ""

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines and forms that run the file."""
        return next(engines for start, engines in ENGINES.items() if self.file.startswith(start))

    def planted(self, text: str) -> str:
        """The file's text with the error.

        Raises
        ------
        ValueError
            If what is to be replaced does not stand there once.
        """
        if text.count(self.old) != 1:
            raise ValueError(f"{self.rule}: {self.old!r} stands {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)


def mutants() -> list[Mutant]:
    """All of them."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [{key: value.replace("\\n", "\n") for key, value in row.items()} for row in csv.DictReader(file)]
    return [Mutant(**row) for row in rows]


def recorded() -> dict[str, tuple[str, int] | None]:
    """By rule, the engine or form and the first world that show it, as they were found."""
    return {rule: found and tuple(found) for rule, found in json.loads(CASES.read_text(encoding="utf-8")).items()}


# Judging, in a copy of the package.


def digest(rows: Iterable[Any]) -> str:
    """A short name of some rows."""
    return blake2s(repr(list(rows)).encode(), digest_size=8).hexdigest()


def sound_digests(cases: Iterable[int]) -> list[list[str]]:
    """Of each world, digests of the frozen engine's rows: all, unobserved, and those of declared steps."""
    from . import declared
    from .engine import build

    found = []
    for case in cases:
        rows = build.run(world(SEED, case))
        stated = declared.run(declared.declared(world(SEED, case)))
        found.append([digest(rows), digest(unobserved(rows)), digest(stated)])
    return found


def differs(case: int, engine: str, sound: list[str]) -> bool:
    """Whether an engine or form parts from the frozen engine in a world; whatever is raised is a difference."""
    from . import declared, product, steps

    description = world(SEED, case)
    try:
        if engine in steps.FORMS:
            return digest(steps.run(declared.declared(description), engine)) != sound[2]
        if digest(product.run(description, engine)) != sound[0]:
            return True
        return engine != product.EVENT and digest(product.run(description, engine, observed=False)) != sound[1]
    except (NameError, ImportError):  # the planted text is no program
        raise
    except Exception:
        return True


class _Endless(Exception):
    """A world does not end."""


def _end(*_: Any) -> None:
    raise _Endless


def judge(engines: list[str], sound: Path, first: int, cases: int) -> str:
    """The first engine and world that differ, in words; empty if none does."""
    from hushnet.protocols.steps import draw_kernels

    # What is not compiled may round otherwise, but draws the same noise.
    draw_kernels.disagreement = str  # type: ignore[assignment]
    known: list[list[str]] = json.loads(sound.read_text(encoding="utf-8"))
    signal.signal(signal.SIGVTALRM, _end)
    for case in range(first, first + cases):
        for engine in engines:
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            if differs(case, engine, known[case]):
                return f"{engine} {case}"
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


# Planting, from outside.


def copied(folder: Path) -> Path:
    """A copy of the package, and of what comparing takes."""
    for name in PACKAGE:
        shutil.copytree(ROOT / name, folder / "hushnet" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in NEEDED:
        (folder / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / "tests" / name).is_dir() else shutil.copy
        copy(ROOT / "tests" / name, folder / "tests" / name)
    return folder


def first_shown(mutant: Mutant, copy: Path, sound: Path, cases: range) -> tuple[str, int] | None:
    """The first engine or form, and world, that show an error which is planted in a copy.

    Raises
    ------
    RuntimeError
        If the planted text is no program.
    """
    file = copy / "hushnet" / mutant.file
    before = file.read_text(encoding="utf-8")
    file.write_text(mutant.planted(before), encoding="utf-8")
    asked = ["--judge", ",".join(mutant.engines), str(sound), str(cases.start), str(len(cases))]
    env = {**os.environ, "PYTHONPATH": str(copy), "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.oracles", *asked],
            cwd=copy,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        file.write_text(before, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(f"{mutant.rule}: {done.stderr[-2000:]}")
    engine, _, case = done.stdout.strip().partition(" ")
    return (engine, int(case)) if engine else None


def renew(*, jobs: int = 2, cases: int = WORLDS, again: bool = False) -> int:
    """Plant every error whose world is not known, or that does not show there any more, and write down which shows it.

    Parameters
    ----------
    jobs : int
        Processes at once.
    cases : int
        Worlds that are tried.
    again : bool
        Whether those that no world has shown are tried again.
    """
    every, known = mutants(), recorded() if CASES.exists() else {}
    found: dict[str, tuple[str, int] | None] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        sound, copies = Path(folder) / "sound.json", SimpleQueue[Path]()
        sound.write_text(json.dumps(sound_digests(range(cases))), encoding="utf-8")
        for job in range(jobs):
            copies.put(copied(Path(folder) / str(job)))

        def plant(mutant: Mutant) -> tuple[Mutant, tuple[str, int] | None]:
            before, copy = known.get(mutant.rule), copies.get()
            try:
                if before is not None and before[1] < cases:
                    shown = first_shown(mutant, copy, sound, range(before[1], before[1] + 1))
                    if shown is not None:
                        return mutant, shown
                elif mutant.rule in known and not again:
                    return mutant, None
                return mutant, first_shown(mutant, copy, sound, range(cases))
            finally:
                copies.put(copy)

        for mutant, shown in pool.map(plant, every):
            found[mutant.rule] = shown
            print(f"{'-' if shown is None else ' '.join(map(str, shown)):>12}  {mutant.rule}", flush=True)
            CASES.write_text(json.dumps(known | found, indent=1) + "\n", encoding="utf-8")
    CASES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    RESULTS.write_text(results(every, found), encoding="utf-8")
    return 0


def results(every: list[Mutant], found: dict[str, tuple[str, int] | None]) -> str:
    """The page that says what was found."""
    caught = [shown[1] for shown in found.values() if shown is not None]
    lines = [
        "# Errors planted in the project's rules, and which world shows them",
        "",
        f"`python -m tests.oracles --mutants`: {len(caught)} of {len(found)} are caught by the {WORLDS} worlds of the",
        f"frozen engine, {sum(case < 30 for case in caught)} of them within 30 worlds. Not caught:",
        "",
        *[f"- {one.rule} (`{one.file}`): {one.excuse}" for one in every if found[one.rule] is None],
        "",
        "| part | planted | caught |",
        "| --- | ---: | ---: |",
    ]
    for part in dict.fromkeys(one.part for one in every):
        own = [found[one.rule] for one in every if one.part == part]
        lines.append(f"| {part} | {len(own)} | {sum(shown is not None for shown in own)} |")
    lines += ["", "| part | rule that was broken | engine | first world |", "| --- | --- | --- | ---: |"]
    for one in every:
        engine, case = found[one.rule] or ("-", "-")
        lines.append(f"| {one.part} | {one.rule} | {engine} | {case} |")
    return "\n".join(lines) + "\n"
