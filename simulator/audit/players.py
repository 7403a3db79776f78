"""Who plays the trials of tier C: this process, or several; the same trials, whoever plays them."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from ...protocols import catalog
from ...protocols.user_files import is_file
from ..experiment.remote import pack
from .game import JudgedRun, trials
from .pairs import Pair
from .worlds import Subject

Rank = tuple[int, bool]
Play = Callable[[Subject, Pair, Sequence[Rank]], Iterator[JudgedRun]]

BATCHES = 8
"""Batches for every process: few enough to cost little, enough to end at about the same time."""


@contextmanager
def players(jobs: int, base: Path) -> Iterator[Play]:
    """What plays trials, in their order, on so many processes.

    Parameters
    ----------
    jobs : int
        1 is this process.
    base : Path
        Folder that the scenario's files are relative to.
    """
    if jobs == 1:
        yield lambda subject, pair, ranks: (trial for rank in ranks for trial in trials(subject, pair, [rank]))
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:

        def play(subject: Subject, pair: Pair, ranks: Sequence[Rank]) -> Iterator[JudgedRun]:
            size = max(1, -(-len(ranks) // (jobs * BATCHES)))
            files = tuple(filter(is_file, [subject.parameters.kind]))
            packed = pack((subject, pair))
            waiting = [
                pool.submit(_batch, files, base.resolve(), packed, ranks[start : start + size])
                for start in range(0, len(ranks), size)
            ]
            for one in waiting:
                yield from one.result()

        yield play


def _batch(files: tuple[str, ...], base: Path, packed: bytes, ranks: Sequence[Rank]) -> list[JudgedRun]:
    for spec in files:  # so that classes from it can be unpacked
        catalog.resolve(spec, trust_code=True, base=base)
    subject, pair = pickle.loads(packed)
    return trials(subject, pair, ranks)
