"""What predictions without any learning come to: a constant for everybody or for each agent, and the zero model.

A run's manifest has them under ``baselines``, by metric and name (read by `hushnet.simulator.analysis.baselines`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...agents.tables import Table
from ...agents.tasks.base import Task

ZERO = "zero model"


def trivial(task: Task, metrics: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """What trivial predictions come to, by metric and name.

    Parameters
    ----------
    task : Task
    metrics : tuple of str
        Those that are recorded; of which the task's own, ``training_loss`` and ``test_loss`` have baselines.

    Returns
    -------
    dict
        Of the accuracy ``majority class`` (of all training rows) and ``own majority class`` (of every agent's); of
        squared errors the zero model, ``overall mean`` and ``own mean``; of losses the zero model. Means over agents or
        rows as the metric takes them. Nothing where there are no rows.
    """
    found: dict[str, dict[str, float]] = {}
    for metric in metrics:
        if metric == task.metric and len(task.test.labels):
            found[metric] = {name: _quality(task, constants) for name, constants in _constants(task)}
        elif metric == "test_loss" and len(task.test.labels):
            found[metric] = {task.zero_is: float(_zero_losses(task, task.test).mean())}
        elif metric == "training_loss" and len(task.train.labels):
            sums, counts = task.train.sums(_zero_losses(task, task.train)), task.train.counts
            found[metric] = {task.zero_is: float((sums[counts > 0] / counts[counts > 0]).mean())}
    return found


def _constants(task: Task) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """(n,) predictions of trivial predictors, one for all of an agent's rows."""
    everybody, labels, counts = np.ones(task.agents), task.train.labels, task.train.counts
    if task.metric == "accuracy":
        overall = 1.0 if labels.sum() >= 0 else -1.0
        yield "majority class", overall * everybody
        own = task.train.sums(labels)
        yield "own majority class", np.where(own == 0, overall, np.sign(own))
        return
    yield task.zero_is, 0.0 * everybody
    overall = float(labels.mean()) if len(labels) else 0.0
    yield "overall mean", overall * everybody
    if task.zero_is == ZERO:
        yield "own mean", np.where(counts > 0, task.train.sums(labels) / np.maximum(counts, 1), overall)


def _quality(task: Task, constants: NDArray[np.float64]) -> float:
    """The task's own measure of a constant for each agent, mean over the agents with test rows."""
    table = task.test
    predicted = constants[table.owners]
    per_row = predicted == table.labels if task.metric == "accuracy" else (predicted - table.labels) ** 2
    inhabited = table.counts > 0
    means = table.sums(per_row.astype(np.float64))[inhabited] / table.counts[inhabited]
    return float((np.sqrt(means) if task.metric == "rmse" else means).mean())


def _zero_losses(task: Task, table: Table) -> NDArray[np.float64]:
    return task.loss.value(np.zeros(len(table.labels)), table.labels)
