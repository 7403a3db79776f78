"""The guard that has to catch a planted mistake does: a few of each kind here, all of them where slow tests run."""

from __future__ import annotations

import pytest

from . import KINDS, LIST
from .guards import CATCHERS

QUICK = (
    "scale-halved",
    "noise-shared-by-parties",
    "fresh-noise-on-repeats",
    "scores-not-clipped",
    "scores-move-by-their-bound",
    "parties-counted-together",
    "scores-clipped-after-the-noise",
    "share-understated",
    "solitary-models-free",
    "noisy-updates-as-public",
    "start-of-one-coordinate",
    "neighbours-data-read",
)
"""Mistakes that are caught within a second or two."""


def test_the_quick_ones_are_of_every_kind_that_contract_or_audit_have_to_catch():
    of = {mutation.kind for mutation in LIST.values() if mutation.guard != "tests"}
    assert {LIST[name].kind for name in QUICK} == of
    assert of | {"composition"} == set(KINDS)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in LIST]
)
def test_a_mistake_is_caught_by_the_guard_that_has_to(name):
    mutation = LIST[name]
    assert CATCHERS[mutation.guard](mutation, mutation.form) is not None
