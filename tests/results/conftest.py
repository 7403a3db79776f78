"""A function that writes an experiment to disk."""

from __future__ import annotations

from functools import partial

import pytest
from hushnet.simulator.storage.store import Store

from .synthetic import FALSE, LABELS, make_run


def written_to(folder, runs=None, figures=(), *, labels=None, time_unit=None):
    """Write runs and figure specifications as an experiment below a folder, and return where it is."""
    if runs is None:
        private = {"cd_eps": FALSE}
        runs = [make_run(p, seed, privacy=private.get(p)) for seed in range(3) for p in LABELS]
    root = folder / "results" / "synthetic"
    names = [f"{k:016x}" for k in range(len(runs))]
    for name, run in zip(names, runs, strict=True):
        Store(root).save(name, run)
    labels = labels or {run.manifest["protocol"]: run.manifest["label"] for run in runs}
    Store(root).write_index(scenario="synthetic", runs=names, figures=list(figures), labels=labels, time_unit=time_unit)
    return root


@pytest.fixture
def experiment(tmp_path):
    """A function that writes an experiment below the test's folder."""
    return partial(written_to, tmp_path)
