"""A function that writes an experiment to disk."""

from __future__ import annotations

from functools import partial

import pytest

from .synthetic import FALSE, LABELS, make_run, write


def written_to(folder, runs=None, figures=(), **options):
    """Write runs and figure specifications as an experiment below a folder, and return where it is."""
    if runs is None:
        private = {"cd_eps": FALSE}
        runs = [make_run(p, seed, privacy=private.get(p)) for seed in range(3) for p in LABELS]
    return write(folder / "results" / "synthetic", runs, figures=figures, **options)


@pytest.fixture
def experiment(tmp_path):
    """A function that writes an experiment below the test's folder."""
    return partial(written_to, tmp_path)
