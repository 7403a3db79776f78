"""``run`` alone catches planted mistakes, and refuses no honest protocol: a few of them quickly, all of them slowly."""

from __future__ import annotations

from collections import Counter

import pytest

from . import CASES, KINDS, Variant, ask
from .run import enough, notes_on

ALL: dict[str, Variant] = {variant.name: variant for case in CASES for variant in case.variants}
CAUGHT = (
    "stacked-ten-times/gamma/full/replace-one",
    "clips-the-mean-of-a-net/gaussian/full/replace-one",
    "offset-1e+14/gaussian/full/replace-one",
    "full-as-5-percent/gaussian/full/replace-one",
    "half-more/gaussian/poisson/replace-one",
    "with-the-first/gaussian/poisson/add-or-remove-one",
    "blocks-of-rows/gaussian/poisson/add-or-remove-one",
    "rewound/gaussian/full/replace-one",
    "late-steps-leaks/laplace/full/replace-one",
    "unsent-then-raw/gaussian/full/replace-one",
    "all-shared-raw/gaussian/full/replace-one",
    "inverse-count-sent/gamma/full/add-or-remove-one",
    "alternating/gaussian/full/add-or-remove-one",
    "jacobian-left-out/gamma/full/replace-one",
    "unclipped-zeros-0-and-2/gaussian/full/replace-one",
    "cache/laplace/full/replace-one",
    "atom/atom-laplace/full/replace-one",
)
"""One of every kind at least, each of which was once verified."""
PASSED = (
    "descent/gaussian/poisson/add-or-remove-one",
    "of-a-net/gamma/full/replace-one",
    "relaying-alone/laplace/full/replace-one",
    "objective-by-word/gamma/full/replace-one",
)


def test_every_kind_has_mistakes_and_no_two_protocols_have_one_name():
    counts = Counter(case.kind for case in CASES)
    assert set(counts) == set(KINDS)
    assert sum(counts.values()) - counts["honest"] >= 60
    assert counts["honest"] >= 20
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("name", CAUGHT)
def test_nothing_is_verified_of_a_planted_mistake(name):
    outcome = ask(ALL[name])
    assert outcome.caught, f"verified {outcome.verified:g}, and {outcome.said}"


@pytest.mark.parametrize("name", PASSED)
def test_an_honest_protocol_is_verified(name):
    outcome = ask(ALL[name])
    assert not outcome.caught, outcome.said


@pytest.mark.slow
def test_run_alone_catches_mistakes_of_every_kind_and_refuses_no_honest_protocol():
    outcomes = [ask(variant) for variant in ALL.values()]
    assert enough(outcomes), "\n".join(notes_on(outcomes))
