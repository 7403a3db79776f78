"""Exact counterexamples: neighbouring data sets that one message tells apart for certain.

Noise that lies in a subspace which depends on the data hides nothing. If the messages of a run lie in the subspace of
D, none of them in that of D', and those of a run on D' the other way round, the supports are disjoint: P(S) = 1 and
Q(S) = 0 for S = "lies in the subspace of D", so that no epsilon holds at any delta below 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...agents.tables import Table
from ...agents.tasks.task import Task
from ...protocols.algorithms.feature_noise import RangeNoise
from ..contract.transcript import Recording
from .worlds import Subject

Array = NDArray[np.float64]

INSIDE = 1e-6
"""Relative distance from a subspace below which a vector lies in it."""


def counterexample(subject: Subject, agent: int) -> str:
    """Return a counterexample that shows that an agent's releases hide nothing, in words; empty if none is known."""
    if not isinstance(getattr(subject.parameters, "noise", None), RangeNoise) or subject.task.columns is None:
        return ""
    own, other = subject.task, _with_another_column(subject.task, agent)
    seen = [_messages(subject.record(task)[1], agent) for task in (own, other)]
    spaces = [task.train.features[:, task.columns[agent]] for task in (own, other) if task.columns is not None]
    inside = [[distances(space, vectors) < INSIDE for space in spaces] for vectors in seen]
    if all(inside[k][k].all() and not inside[k][1 - k].any() for k in (0, 1)):
        return (
            f"all {len(inside[0][0])} messages of a run lie in the range of the party's columns, and none in that of "
            "columns of which one was changed; on those it is the other way round"
        )
    return ""


def distances(columns: Array, vectors: Array) -> Array:
    """(k,) relative distances of (N, k) vectors from the range of (N, d) columns."""
    basis, values, _ = np.linalg.svd(columns, full_matrices=False)
    basis = basis[:, values > 1e-10 * values[0]]
    gap = np.linalg.norm(vectors - basis @ (basis.T @ vectors), axis=0)
    return gap / np.maximum(np.linalg.norm(vectors, axis=0), 1e-300)


def _messages(recording: Recording, agent: int) -> Array:
    """(N, k) vectors that an agent has sent with noise."""
    steps = (step for step in recording.steps if step.agent == agent)
    vectors = [sent.vector for step in steps for sent in step.sent if sent.release.noisy]
    return np.array(vectors).T


def _with_another_column(task: Task, agent: int) -> Task:
    """Other numbers in the first column that a party holds, as large as those that it has."""
    assert task.columns is not None
    features, place = task.train.features.copy(), int(task.columns[agent][0])
    rng = np.random.default_rng(0)
    features[:, place] = rng.permutation(features[:, place]) + rng.normal(size=len(features)) / 2
    return replace(task, train=Table(features, task.train.labels, task.train.offsets))
