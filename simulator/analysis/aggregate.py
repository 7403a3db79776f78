"""Runs to the numbers of a figure or table: means and t intervals over runs, on a common axis.

An interval treats the runs of a series as independent, so it describes what changes between seeds and nothing else.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ...agents.errors import InputError
from ..storage.files import Frame
from .results import Collection

COUNTS = ("activations", "messages", "vectors", "bytes")
WITH_START = {"vectors_with_start": "vectors", "messages_with_start": "messages"}
"""Counts that include what agents exchanged before their start, every start vector as a message of its own."""

CURVE_AXES = ("time", *COUNTS, *WITH_START, "updates", "epochs")
PREFERRED = ("gap", "value", "mean", "worst")
"""Statistics of a metric that stand for it where the one asked for, or none, is recorded."""

ALIASES = {"gap": "objective", "epsilon": "epsilon_verified"}


class NothingRecorded(InputError):
    """Runs hold nothing of what is asked for, as luck or data decided."""


FEWEST = 3
"""Runs from which an interval is shown or judged by: of two it says next to nothing."""


def data_sets(collection: Collection) -> str:
    """Say on how many data sets runs were made, if some share one, so that intervals speak of no others; else empty."""
    seeds = {(manifest.get("data_seed"), manifest.get("run_seed")) for manifest in collection.manifests}
    data = len({seed for seed, _ in seeds})
    return "" if data == len(seeds) else f" on {data} data set{'' if data == 1 else 's'}"


def power_near(values: ArrayLike) -> int:
    """The exponent of a power of 2 near the largest finite one of some values; 0 where there is none.

    In units of that power sums and squares of exploded objectives do not overflow, and no digit changes.
    """
    sizes = np.abs(np.asarray(values, dtype=np.float64))
    return int(np.frexp(np.max(sizes, where=np.isfinite(sizes), initial=0.0))[1])


def mean_interval(values: ArrayLike, level: float = 0.95) -> tuple[Any, Any, Any]:
    """Mean, half-width of Student's two-sided t interval, and number of runs, along the first axis.

    Of (n,) or (n, k) values NaN marks a run that does not count; the half-width is NaN where fewer than two count, the
    mean where none does.
    """
    table = np.asarray(values, dtype=np.float64)
    n = np.sum(~np.isnan(table), axis=0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.nansum(table, axis=0) / n
        deviation = np.sqrt(np.nansum((table - mean) ** 2, axis=0) / (n - 1))
        half = special.stdtrit(n - 1, 0.5 + level / 2) * deviation / np.sqrt(n)
    return mean, np.where(np.isfinite(mean) & (n > 1), half, np.nan)[()], n


def share_interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float, float, int]:
    """Mean of (n,) values in [0, 1], both ends of the score interval of a share (Wilson 1927), and number of values.

    A value is 1 for a success, 0 for none, one half for a tie; NaN does not count. Unlike a t interval it lies in [0,
    1], and has a width even where all values are the same. A tie as half a success makes it too wide rather than too
    narrow.

    >>> [round(float(number), 4) for number in share_interval([1.0] * 8 + [0.0] * 2)]
    [0.8, 0.4902, 0.9433, 10.0]
    """
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    n = len(known)
    if n == 0:
        return np.nan, np.nan, np.nan, 0
    share, z = float(known.mean()), float(special.ndtri(0.5 + level / 2))
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return share, float(np.clip(centre - half, 0.0, share)), float(np.clip(centre + half, share, 1.0)), n


def wins(mine: ArrayLike, theirs: ArrayLike, *, more_is_better: bool) -> NDArray[np.float64]:
    """Score (n,) values against the others of their pairs: 1 if better, 0 if worse, one half for a tie, NaN if unknown.

    Values that differ by a relative 1e-9 at most are a tie: what is equal on paper may differ by rounding.

    >>> wins([1.0, 2.0, 3.0], [2.0, 2.0, 2.0], more_is_better=True)
    array([0. , 0.5, 1. ])
    """
    left, right = np.asarray(mine, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    ahead = left > right if more_is_better else left < right
    won = np.where(np.isclose(left, right, rtol=1e-9, atol=0.0), 0.5, ahead)
    return np.where(np.isnan(left) | np.isnan(right), np.nan, won)


def resolve(collection: Collection, y: str, statistic: str | None = None) -> tuple[str, str]:
    """Metric and statistic that a name stands for in the recorded trace; raises `NothingRecorded` if there is none."""
    if y in COUNTS or y in WITH_START:
        return y, ""
    recorded = collection.trace[["metric", "statistic"]].drop_duplicates()
    metrics = set(recorded["metric"])
    metric = y if y in metrics else ALIASES.get(y, y)
    if y == "epsilon" and metric not in metrics:
        metric = "epsilon_claimed"
    if metric not in metrics:
        known = unknown(y, [*metrics, *COUNTS])
        raise NothingRecorded(f"figures: y {y!r} was not recorded{known}", field=("figures",))
    known = list(recorded.loc[recorded["metric"] == metric, "statistic"])
    wanted = "gap" if y == "gap" else statistic
    if wanted in known:
        return metric, str(wanted)
    if wanted not in (None, "mean"):
        complaint = f"figures: statistic {wanted!r} of {metric} was not recorded{unknown(str(wanted), known)}"
        raise NothingRecorded(complaint, field=("figures",))
    return metric, next((name for name in PREFERRED if name in known), known[0])


def final_values(collection: Collection, metric: str, statistic: str) -> Frame:
    """Last recorded value of every run that reached its end: columns ``run, protocol, value`` and the grid."""
    rows = _rows(collection, metric, statistic)
    rows = rows[rows["run"].isin(collection.complete)]
    return rows.drop_duplicates("run", keep="last")[["run", "protocol", *collection.grid, "value"]]


def mean_values(collection: Collection, metric: str, statistic: str) -> Frame:
    """Mean over the records of every run that reached its end; columns as of `final_values`."""
    rows = _rows(collection, metric, statistic)
    rows = rows[rows["run"].isin(collection.complete)]
    means = rows.groupby("run", sort=False)["value"].mean()
    ends = rows.drop_duplicates("run", keep="last")[["run", "protocol", *collection.grid]]
    return ends.assign(value=ends["run"].map(means))


def series(table: Frame, protocols: Iterable[str], splits: list[str]) -> Iterator[tuple[tuple[Any, ...], Frame]]:
    """Rows by protocol and splits; protocols in the order given, splits in the order of the rows.

    A split that is not set is `numpy.nan`, that very object, so that keys with it can be looked up.
    """
    for protocol in protocols:
        rows = table[table["protocol"] == protocol]
        if splits:
            for key, group in rows.groupby(splits, sort=False, dropna=False):
                yield (
                    (protocol, *(np.nan if isinstance(part, float) and np.isnan(part) else part for part in key)),
                    group,
                )
        elif len(rows):
            yield (protocol,), rows


def time_scale(time_unit: Any) -> tuple[float, str]:
    """Factor and unit of a time axis: ``30 s`` gives (30.0, "s"), nothing gives (1.0, "expected wake-ups")."""
    if time_unit in (None, ""):
        return 1.0, "expected wake-ups"
    match = re.fullmatch(r"\s*([-+.\deE]*?)\s*([^\W\d_]*)\s*", str(time_unit))
    try:
        return (float(match[1] or 1.0), match[2] or "s") if match else (1.0, str(time_unit))
    except ValueError:
        return 1.0, str(time_unit)


def _rows(collection: Collection, metric: str, statistic: str) -> Frame:
    """Rows of a metric, in means where protocols' numbers differ in scale alone (see `Kinds`)."""
    trace = collection.trace
    if metric in COUNTS or metric in WITH_START:
        rows = trace.drop_duplicates(["run", "time", "activations"])
        return rows.assign(value=_counted(collection, rows, metric))
    rows = trace[(trace["metric"] == metric) & (trace["statistic"] == statistic)]
    divisors = collection.kinds.ruling(metric).divisors
    return rows.assign(value=rows["value"] / rows["run"].map(divisors).fillna(1.0)) if divisors else rows


