"""Accuracy, RMSE and whatever else tasks are judged by: agents' models on their own test rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...agents.criteria import CRITERIA, Criterion
from ...agents.quantity import CENTRAL, OWN, Quantity
from .metric import Metric, Reading, Rows, register

if TYPE_CHECKING:
    from ...agents.tables import Table
    from ...agents.tasks.task import Task

ZERO = "zero model"


def quality(task: Task, models: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the task's criterion of every agent's model on its own test rows; NaN for an agent without any."""
    from ...agents.objectives.row_sums import RowSums

    criterion = CRITERIA[task.metric]
    return _of_sums(criterion, task.test, RowSums(task.test, criterion.number, task.model).at(models))


def _of_sums(criterion: Criterion, table: Table, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return criterion.of_mean(np.where(table.counts > 0, sums / np.maximum(table.counts, 1), np.nan))


def size_bins(samples: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """Names of up to five bins by the size of data, with about as many agents each, and the (n,) bin of each agent."""
    edges = np.unique(np.quantile(samples, [0, 0.2, 0.4, 0.6, 0.8, 1.0], method="nearest"))
    lows, tops = edges[:-1], np.append(edges[1:-1] - 1, edges[-1])
    if len(edges) == 1:
        lows, tops = edges, edges
    names = [f"samples {int(low)}-{int(top)}" for low, top in zip(lows, tops, strict=True)]
    return names, np.searchsorted(lows, samples, side="right") - 1


def models_judged(task: Task) -> str:
    """Models that a number over samples judges: every agent's own, or the model of one agent."""
    return OWN if task.columns is None else CENTRAL


def trivial(task: Task) -> dict[str, float]:
    """Values of trivial predictions, by name: mean over the agents with test samples.

    For classes these are ``majority class`` (of all training samples) and ``own majority class`` (of every agent's);
    for real-valued labels the zero model, ``overall mean`` and ``own mean``. Empty where there are no test samples.
    """
    criterion, table = CRITERIA[task.metric], task.test
    if not len(table.labels):
        return {}
    inhabited = table.counts > 0
    sums_of = lambda constants: table.sums(criterion.per_row(constants[table.owners], table.labels))  # noqa: E731
    return {
        name: float(_of_sums(criterion, table, sums_of(constants))[inhabited].mean())
        for name, constants in _constants(task, criterion)
    }


def _constants(task: Task, criterion: Criterion) -> list[tuple[str, NDArray[np.float64]]]:
    """(n,) predictions of trivial predictors, one for all of an agent's rows."""
    everybody, labels, counts = np.ones(task.agents), task.train.labels, task.train.counts
    if criterion.classes:
        overall, own = _majorities(task)
        return [("majority class", overall * everybody), ("own majority class", own)]
    overall = float(labels.mean()) if len(labels) else 0.0
    found = [(task.zero_is, 0.0 * everybody), ("overall mean", overall * everybody)]
    if task.zero_is == ZERO:
        own = np.where(counts > 0, task.train.sums(labels) / np.maximum(counts, 1), overall)
        found.append(("own mean", own))
    return found


def _majorities(task: Task) -> tuple[float, NDArray[np.float64]]:
    """The most frequent label of all training rows, and (n,) of each agent's; the former where it has as many rows."""
    names = np.array([-1.0, 1.0]) if task.classes == 2 else np.arange(task.classes, dtype=np.float64)
    counts = np.stack([task.train.sums((task.train.labels == name).astype(np.float64)) for name in names])
    total = counts.sum(axis=1)
    overall = len(names) - 1 - int(total[::-1].argmax())
    counts[overall] += 0.5
    return float(names[overall]), names[counts.argmax(axis=0)]


def _rows_of(criterion: Criterion) -> Callable[[Reading], Rows]:
    """Mean, worst decile and means of agents with about as many samples, of the honest agents that have joined."""

    def rows(reading: Reading) -> Rows:
        if reading.models is None:
            return
        if criterion.name not in reading.found:
            together = reading.together or [reading]
            values = _values(together, criterion)
            known = ~np.isnan(values) & np.array([one.judged for one in together])
            if "size_bins" not in reading.kept:
                reading.kept["size_bins"] = size_bins(reading.task.train.counts)
            bins, places = reading.kept["size_bins"]
            same = bool((known == known[0]).all())
            for begin, end in [(0, len(together))] if same else [(k, k + 1) for k in range(len(together))]:
                mask = known[begin]
                found = _statistics(criterion, values[begin:end, mask], bins, places, mask)
                for one, own in zip(together[begin:end], found, strict=True):
                    one.found[criterion.name] = own
        yield from reading.found[criterion.name]

    return rows


def _statistics(
    criterion: Criterion, values: NDArray[np.float64], bins: list[str], bin_of: NDArray[np.int64], known: Any
) -> list[list[tuple[str, float]]]:
    """(statistic, value) of each of k instants from the (k, m) values of m known agents; nothing of none."""
    if not values.size:
        return [[] for _ in values]
    ranked = np.sort(np.ascontiguousarray(values), axis=1)  # whose means have the bits of each row's own
    tenth = max(1, round(values.shape[1] / 10))
    worst = np.ascontiguousarray(ranked[:, :tenth] if criterion.more_is_better else ranked[:, -tenth:])
    counts = np.bincount(bin_of[known], minlength=len(bins))
    places = bin_of[known] + len(bins) * np.arange(len(values))[:, None]
    sums = np.bincount(places.ravel(), weights=values.ravel(), minlength=len(values) * len(bins))
    there = np.flatnonzero(counts)
    means = sums.reshape(len(values), len(bins))[:, there] / counts[there]
    names = ["mean", "worst_decile", *(bins[place] for place in there.tolist())]
    columns = np.column_stack([ranked.mean(axis=1), worst.mean(axis=1), means]).tolist()
    return [list(zip(names, column, strict=True)) for column in columns]


def _per_agent(reading: Reading) -> NDArray[np.float64]:
    if reading.models is None:
        return np.full(reading.task.agents, np.nan)
    return _values([reading], CRITERIA[reading.task.metric])[0]


def _values(readings: Sequence[Reading], criterion: Criterion) -> NDArray[np.float64]:
    """(k, n) as `quality` of each; test rows are read of those agents alone whose model has changed since the last."""
    table = readings[0].task.test
    sums = [reading.row_sums(criterion.name, table, criterion.number) for reading in readings]
    return _of_sums(criterion, table, np.array(sums))


_STATISTICS = (
    r"over agent i's test rows; `mean` is {math}`\frac{1}{|H|} \sum_{i \in H} a_i` over those that have "
    "some, `worst_decile` the mean over the tenth of them with the worst values, `samples A-B` that "
    "over agents with so many training rows."
)


def metric_of_criterion(criterion: Criterion) -> Metric:
    """The metric of a criterion."""
    return Metric(
        name=criterion.name,
        better="more" if criterion.more_is_better else "less",
        compute=_rows_of(criterion),
        of_models=True,
        quantity=lambda reading: Quantity(criterion.name, "mean over agents", "test rows", models_judged(reading.task)),
        label=criterion.label,
        definition=f"{{math}}`a_i = {criterion.formula}`, {_STATISTICS}" if criterion.formula else "",
        statistics=("mean", "worst_decile"),
        low=0.0,
        high=criterion.high,
        per_agent=_per_agent,
        judge=True,
        rows="test",
        criterion=True,
        share="end" if criterion.more_is_better else "",
        baselines=trivial,
    )


def register_criterion(criterion: Criterion) -> Criterion:
    """Make a criterion, and the metric of its name, known."""
    from ...agents.criteria import register as known

    register(metric_of_criterion(known(criterion)))
    return criterion


for _criterion in CRITERIA.values():
    register(metric_of_criterion(_criterion))
