"""Every operation of ``hushnet run`` with a file fails once, or from then on, with every error of a disk.

``python -m tests.campaigns.faults [--seed 0] [--first 0] [--cases 100000] [--replay 17]``. Cases are numbered by what
fails, and made in an order that the seed draws, in parts if need be. A command ends with exit code 5 and one sentence,
or goes on where it can do without what failed; a place that may not be written, and a file that may not be read, may
also be a wrong argument (2). What was complete stays as it was, nothing is half written, and the same command gives the
same bytes afterwards.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hushnet.agents.scratch import STRAY

from . import small
from .bench import bench, close
from .campaign import campaign, exit_with
from .forked import Ended
from .operations import CHANGING, KINDS, name_of

LOOKING = tuple(kind for kind in KINDS if kind not in CHANGING)
NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
ONCE = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
    errno.ETIMEDOUT, *NOT_ALLOWED, 0,
)  # fmt: skip
EVER = (errno.ENOSPC, errno.EIO, errno.EROFS)
READ = (errno.EIO, errno.ESTALE, errno.EACCES, errno.EMFILE)
STAGES = {"fresh": "least", "repaired": "least", "tuned": "tuned", "own": "own"}
"""Scenarios by what is done with them: from nothing, or over a folder in which a run and the dataset are damaged."""
ALL_ERRORS = ("fresh", "repaired")
"""Where every operation fails with every error; elsewhere with one after the other."""


@dataclass(frozen=True)
class Fault:
    """What fails: the operation of a number among those of some kinds, how, and whether all that follow do, too."""

    stage: str
    kinds: tuple[str, ...]
    number: int
    error: int
    ever: bool


def place(stage: str, folder: Path) -> tuple[Path, Path]:
    """A scenario and its results' folder, as they are before anything fails."""
    out, name = folder / "out", STAGES[stage]
    if stage == "repaired":
        shutil.copytree(bench().results(name), out)
        next(iter(sorted(out.glob("[0-9a-f]*/trace.parquet")))).unlink()
        (out / "dataset" / "dataset.json").write_text("{}")
    return small.write(folder, name), out


def faults() -> list[Fault]:
    """All cases."""
    return [fault for stage in STAGES for kinds in (CHANGING, LOOKING) for fault in listed(stage, kinds)]


def listed(stage: str, kinds: tuple[str, ...]) -> Iterator[Fault]:
    """Cases of a stage whose operations of some kinds fail."""
    here = bench()
    here.undisturbed(STAGES[stage])
    folder = here.folder / f"{stage}-{len(kinds)}"
    folder.mkdir()
    scenario, out = place(stage, folder)
    here.operations.watch(folder, kinds)
    assert here.server.run(small.arguments(scenario, out)).code == 0
    here.operations.rest()
    once, ever = (ONCE, EVER) if kinds == CHANGING else (READ, ())
    for number in range(1, here.operations.count + 1):
        if kinds == CHANGING and stage in ALL_ERRORS:
            yield from (Fault(stage, kinds, number, error, ever=False) for error in once)
            yield from (Fault(stage, kinds, number, error, ever=True) for error in ever)
        else:
            yield Fault(stage, kinds, number, once[number % len(once)], ever=False)


def attempt(fault: Fault, folder: Path, loud: bool) -> tuple[str, list[str]]:
    """Have something fail, look, and run the same command again."""
    here = bench()
    expected = here.undisturbed(STAGES[fault.stage])
    scenario, out = place(fault.stage, folder)
    here.operations.watch(folder, fault.kinds)
    here.operations.fail(fault.number, fault.error, ever=fault.ever)
    ended = here.server.run(small.arguments(scenario, out))
    here.operations.rest()
    failed = here.operations.failed.replace(str(folder), "")
    what = f"{fault.stage}: operation {fault.number} ({failed}), {name_of(fault.error)}{' from then on' * fault.ever}"
    wrong = judge(fault, ended)
    there: dict[Path, bytes] = {}
    try:
        there = small.runs(out)
        if ended.code == 0:
            wrong += [
                f"then {one}" for one in small.different(expected, out) if not optional(one) and not made_good(one)
            ]
    except AssertionError as error:
        if fault.stage != "repaired":  # which begins with half a run
            wrong.append(str(error))
    again = here.server.run(small.arguments(scenario, out))
    if again.code:
        wrong.append(f"resume ends with code {again.code}: {again.said[-300:]}")
    else:
        wrong += [f"after the resume {one}" for one in small.different(expected, out) if not optional(one)]
        now = small.runs(out)
        wrong += [f"{path.name} was written anew" for path in there if now.get(path) != there[path]]
    if loud:
        print(f"{what}: code {ended.code}: {ended.said}\nagain: code {again.code}: {again.said}")
    return f"{fault.stage}: {ended.code}", [f"{what}: {one}" for one in wrong]


def judge(fault: Fault, ended: Ended) -> list[str]:
    """What is wrong with how a command ended."""
    wrong = []
    codes = {0, 5, 2} if fault.error in NOT_ALLOWED or fault.kinds == LOOKING else {0, 5}
    if ended.code not in codes:
        wrong.append(f"ends with code {ended.code}: {ended.said[-400:]}")
    elif ended.code and len(ended.said.strip().splitlines()) != 1:
        wrong.append(f"says {len(ended.said.strip().splitlines())} lines: {ended.said[-400:]}")
    if "Traceback" in ended.said + ended.out:
        wrong.append(f"shows a traceback: {ended.said[-600:]}")
    return wrong


def optional(difference: str) -> bool:
    """Whether results may do without it: what a cache keeps is computed again where somebody asks for it."""
    return difference.startswith(".cache/") and difference.endswith("is lost")


def made_good(difference: str) -> bool:
    """Whether the next run sees to it: strays, and a scenario that could not be read twice."""
    stray = STRAY.fullmatch(difference.removesuffix(" is left over").split("/")[0])
    return stray is not None or difference == "origin/scenario.yaml is different"


if __name__ == "__main__":
    try:
        code = campaign("faults", attempt, cases=100_000, listed=faults, here=True)
    finally:
        close()
    exit_with(code)
