"""Errors planted in the rules of the frozen engine, one by one, and whether comparing random worlds catches them.

Each is a rule by name, where it stands, and what is written there instead. ``python -m tests.oracles --planted`` plants
them all and writes the table of the README.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .compare import SEED, WORLDS, logged, logged_digests
from .engine import build
from .engine.diary import Diary, Row
from .worlds import world

CASES = Path(__file__).with_name("planted.json")
"""By rule, the first world in which it shows; null if in none."""
TABLE = Path(__file__).with_name("planted.csv")
README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- planted: begin -->", "<!-- planted: end -->"
TRIED = 2000
"""Worlds on which an error is looked for that does not show in those of the logs."""
NO_EXCUSE = "it shows only where too many rare things meet"
STEPS = 100_000
"""SimPy events of a run, far above what any sound one needs."""


@dataclass(frozen=True)
class Planted:
    """One planted error.

    Parameters
    ----------
    part, rule : str
        What is broken.
    where : str
        ``module:function`` or ``module:Class.method`` within the frozen engine.
    old, new : str
        What stands there, once, and what stands there instead.
    excuse : str
        Why no comparison can catch it, if so.
    """

    part: str
    rule: str
    where: str
    old: str
    new: str
    excuse: str = ""


def planted() -> list[Planted]:
    """All of them."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = [{key: value.replace("\\n", "\n") for key, value in row.items()} for row in csv.DictReader(file)]
    return [Planted(**row) for row in rows]


@contextmanager
def plant(error: Planted) -> Iterator[None]:
    """Break a rule for a while."""
    name, path = error.where.split(":")
    package = __name__.rsplit(".", 1)[0] + ".engine"
    module = importlib.import_module(f"{package}.{name}")
    *owners, function = path.split(".")
    owner: Any = module
    for part in owners:
        owner = getattr(owner, part)
    before = inspect.getattr_static(owner, function)
    text = textwrap.dedent(inspect.getsource(before.fget if isinstance(before, property) else before))
    assert text.count(error.old) == 1, (error.rule, text.count(error.old))
    made: dict[str, Any] = {}
    exec(
        compile("from __future__ import annotations\n" + text.replace(error.old, error.new), error.rule, "exec"),
        vars(module),
        made,
    )
    holders = [owner]
    if owner is module:  # others may have imported it by name
        every = [m for key, m in sys.modules.items() if key.startswith(package)]
        holders = [m for m in every if vars(m).get(function) is before]
    for holder in holders:
        setattr(holder, function, made[function])
    try:
        yield
    finally:
        for holder in holders:
            setattr(holder, function, before)


def attempt(description: dict[str, Any]) -> list[Row] | str:
    """The rows of a run that may be broken, or the error that it raised."""
    diary = Diary()
    try:
        world = build.world_of(description, diary)
        step, count = world.env.step, iter(range(STEPS))

        def counted() -> None:
            next(count)
            step()

        world.env.step = counted  # type: ignore[method-assign]
        return build.run_world(world, diary)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def recorded_cases() -> dict[str, int | None]:
    """By rule, the first case that catches it, as it was found."""
    return json.loads(CASES.read_text(encoding="utf-8"))


def shows(error: Planted, case: int, sound: list[Any]) -> bool:
    """Whether a planted error shows in a world; ``sound`` are the digests of its sound run."""
    with plant(error):
        rows = attempt(world(SEED, case))
    return isinstance(rows, str) or logged(rows) != sound


def sound_digests(cases: int) -> list[list[Any]]:
    """Digests of sound runs: the logs, and beyond them what the frozen engine does."""
    known = [log[1:] for log in logged_digests()]
    return known + [logged(build.run(world(SEED, case))) for case in range(len(known), cases)]


def renew() -> int:
    """Plant every error, and write down which world catches it, here and in the README."""
    sound = sound_digests(TRIED)
    found = recorded_cases() if CASES.exists() else {}
    for error in planted():
        before = found.get(error.rule)
        if before is None or not shows(error, before, sound[before]):
            tried = range(len(sound) if not error.excuse else WORLDS)
            found[error.rule] = next((case for case in tried if shows(error, case, sound[case])), None)
        print(f"{'-' if found[error.rule] is None else found[error.rule]:>4}  {error.rule}", flush=True)
    found = {error.rule: found[error.rule] for error in planted()}
    CASES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def with_table(text: str) -> str:
    """The README with the table of what was found."""
    found = recorded_cases()
    caught = [rule for rule, case in found.items() if case is not None]
    early = sum(found[rule] < WORLDS for rule in caught)
    lines = [
        f"{len(caught)} of {len(found)} planted errors are caught, {early} of them on the {WORLDS} worlds of the logs, "
        f"the others on one of the {TRIED - WORLDS} after them. Not caught:",
        "",
    ]
    lines += [f"- {e.rule}: {e.excuse or NO_EXCUSE}" for e in planted() if found[e.rule] is None]
    lines += ["", "| part | rule that was broken | first world that shows it |", "| --- | --- | ---: |"]
    lines += [f"| {e.part} | {e.rule} | {'-' if found[e.rule] is None else found[e.rule]} |" for e in planted()]
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n".join(["", *lines, ""]) + END + rest.split(END)[1]
