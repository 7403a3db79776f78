"""Timeline of a few agents: messages as arrows between their lanes, with steps and absences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...agents.errors import InputError
from ..analysis.aggregate import time_scale
from ..analysis.results import Collection
from ..language.message_window import DELIVERED, DROPPED, LOST, OVERTAKEN, UNDER_WAY
from ..storage.files import Frame
from .figure_words import axis_label
from .lines import Entries, Panels
from .numbers import NothingToDraw, Plot, Spec
from .one_run import run_in_words, run_of, store_of
from .series_style import ALARM, COLOURS, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = {DELIVERED: "solid", OVERTAKEN: (0, (4, 1.5)), DROPPED: "solid", UNDER_WAY: (0, (1, 1.2)), LOST: "solid"}
"""Line of a message by its fate."""

STUB = 0.42
"""How far a lost message gets: share of the way to the receiver's lane."""


def numbers(collection: Collection, spec: Spec) -> Plot:
    """The log of a run, as `MessageLog` kept it, with times in the figure's unit.

    Raises `InputError` if the run kept no messages.
    """
    run, manifest = run_of(collection, spec)
    log = store_of(collection).load(run.partition("#")[0]).extras.get("messages")
    if log is None:
        asked = "give the scenario record: {messages: {agents: 4, between: [0, 5]}} and run again"
        raise InputError(f"figures: a timeline needs the messages of the run, which were not recorded; {asked}")
    low, high = _window(manifest, spec)
    kept = log[(log["start"] <= high) & (log["end"].fillna(log["start"]) >= low)]
    if kept.empty:
        of = f"{manifest['label']}, {run_in_words(collection, manifest)}"
        raise NothingToDraw(f"figures: nothing was recorded of {of}, between {low:g} and {high:g}", field=("figures",))
    factor = time_scale(collection.index.get("time_unit"))[0]
    kept = kept.assign(start=kept["start"] * factor, end=kept["end"] * factor)
    lanes = _lanes(collection, run, kept)
    kept = kept.assign(lane=[lanes[name] for name in kept["agent"]]).reset_index(drop=True)
    return Plot("timeline", "time", "messages", "", [], kept, note=f"one run: {run_in_words(collection, manifest)}")


def draw(panels: Panels, collection: Collection, spec: Spec) -> Entries:
    """Draw a row of lanes per panel."""
    kinds = list(dict.fromkeys(kind for _, plot in panels for kind in plot.points["kind"] if kind))
    colours = {kind: COLOURS[place % len(COLOURS)] for place, kind in enumerate(kinds)}
    factor = time_scale(collection.index.get("time_unit"))[0]
    for axes, plot in panels:
        log = plot.points
        run, manifest = run_of(collection, spec)
        first, last = (factor * end for end in _window(manifest, spec))
        lanes = _lanes(collection, run, log)
        _draw_lanes(axes, log, lanes)
        for message in log[log["what"] == "message"].itertuples(index=False):
            _arrow(axes, message, lanes, colours[message.kind], (first, last))
        axes.set_xlim(first, last)
        axes.set_ylim(len(lanes) - 0.5, -0.5)
        axes.set_yticks(range(len(lanes)), [literal(name) for name in lanes])
        axes.set_xlabel(axis_label(collection, "time"))
        axes.set_ylabel("agent")
    return _entries(panels, colours)


def _lanes(collection: Collection, run: str, log: Frame) -> dict[str, int]:
    """Lane by agent: of all that are in a log, also those who only received, in the task's order."""
    names = [str(name) for name in collection.agents.loc[collection.agents["run"] == run, "agent"]]
    named = set(log["agent"]) | set(log["other"])
    return {name: lane for lane, name in enumerate(name for name in names if name in named)}


def _window(manifest: dict[str, Any], spec: Spec) -> tuple[float, float]:
    """First and last time unit that a figure shows: what it asks for, or else what was recorded."""
    low, high = spec.get("between") or manifest["scenario"]["record"]["messages"]["between"]
    return float(low), float(high)