def curves(collection: Collection, metric: str, statistic: str, x: str) -> Frame:
    """Every recorded value with its place on a curve's axis: columns ``run, protocol, x, value`` and the grid's.

    Runs that were stopped by a limit are left out; those that broke off by themselves count as far as they came.
    """
    rows = _rows(collection, metric, statistic)
    rows = rows[~rows["run"].isin(collection.limited)]
    if x not in ("updates", "epochs"):
        return rows.assign(x=_counted(collection, rows, x))
    rows = _with_updates(collection, rows)
    return rows if x == "updates" else rows.assign(x=rows["x"] / rows["run"].map(_epochs(collection)))


def _with_updates(collection: Collection, rows: Frame) -> Frame:
    updates = _rows(collection, "updates", "mean")
    if len(updates):
        instant = ["run", "time", "activations"]
        return rows.merge(updates[[*instant, "value"]].rename(columns={"value": "x"}), on=instant)
    return rows.assign(x=rows["activations"] / rows["run"].map(collection.agents["run"].value_counts()))


def _epochs(collection: Collection) -> dict[str, float]:
    """Updates in an epoch, by run; refuse a protocol that does not say."""
    found = {}
    for run, manifest in collection.by_run.items():
        epoch = manifest.get("epoch")
        if epoch is None:
            raise InputError(
                f"{manifest['protocol']} does not say what an epoch of it is; take updates or time", field=("figures",)
            )
        found[run] = float(epoch)
    return found


def _counted(collection: Collection, rows: Frame, name: str) -> Any:
    """A column of the trace at some rows, as floats; of `WITH_START` with what was exchanged before the start."""
    if name not in WITH_START:
        return rows[name].astype(np.float64)
    return rows[WITH_START[name]].astype(np.float64) + rows["run"].map(collection.start_vectors).astype(np.float64)


def unknown(given: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that there is not: what there is, and what was probably meant."""
    names = sorted(set(known))
    near = difflib.get_close_matches(given, names, n=1)
    return f"; it must be one of {', '.join(names)}" + (f" (did you mean {near[0]}?)" if near else "")
