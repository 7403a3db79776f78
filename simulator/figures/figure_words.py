"""Texts of a figure: labels of axes and series, and a caption with the number of runs behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...agents.tasks.task_names import is_stand_in
from ..analysis.aggregate import data_sets, time_scale
from ..analysis.claimed_privacy import EPSILON, MARK, PASSED, ClaimedPrivacy, briefly, claim_of, epsilon_text
from ..analysis.labels import named, placed, short, words_of
from ..analysis.results import Collection
from ..language.figure_kinds import FIGURE_KINDS
from ..metrics.epsilon import EPSILONS, PAIRS
from .intervals import FEW, scale_of
from .numbers import Plot, Spec, chosen, subset
from .series_style import literal

ASIDES = {"worst": "worst agent", "worst_decile": "worst decile", "mean": "", "value": "", "sent": ""}
"""What is said about a statistic."""


class Label(NamedTuple):
    """Legend entry of a series."""

    text: str
    """The series' protocol and grid point."""
    claim: ClaimedPrivacy | None = None
    """Claimed and verified epsilons; None without privacy, or where they are not to be shown."""
    stopped: str = ""
    """Note on runs that broke off; empty if none did."""

    @property
    def loud(self) -> bool:
        """True if the entry must be visible: runs broke off, or a claim does not hold."""
        return bool(self.stopped) or (self.claim is not None and self.claim.flagged > 0)

    def said(self, *, full: bool = True) -> str:
        """The lines of the legend; of epsilons in full, or only that a claim does not hold."""
        claim = self.claim.text if self.claim is not None and full else ""
        mark = f" {MARK}" if self.claim is not None and self.claim.flagged and not full else ""
        return "\n".join(filter(None, [f"{self.text}{mark}", claim, self.stopped]))


COUNTS = ("vectors", "messages", "bytes")
"""Axes that count from the start on, without what agents exchanged before it."""


def axis_label(collection: Collection, name: str) -> str:
    """Return the label of an axis, with its unit and what it does not count."""
    unit = time_scale(collection.index.get("time_unit"))[1]
    if name == "time":
        return f"time ({unit})"
    if name == "time_to_target":
        return f"time to target ({unit})"
    if name == "protocol":
        return ""
    default = short(name) if name in collection.grid else words_of(name)
    return literal(named(collection, name, default)) + not_counted(collection, name)


def not_counted(collection: Collection, name: str) -> str:
    """Return the note, in brackets, that start vectors are not counted; empty where no run has any."""
    counts = name.removesuffix("_to_target") in COUNTS
    return " (start vectors not counted)" if counts and collection.started_with_vectors else ""


def value_label(
    collection: Collection, metric: str, statistic: str, *, baseline: str | None = None, wins: bool = False
) -> str:
    """Return the label of a metric's axis or colour bar."""
    if metric == "objective":
        said = {"gap": "objective gap $Q-Q^*$", "value": "objective $Q$"}.get(statistic, f"objective, {statistic}")
    else:
        detail = ASIDES.get(statistic, statistic)
        name = axis_label(collection, metric)
        said = f"{name}, {literal(detail)}" if detail else name
    if baseline is None:
        return said
    other = literal(collection.labels[baseline])
    return f"share of wins over\n{other} ({said})" if wins else f"{said}\nminus that of {other}"


def series_label(collection: Collection, key: tuple[Any, ...], splits: Sequence[str], *, claims: bool = True) -> Label:
    """Label of a series: its protocol, where it stands in the grid, what it claims, and what broke off.

    A claim that does not hold is said even where others are left out.
    """
    grid = dict(zip(splits, key[1:], strict=True))
    places = collection.places[collection.places["protocol"] == key[0]]
    for path, value in grid.items():
        places = places[places[path] == value]
    runs = subset(collection, set(places["run"])).manifests
    text = collection.labels[key[0]]
    if grid:
        text += f", {split_label(collection, key, splits)}"
    claim = claim_of(runs)
    stopped = sum(manifest.get("status") != "complete" for manifest in runs)
    broken = f"{MARK} {stopped} of {len(runs)} runs broke off" if stopped else ""
    return Label(text, claim if claim and (claims or claim.flagged) else None, broken)


def split_label(collection: Collection, key: tuple[Any, ...], splits: Sequence[str]) -> str:
    """Describe a series' grid point by its values of the parameters that split the series."""
    return ", ".join(placed(collection, path, value) for path, value in zip(splits, key[1:], strict=True))


