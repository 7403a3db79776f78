"""Tunings: every candidate that was tried, its score, and the choice."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.aggregate import mean_interval
from ..analysis.results import Collection
from ..analysis.summary import with_half_width
from ..storage.files import read_table
from .grid import value_text

ABOUT = ("protocol", "trial", "values", "seed", "score", "chosen")
"""Columns of the table of trials that are not the sweep's."""


def choices(collection: Collection, folder: Path) -> dict[str, Any] | None:
    """An account of the tuning, from the folder with the table of trials; None where nothing was tuned."""
    account = collection.index.get("tuning")
    if not account:
        return None
    seeds = account["seeds"]
    return {
        "decided_by": account["decided_by"],
        "trials": account["trials"],
        "seeds": ", ".join(map(str, seeds)),
        "budget": account.get("budget"),
        "note": f"{account['note']}{f'; {where}' if (where := account.get('tuned_at')) else ''}",
        "warnings": list(account["warnings"]),
        **_tried(collection, folder / account["table"]),
    }


def _tried(collection: Collection, path: Path) -> dict[str, Any]:
    """A row per trial: its place in the sweep, what it set, its score over seeds, and whether it was chosen."""
    if not path.exists():
        return {"grid": [], "rows": []}
    table = read_table(path)
    grid = [name for name in table.columns if name not in ABOUT]
    rows = []
    for _, group in table.groupby(["protocol", *grid, "trial"], sort=False, dropna=False):
        first = group.iloc[0]
        mean, half, _ = mean_interval(group["score"].to_numpy(np.float64))
        rows.append(
            {
                "label": collection.labels.get(first["protocol"], first["protocol"]),
                "at": [value_text(first[name]) for name in grid],
                "values": first["values"],
                "score": with_half_width(float(mean), float(half) if math.isfinite(half) else math.nan),
                "chosen": bool(first["chosen"]),
            }
        )
    return {"grid": grid, "rows": rows}
