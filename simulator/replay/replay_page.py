"""The page of a replay: one HTML file that needs nothing else, and no connection."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ...agents.durations import time_units
from ...agents.errors import InputError
from ..analysis.labels import placed
from ..analysis.results import Collection
from ..language.message_window import FATES
from ..report.report_page import rendered
from ..storage.dataset import Entry
from ..storage.files import put_file, writing
from ..storage.store import Store
from .animation import EPSILONS, animation
from .chosen import chosen
from .rerun import rerun

FOLDER = Path(__file__).parent
MOST_MESSAGES = 20_000
"""Messages of a run that a page carries; a later window shows what comes after them."""
MOST_AGENTS = 400
"""Agents that are shown without a word about how to see fewer."""


def write_replay(
    results: Path,
    wanted: Sequence[str] = (),
    *,
    out: Path | None = None,
    first: float | str = 0.0,
    last: float | str | None = None,
    agents: int | None = None,
    data_dir: Path | None = None,
    trust_code: bool = False,
) -> tuple[Path, list[str]]:
    """Make one or two runs of ``results/<scenario>`` again and write the page that shows them.

    Which runs says `hushnet.simulator.replay.chosen.chosen`; the page is ``results/<scenario>/replay.html`` by default.
    It shows time units, or durations such as ``80 ms``, from first to last: to the end by default, or as far as
    `MOST_MESSAGES` go; and perhaps only the first agent and those nearest to it, so many together. Python files that
    the scenario names are run if its code is trusted. Returns where the page is, and notes on what it leaves out.

    Raises `AuditFailure` if a run made again is not the one that was saved, and `InputError` if there is no such run or
    window, or it cannot be made here.
    """
    results = Path(results)
    entries = chosen(results, wanted)
    index, manifests = Store(results).index(), [entry.manifest for entry in entries]
    began, ended = (_instant(f"--{name}", text, index) for name, text in (("from", first), ("to", last)))
    window, notes = _window(entries, began or 0.0, ended, agents)
    named = Collection(pd.DataFrame(), pd.DataFrame(), manifests, [entry.run for entry in entries], index)
    animations = []
    for entry in entries:
        made = rerun(results, entry, window, agents=agents, data_dir=data_dir, trust_code=trust_code)
        animations.append(animation(made, [placed(named, path, value) for path, value in entry.grid.items()]))
    path = Path(out) if out is not None else results / "replay.html"
    text = page(animations, window, notes, str(entries[0].manifest["scenario"].get("title") or results.name))
    with writing(path):
        put_file(text.encode(), path, within=None if out is not None else results)
    return path, notes


def _window(
    entries: Sequence[Entry], first: float, last: float | None, agents: int | None
) -> tuple[tuple[float, float], list[str]]:
    """First and last instant that are shown, and what is said where that is not the end."""
    ends = [float((entry.manifest.get("totals") or {}).get("time", 0.0)) for entry in entries]
    end = max(ends)
    if not (math.isfinite(first) and 0 <= first < end) or (last is not None and not first < last):
        to = "" if last is None else f" --to {last:g}"
        raise InputError(f"--from {first:g}{to}: admissible: 0 <= from < to, and from < {end:g}, where the run ends")
    if agents is not None and agents < 2:
        raise InputError(f"--agents {agents}: must be at least 2")
    busiest, notes = 0.0, []
    shown = max(min(agents or math.inf, int(entry.manifest["topology"]["agents"])) for entry in entries)
    if shown > MOST_AGENTS:
        notes.append(f"{shown:,} agents are too many to follow one by one; --agents 60 shows the first and its nearest")
    for entry, ended in zip(entries, ends, strict=True):
        sizes = entry.manifest["topology"]["agents"]
        share = min((agents or sizes) / sizes, 1.0)
        busiest = max(busiest, share * _copies(entry) / max(ended, 1e-9))
    reach = first + MOST_MESSAGES / busiest if busiest else end
    until = min(end if last is None else last, end)
    if reach >= until:
        return (first, until), notes
    return (first, reach), [
        *notes,
        f"shown up to {reach:.4g} of {end:g} time units: a page carries about {MOST_MESSAGES:,} messages of a run; "
        "--from shows a later window, --agents fewer agents",
    ]


def _instant(option: str, text: float | str | None, index: Mapping[str, Any]) -> float | None:
    """The time units that somebody has typed."""
    if text is None:
        return None
    counted = time_units(text, index.get("time_unit"))
    try:
        return float(text) if counted is None else counted
    except ValueError:
        said = f"{option} {text}: must be a number of time units, or such as 80 ms where the scenario has a time_unit"
        raise InputError(said) from None


def _copies(entry: Entry) -> float:
    """Messages of a run, one for each link."""
    totals = entry.manifest["totals"]
    return float(sum(totals[name] for name in ("delivered", "lost", "dropped", "in_flight")))


def _grows(series: Sequence[Sequence[float | None]]) -> bool:
    """True if a curve has a positive finite value: without noise it is 0 and then infinite (None)."""
    return any(value for _, value in series)


def page(animations: Sequence[dict[str, Any]], window: tuple[float, float], notes: Sequence[str], title: str) -> str:
    """The page as HTML."""
    spent = next(
        (name for name in reversed(EPSILONS) if any(_grows(each["epsilons"][name]) for each in animations)), None
    )
    content = {
        "title": title,
        "animations": animations,
        "notes": notes,
        "paired": len({tuple(each["seeds"]) for each in animations}) == 1 and len(animations) > 1,
        "window": window,
        "spent": spent,
        "data": {"animations": list(animations), "window": window, "fates": FATES, "spent": spent},
    }
    return rendered(FOLDER, "animation.html", content, style="animation.css", scripts=["animation.js"])