def caption(
    plots: Sequence[Plot], spec: Spec, collection: Collection, labels: Sequence[Label], *, full: bool = True
) -> str:
    """Return the caption below the panels: the meaning of the marks, stand-in data, and grounds of epsilons.

    Where the legend, of these labels, does not show epsilons in full, the caption says once that a claim does not hold.
    """
    flagged = [label.claim for label in labels if label.claim is not None and label.claim.flagged and not full]
    largest = max((max(claim.verified, default=0.0) for claim in flagged), default=0.0)
    claims = f"{MARK} claims less {EPSILON} than is verified (up to {epsilon_text(largest)})" if flagged else ""
    contracts = _contracts(collection, chosen(collection, spec), failed_only=not full)
    marks = [
        _marks(plots, spec, collection),
        _kinds(plots, collection),
        _changing(plots, collection),
        _fixed(plots),
        claims,
    ]
    marks += contracts
    return "\n".join(filter(None, [stand_in(collection), "; ".join(filter(None, marks))]))


def _kinds(plots: Sequence[Plot], collection: Collection) -> str:
    """Return the note on protocols whose objectives differ in scale or are of unknown kind; empty if none is needed."""
    ruling = collection.kinds.ruling(plots[0].metric)
    return "divided to means" if ruling.normalised else "of one kind? runs do not say" if ruling.doubts else ""


def _changing(plots: Sequence[Plot], collection: Collection) -> str:
    """Return the note that a metric is a different function at each value of a sweep; empty if it is the same."""
    axes = {(plot.metric, path): None for plot in plots for path in collection.grid if path in (plot.x, *plot.splits)}
    found = [path.rpartition(".")[2] for metric, path in axes if collection.kinds.changes_along(metric, path)]
    return f"another function at each {' and '.join(dict.fromkeys(found))}" if found else ""


def _fixed(plots: Sequence[Plot]) -> str:
    shown = any(plot.kind == "curve" and plot.metric in (*EPSILONS, PAIRS.name) for plot in plots)
    return f"each {EPSILON} holds at a time fixed in advance" if shown else ""


def stand_in(collection: Collection) -> str:
    """Name the data that are stand-ins for published ones, according to the runs' manifests; empty if none are."""
    names = dict.fromkeys(str((manifest.get("task") or {}).get("name")) for manifest in collection.manifests)
    return "; ".join(name for name in names if is_stand_in(name))


def _contracts(collection: Collection, protocols: Sequence[str], *, failed_only: bool) -> list[str]:
    """List the contract's verdicts on private protocols of one's own, and on others where it has not passed."""
    texts: dict[str, list[str]] = {}
    for manifest in collection.manifests:
        contract = manifest.get("contract") or {}
        passed = contract.get("status") in ("passed", "shipped")
        ours = contract.get("status") == "shipped"  # has passed in our own tests
        if contract and not ours and manifest["protocol"] in protocols and (manifest.get("privacy") or not passed):
            # Reasons are long: why it failed is among the warnings.
            said = "failed" if contract["status"] == "failed" else str(contract["text"])
            texts.setdefault(collection.labels[manifest["protocol"]], []).append(said)
    found: dict[str, dict[str, None]] = {}
    for label, said in texts.items():
        for text in briefly(said):
            found.setdefault(text, {})[label] = None
    everywhere = len(found) == 1
    if failed_only:
        found = {text: labels for text, labels in found.items() if not text.startswith(PASSED)}
    return [
        f"privacy contract {'' if everywhere else 'of ' + ', '.join(labels) + ' '}{text}"
        for text, labels in found.items()
    ]


def _marks(plots: Sequence[Plot], spec: Spec, collection: Collection) -> str:
    if plots[0].note or "n" not in plots[0].points:
        return "; ".join(dict.fromkeys(plot.note for plot in plots))
    counts = [int(n) for plot in plots for n in (plot.points["n"].min(), plot.points["n"].max())]
    if max(counts) == 1:
        return "one run"
    most = f"{max(counts)} runs{data_sets(collection)}"
    runs = f"n = {most}" if min(counts) == max(counts) else f"n = {min(counts)} to {most}"
    kind, wins, paired = plots[0].kind, bool(spec.get("wins")), spec.get("baseline") is not None
    means = "mean paired difference" if paired else "mean"
    if wins:
        means = "paired wins (a tie counts one half)"
    scales = dict.fromkeys(filter(None, (scale_of(plot.within) for plot in plots)))
    level = "95%" if spec.get("interval") in (None, "seeds") else str(spec["interval"])
    method = "score" if wins else "t"
    aside = f" ({' and '.join(scales)} scale)" if scales and not wins else ""
    interval = f"{level}".replace("%", " %") + f" {method} interval{aside}"
    clear = FIGURE_KINDS[kind].clear
    if clear:
        known = any(plot.points["low"].notna().any() for plot in plots)
        return f"{means}, {runs}; {clear}: the {interval} is clear of 0" if known and paired else f"{means}, {runs}"
    banded = any(np.isfinite(plot.ends).any() for plot in plots)
    single = any(plot.single.any() for plot in plots)
    parts = [means, interval] if banded else [means]
    if single:
        parts.append(f"{FIGURE_KINDS[kind].seeds}{f' below {FEW} runs' if banded else ''}")
    listed = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
    return f"{listed}, {runs}"
