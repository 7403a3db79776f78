"""The list of planted mistakes is long enough, and each of them changes what a run does."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from . import KINDS, LIST, Form, planted
from .cases import CASES, seen


@cache
def _usual(case: str, form: Form):
    return seen(CASES[case], form)


def test_there_are_at_least_60_mistakes_and_five_of_each_kind():
    counts = Counter(mutation.kind for mutation in LIST.values())
    assert sum(counts.values()) >= 60
    assert {kind: counts[kind] for kind in KINDS if counts[kind] < 5} == {}


WIDER = {"planned-noise-shared-by-a-batch"}
"""Mistakes that show in batches of several agents only, which the contract makes and these worlds do not."""


@pytest.mark.parametrize("name", sorted(set(LIST) - WIDER))
def test_a_mistake_changes_what_a_run_does(name):
    mutation = LIST[name]
    usual = _usual(mutation.case, mutation.form)
    assert len(usual) > 1, f"{mutation.case} ends with {usual[0]}"
    with planted(mutation.plant):
        changed = seen(CASES[mutation.case], mutation.form)
    assert changed != usual
    assert "TypeError" not in str(changed[0]), "what is planted is no program any more"


def test_mistakes_are_taken_out_again():
    for mutation in LIST.values():
        with planted(mutation.plant):
            pass
    for name, case in CASES.items():
        assert seen(case) == _usual(name, "one by one")


def test_a_mistake_is_planted_only_where_there_is_something():
    with pytest.raises(AttributeError), planted(lambda plant: plant.put(Counter, "no_such_thing", None)):
        pass
