"""Every run of the experiment as a row, with where its files are; and the scenario's own figures."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..analysis.results import Collection
from ..figures.figure_files import named_figures
from ..storage.files import no_links, own_bytes
from .charts import number
from .grid import Grid
from .naming import axis_name, metric_name

MOST_ROWS = 2000
MOST_BYTES = 6 * 2**20
"""Bytes of all pictures together."""
SHOWN = ("png", "svg")


def runs(collection: Collection, grid: Grid, finals: dict[str, Any], values: list[dict[str, float]]) -> dict[str, Any]:
    """The table of runs, with each run's measures, in their order.

    The first two measures of `hushnet.simulator.report.charts.finals` have columns.
    """
    shown = finals["metrics"][:2]
    rows = []
    for series in grid.series:
        for run in series.runs:
            manifest = collection.manifests[run]
            name = collection.runs[run].partition("#")[0]
            rows.append(
                {
                    "label": collection.labels[series.protocol],
                    "at": grid.texts(series),
                    "ranks": ",".join(map(str, series.at)),
                    "seed": manifest.get("seed"),
                    "status": manifest.get("status", ""),
                    "cells": [_text(values[run].get(metric["id"])) for metric in shown],
                    "seconds": f"{(manifest.get('timings') or {}).get('seconds', 0.0):.2f}",
                    "run": name,
                }
            )
    more = len(rows) - MOST_ROWS
    return {"columns": [metric["name"] for metric in shown], "rows": rows[:MOST_ROWS], "more": max(more, 0)}


def _text(value: float | None) -> str:
    if value is None or value != value:
        return "\N{EN DASH}"
    known = number(value)
    return "never" if known is None else f"{known:.5g}"


def pictures(collection: Collection, folder: Path) -> list[dict[str, str]]:
    """The scenario's own figures, as they were drawn beside the results, as far as the page may carry them."""
    found, size = [], 0
    for name, spec in named_figures(collection):
        for ending in SHOWN:
            path = folder / "figures" / f"{name}.{ending}"
            no_links(path, folder)
            if not path.is_file() or size + path.stat().st_size > MOST_BYTES:
                continue
            content = own_bytes(path)
            size += len(content)
            kind = "image/png" if ending == "png" else "image/svg+xml"
            text = f"data:{kind};base64,{base64.b64encode(content).decode()}"
            found.append({"name": name, "title": _title(collection, spec, name), "source": text})
            break
    return found


def _title(collection: Collection, spec: Mapping[str, Any], name: str) -> str:
    """Title of a figure: the scenario's own, else what it shows over what, else its file's name."""
    if spec.get("title") or not (spec.get("y") and spec.get("x")):
        return str(spec.get("title") or name)
    return f"{metric_name(str(spec['y']))} by {axis_name(collection, str(spec['x']))}"
