"""What a recorder computes from a world at one instant: plain functions that change nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...agents.objectives.objectives import row_scores
from ...agents.tasks.base import Task
from ..world.world import World

Rows = Iterator[tuple[str, str, float]]
"""(metric, statistic, value)."""


def quality(task: Task, models: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) accuracy, RMSE or MSE of every agent's model on its own test rows; NaN for an agent without any."""
    table = task.test
    scores = row_scores(table, models)
    if task.metric == "accuracy":
        per_row = (np.where(scores >= 0, 1.0, -1.0) == table.labels).astype(np.float64)
    else:
        per_row = (scores - table.labels) ** 2
    means = np.where(table.counts > 0, table.sums(per_row) / np.maximum(table.counts, 1), np.nan)
    return np.sqrt(means) if task.metric == "rmse" else means


def size_bins(samples: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """Up to five bins of agents by the size of their data, with about as many agents each.

    Returns
    -------
    list of str
        Names of the bins, smallest sizes first.
    (n,) int64
        The bin of each agent.
    """
    edges = np.unique(np.quantile(samples, [0, 0.2, 0.4, 0.6, 0.8, 1.0], method="nearest"))
    lows, tops = edges[:-1], np.append(edges[1:-1] - 1, edges[-1])
    if len(edges) == 1:
        lows, tops = edges, edges
    names = [f"samples {int(low)}-{int(top)}" for low, top in zip(lows, tops, strict=True)]
    return names, np.searchsorted(lows, samples, side="right") - 1


def quantile(values: NDArray[np.float64], q: float) -> float:
    """A quantile that admits infinities."""
    return float(np.sort(values)[min(len(values) - 1, math.ceil(q * len(values)) - 1)])


def training_loss(world: World, models: NDArray[np.float64]) -> Rows:
    """Mean loss, without regulariser, of every agent's model on its own training rows, averaged over agents."""
    task = world.setting.task
    table = task.train
    sums = table.sums(task.loss.value(row_scores(table, models), table.labels))
    inhabited = table.counts > 0
    if inhabited.any():
        yield "training_loss", "mean", (sums[inhabited] / table.counts[inhabited]).mean()


def test_loss(world: World, models: NDArray[np.float64]) -> Rows:
    """Loss, without regulariser, of a test row under its owner's model."""
    task = world.setting.task
    if len(task.test.labels):
        yield "test_loss", "mean", task.loss.value(row_scores(task.test, models), task.test.labels).mean()


def traffic(world: World) -> Rows:
    """What became of the messages so far."""
    counts, links = world.traffic, world.traffic.links
    yield "traffic", "sent", links.sent
    yield "traffic", "delivered", links.delivered
    yield "traffic", "lost", links.lost
    yield "traffic", "dropped", links.dropped
    yield "traffic", "in_flight", links.in_flight
    yield "traffic", "overtaken", counts.overtaken
    yield "traffic", "start_vectors", counts.start_vectors


def ages(world: World) -> NDArray[np.float64]:
    """(E,) how old is what the tail of each directed edge knows of its head; NaN where it never heard of it.

    It is NaN for exchanges in pairs: what an agent gets there is used at once, and its inbox says nothing of its age.
    """
    if world.traits.exchange == "pairwise":
        return np.full(len(world.setting.graph.heads), np.nan)
    for times in world.inbox.sent_at.values():
        return np.where(np.isfinite(times), world.now - times, np.nan)
    return np.full(len(world.setting.graph.heads), np.nan)


def age(world: World) -> Rows:
    """How old is what agents know of their neighbours, over all links that were ever heard."""
    every = ages(world)
    heard = every[~np.isnan(every)]
    if len(heard):
        yield "age", "mean", heard.mean()
        yield "age", "q90", quantile(heard, 0.9)
        yield "age", "worst", heard.max()


def updates(world: World) -> Rows:
    """How many steps agents have completed."""
    counts = world.updates
    yield "updates", "mean", counts.mean()
    yield "updates", "min", counts.min()
    yield "updates", "max", counts.max()
