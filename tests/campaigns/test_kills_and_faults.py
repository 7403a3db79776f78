"""A slice of the campaigns of kills and of faults."""

from __future__ import annotations

import random

import pytest

from . import faults, kills
from .bench import close
from .operations import CHANGING, Operations

pytestmark = pytest.mark.skipif(not Operations.possible(), reason="operations are watched on Linux, with a compiler")


@pytest.fixture(scope="module", autouse=True)
def _end_the_server():
    yield
    close()


def test_killed_at_any_operation_and_run_again_it_is_as_if_nothing_had_happened(tmp_path):
    case = kills.Case(random.Random("quick"), tmp_path, jobs=1)
    case.run()
    assert case.wrong == []
    assert sum(count for what, count in kills.tally.items() if what.startswith("parent by")) == kills.KILLS


@pytest.mark.slow
def test_any_operation_may_fail_with_any_error_of_a_disk(tmp_path):
    every = [fault for fault in faults.listed("fresh", CHANGING) if fault.number > 1]
    assert len({fault.error for fault in every}) > 10
    for number, fault in enumerate(random.Random("quick").sample(every, 8)):
        folder = tmp_path / str(number)
        folder.mkdir()
        _, wrong = faults.attempt(fault, folder, False)
        assert wrong == []
