"""Sentences at the end of ``hushnet run``, told from manifests: engines, sessions, rounds, where data come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

SESSIONS = {
    "finished": "finished",
    "void": "void",
    "refused": "refused",
    "given_up": "given up",
    "open": "still open",
}
"""What may become of a session, in totals and in words."""


def engines(manifests: Sequence[dict[str, Any]]) -> str:
    """Name of the engine that ran, with the reason; by protocol where engines differ."""
    ran: dict[str, list[str]] = {}
    for manifest in manifests:
        labels = ran.setdefault(_engine(manifest), [])
        if manifest["label"] not in labels:
            labels.append(manifest["label"])
    if len(ran) == 1:
        return next(iter(ran))
    return "; ".join(f"{engine} for {', '.join(labels)}" for engine, labels in ran.items())


def _engine(manifest: dict[str, Any]) -> str:
    """A run's engine, with the form of its steps where that is known and not said with it."""
    engine, form = manifest.get("engine", "event"), (manifest.get("form") or {}).get("steps")
    return f"{engine}; steps in Python" if form == "python" and "step" not in engine.partition(",")[0] else engine


def fates(manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Counts of pairwise sessions, and of rounds that did not all go as planned: a line per protocol, for all runs."""
    sums: dict[str, Counter[str]] = {}
    for manifest in manifests:
        sums.setdefault(manifest["label"], Counter()).update(manifest.get("totals") or {})
    lines = []
    for label, total in sums.items():
        opened = int(total["sessions_opened"])
        if opened:
            other = ", ".join(f"{total[f'sessions_{name}']:,} {word}" for name, word in SESSIONS.items())
            lines.append(f"{label}: {opened:,} sessions opened, {other}; {total['sessions_skipped']:,} calls skipped")
        begun, repeated = int(total["rounds_begun_without_all"]), int(total["messages_repeated"])
        finished, planned = int(total["rounds_finished"]), int(total["rounds_planned"])
        if begun or repeated or finished < planned:
            done = (
                f"{finished:,} of {planned:,} planned rounds finished" if planned else f"{finished:,} rounds finished"
            )
            lines.append(f"{label}: {done}, {begun:,} begun without all messages; {repeated:,} messages repeated")
    return lines


def source_line(task: Mapping[str, Any]) -> str | None:
    """Source of a task's data, and their checksum or that there is none; None for data that were not published."""
    notes = task["notes"]
    if "as_published" not in notes and "not_verified" not in notes:
        return None
    parts = [f"data: {notes['source']}"]
    if "as_published" in notes:
        known = "as published" if notes["as_published"] else "not the published file"
        parts.append(f"md5 {notes['md5']} ({known})")
    if "not_verified" in notes:
        parts.append(f"{' and '.join(notes['not_verified'])} not verified (no checksum is published)")
    return ", ".join(parts)


def as_published(task: Mapping[str, Any]) -> bool:
    """True unless a file that takes the place of a published data set differs from it."""
    return bool(task["notes"].get("as_published", True))
