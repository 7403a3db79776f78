"""Numbers of one metric that are not of one kind, told apart by name."""

from __future__ import annotations

from dataclasses import replace

from .comparability import EPSILON, Kinds
from .results import Collection

OF = " of "
"""Between a metric and the protocol whose kind it is, where kinds are set apart."""


def set_apart(collection: Collection, first: str | None = None) -> Collection:
    """A collection in which every metric is of one kind: numbers of another kind are a metric of their own name.

    The `first` protocol's numbers keep the metric's name; by default, the first in drawing order's. Epsilons are not
    set apart: they stand beside what they are claimed for wherever they are shown.
    """
    kinds = collection.kinds if first is None else Kinds(collection, first)
    trace = collection.trace
    for metric in kinds.metrics:
        ruling = kinds.ruling(metric)
        if not ruling.apart or metric.startswith(EPSILON):
            continue
        speakers = {kind: key for key, kind in list(ruling.kinds.items())[::-1]}  # the first protocol of each kind
        names = {key: f"{metric}{OF}{speakers[ruling.kinds[key]]}" for key in ruling.apart}
        there = (trace["metric"] == metric) & trace["protocol"].isin(list(names))
        trace = trace.assign(metric=trace["metric"].where(~there, trace["protocol"].map(names)))
    return collection if trace is collection.trace else replace(collection, trace=trace)


def own_name(metric: str) -> str:
    """A metric's own name, whichever protocol's kind `set_apart` has put beside it."""
    return metric.partition(OF)[0]
