"""Errors planted in the project's own rules, one by one, and in which of the frozen engine's worlds each shows.

Those of the part "mixed worlds" are in rules that the frozen engine does not have, and show in worlds of
`tests.campaigns.mixed_worlds`. Each is a rule by name, the file where it stands, and what is written there instead. An
error is planted in a copy of the package, where the worlds run without compiling. ``python -m tests.oracles --mutants``
plants them all.
"""

from __future__ import annotations

import compileall
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from .compare import WORLDS
from .judging import MIXED, sound_digests
from .rare_worlds import FIRST, LAST, LATER

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TABLE, CASES, RESULTS = HERE / "mutants.csv", HERE / "mutants.json", HERE / "RESULTS.md"
PACKAGE = ("agents", "protocols", "scenarios", "simulator")
NEEDED = ("__init__.py", "oracles", "campaigns", "engine", "protocols")
"""Of the tests, what comparing takes."""
EVERY = ("event", "planned", "batches")
RARE = 200
"""Rare worlds of each kind that are tried."""
TRIED = (*range(WORLDS), *(FIRST + begin + case for begin in (0, LATER, LAST) for case in range(RARE)))
"""Numbers of the worlds that are tried."""
ENGINES = {"simulator/engine/event/": ("event",), "simulator/engine/batched/": ("planned", "batches"), "": EVERY}
"""By the beginning of a file's name, which engines and forms run it."""


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
        """The engines and forms that run the file, or worlds that mix everything."""
        if self.part == "mixed worlds":
            return (MIXED,)
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
    pairs = {rule: found.split() for rule, found in json.loads(CASES.read_text(encoding="utf-8")).items()}
    return {rule: (pair[0], int(pair[1])) if pair else None for rule, pair in pairs.items()}


def record(found: dict[str, tuple[str, int] | None]) -> None:
    """Write down what was found."""
    told = {rule: " ".join(map(str, shown or ())) for rule, shown in found.items()}
    CASES.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


class Copy:
    """A copy of the package, in which errors are planted, and a process that judges them; ``with`` it that lasts.

    Parameters
    ----------
    folder : Path
    sound : Path
        What `hushnet` does without an error: `sound_digests` by world, as JSON.
    """

    def __init__(self, folder: Path, sound: Path) -> None:
        self.folder, self.sound = folder, sound
        for name in PACKAGE:
            shutil.copytree(ROOT / name, folder / "hushnet" / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in NEEDED:
            (folder / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / "tests" / name).is_dir() else shutil.copy
            copy(ROOT / "tests" / name, folder / "tests" / name)
        compileall.compile_dir(folder, quiet=2)

    def __enter__(self) -> Copy:
        how = {"PYTHONPATH": str(self.folder), "NUMBA_DISABLE_JIT": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        self._judge = subprocess.Popen(
            [sys.executable, "-m", "tests.oracles.judging"],
            cwd=self.folder,
            env={**os.environ, **how},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: Any) -> None:
        self._judge.communicate()

    def first_shown(self, mutant: Mutant, cases: Sequence[int]) -> tuple[str, int] | None:
        """The first engine or form, and world, that show an error, and show none without it.

        What is not compiled may part from the frozen engine by itself, and then shows nothing.

        Raises
        ------
        RuntimeError
            If the planted text is no program.
        """
        while True:
            shown = self._first_differing(mutant, cases)
            if shown is None or self._judged(mutant.rule, shown[:1], [shown[1]]) is None:
                return shown
            cases = cases[cases.index(shown[1]) + 1 :]

    def _first_differing(self, mutant: Mutant, cases: Sequence[int]) -> tuple[str, int] | None:
        """The first engine or form, and world, that differ with an error."""
        file = self.folder / "hushnet" / mutant.file
        before, times = file.read_text(encoding="utf-8"), file.stat()
        file.write_text(mutant.planted(before), encoding="utf-8")
        try:
            return self._judged(mutant.rule, mutant.engines, cases)
        finally:
            file.write_text(before, encoding="utf-8")
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # its bytecode is that of the copy

    def _judged(self, rule: str, engines: Sequence[str], cases: Sequence[int]) -> tuple[str, int] | None:
        """The first engine or form, and world, that differ as the files are now."""
        asked, answers = self._judge.stdin, self._judge.stdout
        assert asked, answers
        print(",".join(engines), self.sound, *cases, file=asked, flush=True)
        said, *found = answers.readline().split()  # type: ignore[union-attr]
        if said != "shown":
            raise RuntimeError(f"{rule}: what is planted is no program")
        return (found[0], int(found[1])) if found else None


def renew(*, jobs: int = 2, cases: Sequence[int] = TRIED, again: bool = False) -> int:
    """Plant every error whose world is not known, or that does not show there any more, and write down which shows it.

    Parameters
    ----------
    jobs : int
        Processes at once.
    cases : sequence of int
        Worlds that are tried, by their numbers.
    again : bool
        Whether those that no world has shown are tried again.
    """
    every, known = mutants(), recorded() if CASES.exists() else {}
    found: dict[str, tuple[str, int] | None] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool, ExitStack() as stack:
        sound, copies = Path(folder) / "sound.json", SimpleQueue[Copy]()
        sound.write_text(
            json.dumps(sound_digests({*cases, *(shown[1] for shown in known.values() if shown)})), encoding="utf-8"
        )
        for job in range(jobs):
            copies.put(stack.enter_context(Copy(Path(folder) / str(job), sound)))

        def plant(mutant: Mutant) -> tuple[Mutant, tuple[str, int] | None]:
            before, copy = known.get(mutant.rule), copies.get()
            try:
                if before is not None:
                    shown = copy.first_shown(mutant, [before[1]])
                    if shown is not None:
                        return mutant, shown
                elif mutant.rule in known and not again:
                    return mutant, None
                return mutant, copy.first_shown(mutant, cases)
            finally:
                copies.put(copy)

        for mutant, shown in pool.map(plant, every):
            found[mutant.rule] = shown
            print(f"{'-' if shown is None else ' '.join(map(str, shown)):>12}  {mutant.rule}", flush=True)
            record(known | found)
    record(found)
    RESULTS.write_text(results(every, found), encoding="utf-8")
    return 0


def results(every: list[Mutant], found: dict[str, tuple[str, int] | None]) -> str:
    """The page that says what was found."""
    caught = [shown[1] for shown in found.values() if shown is not None]
    rare = sum(case >= FIRST for case in caught)
    lines = [
        "# Errors planted in the project's rules, and which world shows them",
        "",
        f"`python -m tests.oracles --mutants`: {len(caught)} of {len(found)} are caught by worlds of the frozen",
        f"engine, {sum(case < 30 for case in caught)} of them within 30 worlds, and {rare}",
        "in rare ones (`rare_worlds.py`, from 10,000 on), or, where that has no such rules, by worlds in which the two",
        "engines part or what is counted anew does (`python -m tests.campaigns.mixed_worlds`). Not caught:",
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