def _draw_lanes(axes: Axes, log: Frame, lanes: dict[str, int]) -> None:
    axes.grid(False)
    axes.hlines(
        list(lanes.values()), 0, 1, transform=axes.get_yaxis_transform(), colors="#777777", linewidth=0.6, zorder=1
    )
    absent = log[log["what"] == "absence"]
    for agent, start, end in absent[["agent", "start", "end"]].itertuples(index=False):
        bar = {"height": 0.26, "left": start, "color": "#d9d9d9", "edgecolor": "#999999", "hatch": "////"}
        axes.barh(lanes[agent], end - start, linewidth=0.3, zorder=1.2, **bar)
    steps = log[log["what"] == "step"]
    own = steps["agent"].map(lanes)
    axes.hlines(own, steps["start"], steps["end"], color="black", linewidth=2, zorder=1.5)
    axes.plot(steps["end"], own, "|", color="black", markersize=6, markeredgewidth=1, zorder=4)


def _arrow(axes: Axes, message: Any, lanes: dict[str, int], colour: str, window: tuple[float, float]) -> None:
    """A message from its sender's lane to its receiver's; one that is lost gets half-way, one still under way stops."""
    top, bottom = lanes[message.agent], lanes[message.other]
    style: dict[str, Any] = {"color": colour, "linewidth": 0.8, "zorder": 3}
    if message.fate == LOST:
        end = top + STUB * np.sign(bottom - top)
        axes.plot([message.start, message.start], [top, end], **style)
        axes.plot([message.start], [end], "x", color=ALARM, markersize=4, markeredgewidth=1, zorder=5)
        return
    times = np.clip([message.start, message.end], *window)
    shares = np.interp(times, [message.start, message.end], [0, 1]) if message.end > message.start else (0, 1)
    start, end = ((time, top + share * (bottom - top)) for time, share in zip(times, shares, strict=True))
    if message.fate == UNDER_WAY or message.end > window[1]:
        axes.plot(*zip(start, end, strict=True), linestyle=LINES[UNDER_WAY], **style)
        return
    head = {"arrowstyle": "-|>,head_width=0.12,head_length=0.28", "shrinkA": 0, "shrinkB": 0, "color": colour}
    head |= {"linewidth": 0.8, "linestyle": LINES[message.fate], "alpha": 0.55 if message.fate == OVERTAKEN else 1.0}
    axes.annotate("", xy=end, xytext=start, arrowprops=head, zorder=3, annotation_clip=False)
    if message.fate == DROPPED:
        axes.plot([end[0]], [end[1]], "o", color=ALARM, markerfacecolor="none", markersize=5, zorder=5)


def _entries(panels: Panels, colours: dict[str, str]) -> Entries:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    fates = {fate for _, plot in panels for fate in plot.points["fate"]}
    for axes, plot in panels:
        ends = plot.points.loc[plot.points["what"] == "message", "end"]
        fates |= {UNDER_WAY} if (ends > axes.get_xlim()[1]).any() else set()
    entries: Entries = {kind: Line2D([], [], color=colour) for kind, colour in colours.items()}
    red: dict[str, Any] = {"color": ALARM, "linestyle": "none"}
    marks: Sequence[tuple[str, str, Any]] = (
        (OVERTAKEN, "arrived after a newer one", Line2D([], [], color="#777777", linestyle=LINES[OVERTAKEN])),
        (LOST, "lost", Line2D([], [], marker="x", markersize=4, **red)),
        (DROPPED, "receiver absent", Line2D([], [], marker="o", markerfacecolor="none", markersize=5, **red)),
        (UNDER_WAY, "still under way at the end", Line2D([], [], color="#777777", linestyle=LINES[UNDER_WAY])),
    )
    entries |= {label: handle for fate, label, handle in marks if fate in fates}
    whats = {what for _, plot in panels for what in plot.points["what"]}
    if "step" in whats:
        entries["step"] = Line2D([], [], color="black", marker="|", linestyle="none", markersize=6)
    if "absence" in whats:
        entries["absent"] = Patch(facecolor="#d9d9d9", edgecolor="#999999", hatch="////", linewidth=0.3)
    return entries
