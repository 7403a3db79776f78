"""Training and test loss of agents' models, without regulariser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...agents.quantity import Quantity
from .criterion_metrics import models_judged
from .metric import Metric, Reading, Rows, register

if TYPE_CHECKING:
    from ...agents.tables import Table
    from ...agents.tasks.task import Task


def training_loss(reading: Reading) -> Rows:
    """Mean loss, without regulariser, of every agent's model on its own training rows, averaged over agents."""
    table = reading.task.train
    inhabited = (table.counts > 0) & reading.judged
    if reading.models is not None and inhabited.any():
        sums = reading.row_sums("training_loss", table, reading.task.loss.value)
        yield "mean", (sums[inhabited] / table.counts[inhabited]).mean()


def test_loss(reading: Reading) -> Rows:
    """Loss, without regulariser, of a test row under its owner's model."""
    from ...agents.objectives.objectives import row_scores

    task, judged = reading.task, reading.judged[reading.task.test.owners]
    if reading.models is not None and judged.any():
        yield (
            "mean",
            task.loss.value(row_scores(task.test, reading.models, task.model), task.test.labels)[judged].mean(),
        )


def _zero_losses(task: Task, table: Table) -> NDArray[np.float64]:
    outputs = 1 if task.model is None else task.model.outputs
    scores = np.zeros((len(table.labels), outputs))
    return task.loss.value(scores if outputs > 1 else scores[:, 0], table.labels)


def _zero_on_training_rows(task: Task) -> dict[str, float]:
    sums, counts = task.train.sums(_zero_losses(task, task.train)), task.train.counts
    return {task.zero_is: float((sums[counts > 0] / counts[counts > 0]).mean())} if len(task.train.labels) else {}


def _zero_on_test_rows(task: Task) -> dict[str, float]:
    return {task.zero_is: float(_zero_losses(task, task.test).mean())} if len(task.test.labels) else {}


register(
    Metric(
        name="training_loss",
        better="less",
        compute=training_loss,
        of_models=True,
        quantity=lambda reading: Quantity(
            f"{reading.task.loss.name} loss", "mean over agents", "training rows", models_judged(reading.task)
        ),
        label="training loss",
        definition=(
            r"{math}`\frac{1}{|H|} \sum_{i \in H} \frac{1}{m_i} \sum_{k=1}^{m_i} \varphi(s_{ik}, y_{ik})`, over "
            "training rows: the mean over agents of each one's mean loss, without regulariser."
        ),
        statistics=("mean",),
        low=0.0,
        judge=True,
        rows="training",
        baselines=_zero_on_training_rows,
    )
)
register(
    Metric(
        name="test_loss",
        better="less",
        compute=test_loss,
        of_models=True,
        quantity=lambda reading: Quantity(
            f"{reading.task.loss.name} loss", "mean over rows", "test rows", models_judged(reading.task)
        ),
        label="test loss",
        definition=(
            r"{math}`\sum_{i \in H} \sum_k \varphi(s_{ik}, y_{ik}) \, / \sum_{i \in H} m_i`, over test rows: the "
            "mean over rows, without regulariser."
        ),
        statistics=("mean",),
        low=0.0,
        judge=True,
        rows="test",
        baselines=_zero_on_test_rows,
    )
)
