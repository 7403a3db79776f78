"""State of an experiment as somebody else sees it: whether it goes on, runs done of all, time left, the latest run."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ...agents.errors import InputError
from ...agents.input_files import read_bytes
from ..analysis.results import no_run
from ..experiment.time_left import in_words
from ..storage.store import Store
from .log import FILE

_BEGIN = re.compile(r"(\S+Z) INFO \S+: (\d+) runs?, ")
_ENDED = re.compile(r"(\S+Z) (?:INFO|WARNING) (.*?): (complete in|there already|\w+: )(.*)")
KEPT = ("complete", "there")
"""How runs end that leave a folder: while it is there, they are done."""
_LEFT = re.compile(r", ([^,]+) left, ")


@dataclass
class _Logged:
    """A command's part of ``run.log``: all its runs, those that have ended, and the time left when the latest had."""

    runs: int
    latest: datetime | None = None
    words: str = ""
    left: str = ""
    ended: Counter[str] = field(default_factory=Counter[str])


def status(folder: Path, now: datetime | None = None) -> list[str]:
    """Return sentences about an experiment, read from its folder while it goes on or afterwards; nothing is written.

    Times are told from now, or from another instant. Raises `InputError` if it is no folder of results.
    """
    store, now = Store(folder), now or datetime.now(UTC)
    attempt, holder = _latest(folder), store.holder() or Store(folder / "tuning").holder()
    if attempt is None:
        there = len(list(folder.glob("*/manifest.json")))
        if not there and holder is None:
            raise no_run(folder)
        goes_on = "nobody is writing there" if holder is None else f"{holder} is writing there"
        return [f"{folder}: {there} runs are there, and {goes_on}"]
    ended, of_all = attempt.ended.total(), f"of {attempt.runs} runs"
    wrong = sum(count for status, count in attempt.ended.items() if status not in KEPT)
    failed = f", {wrong} of them not to their end (see {FILE})" if wrong else ""
    if holder is not None:
        lines = [f"{folder}: running, {ended} {of_all} done{failed}", holder]
    elif ended == attempt.runs:
        lines = [f"{folder}: done, {ended} {of_all}{failed}"]
    else:
        lines = [f"{folder}: stopped after {ended} {of_all}{failed}; the same command goes on from there"]
    if attempt.latest is not None:
        ago = in_words((now - attempt.latest).total_seconds())
        left = f", with {attempt.left} to go" if attempt.left and holder is not None else ""
        lines.append(f"latest: {attempt.words}, {ago} ago{left}")
    return lines


def _latest(folder: Path) -> _Logged | None:
    found = None
    try:
        text = read_bytes(folder / FILE, links=False).decode(errors="replace")
    except InputError:
        return None
    for line in text.splitlines():
        if begin := _BEGIN.match(line):
            found = _Logged(int(begin[2]))
        elif found and (ended := _ENDED.match(line)):
            found.latest, found.words = _instant(ended[1]), ended[2]
            found.left = left[1] if (left := _LEFT.search(ended[4])) else ""
            how, run = ended[3].partition(" ")[0].rstrip(":"), ended[4].rpartition(", ")[2]
            kept = how not in KEPT or any((place / run).is_dir() for place in (folder, folder / "tuning"))
            found.ended[how] += kept
    return found


def _instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
