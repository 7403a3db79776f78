"""A function that writes an experiment to disk."""

from __future__ import annotations

import shutil

import pytest
from hushnet.simulator.storage.store import Store

from .synthetic import FALSE, LABELS, make_run, write


def written_to(folder, runs=None, figures=(), **options):
    """Write runs and figure specifications as an experiment below a folder, and return where it is."""
    if runs is None:
        private = {"cd_eps": FALSE}
        runs = [make_run(p, seed, privacy=private.get(p)) for seed in range(3) for p in LABELS]
    return write(folder / "results" / "synthetic", runs, figures=figures, **options)


@pytest.fixture(scope="session")
def usual(tmp_path_factory):
    """The experiment of the usual runs, which is written once."""
    return written_to(tmp_path_factory.mktemp("usual"))


@pytest.fixture
def experiment(tmp_path, usual):
    """A function that writes an experiment below the test's folder."""

    def write(runs=None, figures=(), **options):
        if runs is not None or options:
            return written_to(tmp_path, runs, figures, **options)
        root = shutil.copytree(usual, tmp_path / "results" / "synthetic", dirs_exist_ok=True)
        Store(root).write_index(**{**Store(root).index(), "figures": list(figures)})
        return root

    return write
