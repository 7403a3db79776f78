"""Tier A, for releases over sampled rows: no row takes part more often than the probability that is charged.

One row of every agent, the first or the last, is changed, and the run is led along the same noisy values: a row took
part in a release if its exact value changes. Only "more often" is looked for, as a row of slope 0 takes part unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...agents.tables import Table
from ...agents.tasks.base import Task
from ..contract.noise_tests import Check
from .noise import Array
from .pairs import FAR
from .worlds import Subject

MOST = 2000
"""Draws that are looked at, evenly spread over all."""


def sampling_checks(subject: Subject, seeds: Sequence[int | None]) -> list[Check]:
    """How often the first and the last row of every agent take part; nothing where no rows are sampled.

    Parameters
    ----------
    subject : Subject
    seeds : sequence of int or None
        Luck of the runs; None is that of the scenario's own first run.
    """
    found = []
    for name in ("first", "last"):
        seen = [pair for seed in seeds for pair in _taken(subject, name, seed)]
        if not seen:
            return []
        some = np.array(seen)[np.linspace(0, len(seen) - 1, min(len(seen), MOST)).astype(np.int64)]
        count, shares = int(some[:, 0].sum()), some[:, 1]
        p = float(_law_of_count(shares)[count:].sum())
        said = f"it took part in {count} releases, where {shares.sum():.1f} are charged for"
        found.append(Check(f"sampling of the {name} row", len(some), min(1.0, p), said))
    return found


def _taken(subject: Subject, name: str, seed: int | None) -> list[tuple[bool, float]]:
    """Tell for every release over sampled rows whether a row took part, and with which probability it should."""
    recording = subject.record(subject.task, seed=seed)[1]
    if all(draw.release.sampling == 1 for draws in recording.draws.values() for draw in draws):
        return []
    other = subject.led(_changed(subject.task, last=name == "last"), recording, seed=seed)
    return [
        (one.exact.tobytes() != two.exact.tobytes(), one.release.sampling)
        for agent, draws in sorted(recording.draws.items())
        for one, two in zip(draws, other.draws[agent], strict=False)
        if one.release.sampling < 1
    ]


def _changed(task: Task, *, last: bool) -> Task:
    """Another task: one row of every agent is as long as the longest, and its label is turned.

    Where the choice of rows depends on labels, one of the two then takes part more often than others.
    """
    features, labels, table = task.train.features.copy(), task.train.labels.copy(), task.train
    places = np.where(last, table.offsets[1:] - 1, table.offsets[:-1])[table.counts > 0]
    lengths = np.linalg.norm(features, axis=1)
    along = np.where(lengths[places, None] > 0, features[places], 1.0)
    features[places] = along * ((lengths.max(initial=0.0) or FAR) / np.linalg.norm(along, axis=1, keepdims=True))
    labels[places] = np.where(labels[places] == 0, 1.0, -labels[places])
    return replace(task, train=Table(features, labels, table.offsets))


def _law_of_count(shares: Array) -> Array:
    """(n + 1,) probabilities of how many of n independent events occur."""
    law = np.ones(1)
    for share in shares.tolist():
        law = np.append(law * (1 - share), 0.0) + np.append(0.0, law * share)
    return law
