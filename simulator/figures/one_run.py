"""The run that a figure of agents or messages shows: one protocol, one seed, one place of the grid."""

from __future__ import annotations

from typing import Any

from ...agents.errors import InputError
from ..analysis.aggregate import unknown
from ..analysis.results import Collection
from ..storage.store import Store
from .figure_words import split_label
from .numbers import Spec, chosen


def run_of(collection: Collection, spec: Spec) -> tuple[str, dict[str, Any]]:
    """Id and manifest of the first run that a specification admits.

    Raises `InputError` if there is none with the seed that it asks for.
    """
    protocol, seed = chosen(collection, spec)[0], spec.get("seed")
    mine = [(r, m) for r, m in collection.by_run.items() if m["protocol"] == protocol]
    found = [(run, manifest) for run, manifest in mine if seed is None or manifest["seed"] == seed]
    if not found:
        seeds = [str(manifest["seed"]) for _, manifest in mine]
        raise InputError(f"figures: seed {seed} was not run{unknown(str(seed), seeds)}", field=("figures",))
    return found[0]


def store_of(collection: Collection) -> Store:
    """Return the store of the results' folder, which holds graphs and message logs."""
    if collection.root is None:
        raise InputError("figures: these results were not read from a folder; use load_all", field=("figures",))
    return Store(collection.root)


def run_in_words(collection: Collection, manifest: dict[str, Any]) -> str:
    """Seed and place of the grid of a run, in words."""
    grid = manifest.get("grid") or {}
    place = split_label(collection, ("", *grid.values()), list(grid))
    return f"seed {manifest['seed']}" + (f", {place}" if place else "")
