"""Where the rows of two runs part, and whether a run is the one that was logged."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from hashlib import blake2s
from itertools import zip_longest
from pathlib import Path
from typing import Any

from .engine import build
from .engine.diary import Row, digests
from .worlds import Description, world

LOGS = Path(__file__).with_name("logs")
SEED, WORLDS = 1, 500
"""What the logs were made of."""
FATES = [f"{unit} {fate}" for unit in ("links", "bytes") for fate in ("sent", "delivered", "lost", "dropped", "flying")]
FIELDS = {
    "step": ("time", "agent", "phase", "tick", "updates", "round", "versions read", "messages kept", "given"),
    "woke": ("time", "agent", "tick", "ticks read"),
    "sent": ("time", "sender", "receiver", "kind", "tick", "delay", "lost", "bytes", "vector"),
    "arrived": ("time", "receiver", "sender", "kind", "tick", "sent at", "up", "newest"),
    "record": ("time", "final", "activations", "tally", "updates", "states", "quiet edges"),
    "end": ("time", "why"),
    "tally": ("messages", "vectors", "overtaken", "start vectors", *FATES),
    "charges": ("agent", "mechanism", "multiplier", "epsilon", "count"),
    "final": ("agent", "updates", "blocks"),
}
"""What the fields of a row are called."""
SINGLE = ("woke", "sent", "arrived")
"""Rows of single messages and wake-ups, which only an observer sees."""


def unobserved(rows: list[Row]) -> list[Row]:
    """The rows of a run that nobody observes."""
    return [row for row in rows if row[0] not in SINGLE]


def shown(row: Row | None) -> str:
    """A row in words."""
    if row is None:
        return "nothing more"
    return f"{row[0]}: " + ", ".join(f"{name} {value!r}" for name, value in zip(FIELDS[row[0]], row[1:], strict=True))


def difference(wanted: list[Row], got: list[Row], *, before: int = 3) -> str:
    """The first row in which two runs differ, with the fields that do and some rows before; empty if none does."""
    for place, (first, second) in enumerate(zip_longest(wanted, got)):
        if first == second:
            continue
        lines = [f"row {place + 1} of {len(wanted)} differs"]
        lines += [f"  both   {shown(row)}" for row in wanted[max(0, place - before) : place]]
        lines += [f"  wanted {shown(first)}", f"  got    {shown(second)}"]
        if first is not None and second is not None and first[0] == second[0]:
            pairs = zip(FIELDS[first[0]], first[1:], second[1:], strict=True)
            lines.append("  fields " + ", ".join(name for name, a, b in pairs if a != b))
        return "\n".join(lines)
    return ""


def compare(description: Description, engine: str) -> str:
    """Where an engine of the project parts from the frozen one, observed or not; empty if nowhere.

    Of the forms of `steps.FORMS`, with the description's protocol as `declared` has it.
    """
    from . import declared, product, steps

    if engine in steps.FORMS:
        stated = declared.declared(description)
        wanted = declared.run(stated)
        found = difference(wanted, steps.run(stated, engine, observed=True))
        # Without an observer windows are longer, and rounds that lose nothing run without events.
        return found or difference(unobserved(wanted), steps.run(stated, engine))
    return difference(build.run(description), product.run(description))


def name_of(description: Description) -> str:
    """A short name of a description, by which it shows whether the generator has changed."""
    return blake2s(json.dumps(description, sort_keys=True).encode(), digest_size=4).hexdigest()


def logged_digests() -> list[list[Any]]:
    """Of every logged world: name of its description, digest of all rows, and by agent (``run``: of the run's own)."""
    return _read("digests.json.xz")["worlds"]


def full_logs() -> Iterator[tuple[Description, list[Row]]]:
    """Descriptions and all rows of some worlds."""
    for entry in _read("full.json.xz")["worlds"]:
        yield entry["description"], [_row(row) for row in entry["rows"]]


def logged(rows: list[Row]) -> list[Any]:
    """Digests of a run, as they are logged."""
    every, own = digests(rows)
    return [every, {"run" if agent is None else str(agent): name for agent, name in own.items()}]


def against_log(case: int, rows: list[Row], log: list[Any]) -> str:
    """What of a logged world a run does not reproduce; empty if all of it is there."""
    description = world(SEED, case)
    if name_of(description) != log[0]:
        return f"case {case}: the generator draws another world than was logged"
    every, own = logged(rows)
    if [every, own] == log[1:]:
        return ""
    others = [agent for agent in {*own, *log[2]} if own.get(agent) != log[2].get(agent)]
    return f"case {case}: rows of {', '.join(sorted(others)) or 'nobody, but their order'} differ from the log"


def _read(name: str) -> Any:
    return json.loads(lzma.decompress((LOGS / name).read_bytes()))


def write(name: str, content: Any) -> int:
    """Write a log; its size in bytes."""
    packed = lzma.compress(json.dumps(content, separators=(",", ":")).encode(), preset=9 | lzma.PRESET_EXTREME)
    LOGS.mkdir(exist_ok=True)
    return (LOGS / name).write_bytes(packed)


def _row(value: Any) -> Any:
    """Rows have tuples where files have lists."""
    return tuple(_row(item) for item in value) if isinstance(value, list) else value
