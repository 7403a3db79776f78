"""Labels and units of metrics and of swept parameters: a style's first, then what registries and schema say."""

from __future__ import annotations

from typing import Any

from ..metrics import metric_of
from ..metrics.costs import LABELS
from ..storage.dataset import word_for
from .results import Collection


def words_of(name: str) -> str:
    """Return the label of a metric or an axis, with its unit; what nobody has labelled by its name."""
    metric = metric_of(name)
    return LABELS.get(name, name) if metric is None else metric.words


def named(collection: Collection, path: str, usual: str, *, unit: bool = True) -> str:
    """Return the label of a swept parameter, with its unit: the figures' style's if it has one, else the default."""
    label = word_for(path, (collection.index.get("style") or {}).get("labels")) or usual
    measured = swept_unit(collection, path) if unit else ""
    said = _scaled(collection, measured) or measured
    return f"{label} ({said})" if said else label


def _scaled(collection: Collection, unit: str) -> str:
    """A unit with the length of a time unit, as in ``time units of 10 s``; empty without one."""
    scale = collection.index.get("time_unit")
    return f"{unit} of {scale}" if scale and unit.endswith(("time unit", "time units")) else ""


def swept_name(collection: Collection, path: str, *, whole: bool = False) -> str:
    """Return what a table calls a swept parameter: as the style says, or the last part of its path, or the whole.

    Its unit is that of the style, or how long a time unit is where the scenario says so.
    """
    styled = {name: (collection.index.get("style") or {}).get(name) for name in ("labels", "units")}
    label, unit = (word_for(path, words) for words in styled.values())
    unit = unit or _scaled(collection, swept_unit(collection, path))
    return (label or (path if whole else path.rpartition(".")[2])) + (f" ({unit})" if unit else "")


def plain_name(metric: str) -> str:
    """Return a metric's name in the trace; of a function in a file the label that it was given, with its unit."""
    own = metric_of(metric) if ":" in metric else None
    return metric if own is None or not own.label else own.words


def column_name(collection: Collection, metric: str, statistic: str = "") -> str:
    """Return what a table calls a metric: as the style says, or as a user has described it, or by its name."""
    label = word_for(metric, (collection.index.get("style") or {}).get("labels")) or plain_name(metric)
    return f"{label} {statistic}" if statistic in ("gap", "worst") else label


def swept_unit(collection: Collection, path: str) -> str:
    """Return the unit of a swept parameter, from the figures' style, else the schema; empty without a unit."""
    said = word_for(path, (collection.index.get("style") or {}).get("units"))
    if said is not None or path not in collection.grid:
        return said or ""
    from ..language.described import unit_of  # which loads all protocols, and most figures have no such axis

    found = dict.fromkeys(unit_of(path, manifest.get("scenario") or {}) for manifest in collection.manifests)
    return next(filter(None, found), "")


def placed(collection: Collection, path: str, value: Any) -> str:
    """Describe a grid point's coordinate: the label of a swept parameter, its value and its unit."""
    unit = swept_unit(collection, path)
    return f"{named(collection, path, short(path), unit=False)} {shown(value)}" + (
        f" {_scaled(collection, unit) or unit}" if unit else ""
    )


def short(path: str) -> str:
    """Return the default label of a swept parameter: the end of its path, with the part that it belongs to.

    Fields of a protocol stand alone; of a latency or another part by kinds, ``mean`` alone would say little.
    """
    parts = path.split(".")
    return " ".join(parts[-2:] if len(parts) > 2 and parts[0] != "protocols" else parts[-1:]).replace("_", " ")


def shown(value: Any) -> str:
    """A value of a sweep, a number without noise."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
