"""Execution of the trials of tier C in this process or in several; the trials do not depend on the choice."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path

from ...protocols import catalog
from ...protocols.user_files import is_file
from ..experiment.remote import pack
from .game import JudgedRun, trial
from .pairs import Pair
from .worlds import Subject

Rank = tuple[int, bool]
Play = Callable[[Subject, Pair, Sequence[Rank]], Iterator[JudgedRun]]

BATCHES = 8
"""Batches for every process: few enough to cost little, enough to end at about the same time."""


@contextmanager
def players(jobs: int, base: Path) -> Iterator[Play]:
    """Yield a function that makes trials on a number of processes and returns their results in order.

    One job is this process. Files of the scenario are relative to `base`.
    """
    if jobs == 1:
        yield lambda subject, pair, ranks: (trial(subject, pair, *rank) for rank in ranks)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:

        def play(subject: Subject, pair: Pair, ranks: Sequence[Rank]) -> Iterator[JudgedRun]:
            files = tuple(filter(is_file, [subject.parameters.kind]))
            one = partial(_trial, files, base.resolve(), pack((subject, pair)))
            return pool.map(one, ranks, chunksize=max(1, -(-len(ranks) // (jobs * BATCHES))))

        yield play


def _trial(files: tuple[str, ...], base: Path, packed: bytes, rank: Rank) -> JudgedRun:
    return trial(*_unpacked(files, base, packed), *rank)


@lru_cache(maxsize=1)
def _unpacked(files: tuple[str, ...], base: Path, packed: bytes) -> tuple[Subject, Pair]:
    for spec in files:  # so that classes from it can be unpacked
        catalog.resolve(spec, trust_code=True, base=base)
    return pickle.loads(packed)
