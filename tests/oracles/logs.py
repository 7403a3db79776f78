"""Writes the logs: what the project's event engine did at the commit that the frozen engine is from."""

from __future__ import annotations

from collections.abc import Callable

from . import compare, product
from .engine.diary import Row
from .worlds import Description, world

COMMIT = "28e5bf1aea5a3b4d751e287c582513ec76662884"
SHORTEST, LONGEST = 100, 900
"""Rows of a world whose log is kept in full."""

Asked = Callable[[Description, list[Row]], bool]
WANTED: list[Asked] = [
    lambda d, _: d["protocol"]["name"] == "star",
    lambda d, _: d["protocol"]["name"] == "talk" and d["schedule"] is None and d["protocol"]["inbox"] == "every",
    lambda d, _: bool(d["protocol"].get("echo")),
    lambda d, _: d["network"]["latency"]["kind"] == "gamma",
    lambda d, _: d["network"]["latency"]["kind"] == "matrix" and d["network"]["loss"]["kind"] == "gilbert_elliott",
    lambda d, _: d["availability"]["joins"] is not None and d["protocol"]["name"] == "talk",
    lambda d, _: d["clock"]["kind"] == "recorded" and d["availability"]["leaves"] is not None,
    lambda d, _: _rounds(d, "resend_after") and d["availability"]["kind"] == "on_off",
    lambda d, _: _rounds(d, "resend_after") and d["availability"]["kind"] == "trace",
    lambda d, _: _rounds(d, "resend_after") and d["network"]["loss"].get("probability", 0) > 0.2,
    lambda d, _: _rounds(d, "patience") and d["availability"]["kind"] == "diurnal",
    lambda d, _: _rounds(d, "patience") and bool(d["protocol"]["silent"]) and len(d["protocol"]["kinds"]) > 1,
    lambda d, _: d["protocol"]["name"] == "talk" and d["protocol"]["trigger"] == "round",
    lambda _, rows: any(row[0] == "end" and "Stall" in row[2] for row in rows),
    lambda d, _: d["protocol"]["name"] == "trade" and d["protocol"]["edges"],
    lambda d, _: d["protocol"]["name"] == "trade" and d["protocol"]["unanswered"] == "give_up",
    lambda d, _: d["protocol"]["name"] == "trade" and bool(d["protocol"]["refuse"]),
    lambda d, _: bool(d["protocol"]["noise"]) and d["protocol"]["name"] == "talk",
    lambda d, _: bool(d["protocol"]["noise"]) and d["protocol"]["name"] == "trade",
    lambda d, _: d["clock"]["kind"] == "periodic" and d["protocol"]["name"] == "talk",
]
"""What each of the worlds that are logged in full has to show."""


def _rounds(description: Description, remedy: str) -> bool:
    schedule = description["schedule"] or {}
    return schedule.get("kind") == "rounds" and isinstance(schedule.get(remedy), float)


def write() -> int:
    """Run all worlds on the project's event engine, and keep what happened."""
    names, runs = [], []
    for case in range(compare.WORLDS):
        description = world(compare.SEED, case)
        rows = product.run(description)
        names.append([compare.name_of(description), *compare.logged(rows)])
        runs.append((description, rows))
    full, taken = [], set()
    for wanted in WANTED:
        fits = (
            k for k, run in enumerate(runs) if k not in taken and SHORTEST <= len(run[1]) <= LONGEST and wanted(*run)
        )
        case = next(fits)
        taken.add(case)
        full.append({"case": case, "description": runs[case][0], "rows": runs[case][1]})
    made = {"commit": COMMIT, "seed": compare.SEED}
    for name, content in (("digests.json.xz", names), ("full.json.xz", full)):
        print(f"{name}: {compare.write(name, {**made, 'worlds': content}):,} bytes")
    print(f"{len(full)} in full, cases {sorted(taken)}; rows {sum(len(entry['rows']) for entry in full)}")
    return 0
