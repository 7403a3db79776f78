"""The frozen engine does what was logged, the project's engines do what it does, and a broken rule shows."""

import pytest

from . import compare, planted, product, steps
from .engine import build
from .rare_worlds import LAST, LATER, rare
from .worlds import world

LOGGED = compare.logged_digests()
QUICK, SLOW = range(60), range(60, len(LOGGED))
EVENT = range(40)
"""Worlds on the event engine."""
SEED = compare.SEED
PLANNED = [*range(20), 105]
"""Worlds whose steps are planned; in the last one a start tells more than it is charged for."""


RARE = [*range(6), 121, *range(LATER, LATER + 6), LATER + 8, LAST, *range(LAST + 2, LAST + 6)]
"""Rare worlds; in 121 the run ends by a departure, at the instant at which messages arrive, in the last one an agent
without neighbours ends by a step that would have something to say to each."""


def frozen_parts_from_log(cases):
    return [f for case in cases if (f := compare.against_log(case, build.run(world(SEED, case)), LOGGED[case]))]


def parts(cases, engine):
    return [f"case {case}: {f}" for case in cases if (f := compare.compare(world(SEED, case), engine))]


def test_the_frozen_engine_reproduces_what_was_logged_event_by_event():
    logs = list(compare.full_logs())
    assert len(logs) == 20
    for description, rows in logs:
        assert compare.difference(rows, build.run(description)) == ""


def test_the_frozen_engine_reproduces_the_digest_of_every_agent():
    assert len(LOGGED) == 500
    assert frozen_parts_from_log(QUICK) == []


@pytest.mark.slow
def test_the_frozen_engine_reproduces_all_digests():
    assert frozen_parts_from_log(SLOW) == []


def test_the_event_engine_does_what_was_logged():
    found = {case: compare.against_log(case, product.run(world(SEED, case)), LOGGED[case]) for case in EVENT}
    assert [compare.compare(world(SEED, case), "event") or log for case, log in found.items() if log] == []


@pytest.mark.slow
def test_the_event_engine_is_the_frozen_one_in_all_worlds():
    assert parts(range(len(EVENT), len(LOGGED)), "event") == []


@pytest.mark.parametrize("form", steps.FORMS)
def test_planned_steps_read_send_and_are_charged_as_if_they_were_made_one_by_one(form):
    assert parts(PLANNED, form) == []


@pytest.mark.parametrize("form", ["event", *steps.FORMS])
def test_rare_worlds_are_those_of_the_frozen_engine(form):
    assert [found for case in RARE if (found := compare.compare(rare(case), form))] == []


@pytest.mark.slow
@pytest.mark.parametrize("form", ["event", *steps.FORMS])
def test_all_rare_worlds_are_those_of_the_frozen_engine(form):
    cases = (*range(200), *range(LATER, LATER + 200), *range(LAST, LAST + 70))
    assert [found for case in cases if (found := compare.compare(rare(case), form))] == []


@pytest.mark.slow
@pytest.mark.parametrize("form", steps.FORMS)
def test_planned_steps_do_as_those_of_the_frozen_engine_in_all_worlds(form):
    assert parts(range(len(LOGGED)), form) == []


def test_a_difference_is_told_by_its_first_row_and_fields():
    rows = build.run(world(SEED, 0))
    place = next(k for k, row in enumerate(rows) if row[0] == "arrived")
    late = [*rows[:place], (*rows[place][:-1], not rows[place][-1]), *rows[place + 1 :]]
    told = compare.difference(rows, late)
    assert told.startswith(f"row {place + 1} of {len(rows)} differs")
    assert told.endswith("fields newest")
    assert compare.difference(rows, rows[:-1]).endswith("got    nothing more")


def test_planted_errors_are_caught_where_they_were_found():
    errors, cases = planted.planted(), planted.recorded_cases()
    assert [error.rule for error in errors] == list(cases)
    caught = [error for error in errors if cases[error.rule] is not None]
    assert len(caught) >= 160
    assert len({error.rule for error in errors}) == len(errors)
    sound = {case: log[1:] for case, log in enumerate(LOGGED)}
    later = {case for case in cases.values() if case is not None} - sound.keys()
    sound |= {case: compare.logged(build.run(world(SEED, case))) for case in later}
    shown = {error.rule: planted.shows(error, cases[error.rule], sound[cases[error.rule]]) for error in caught}
    assert [rule for rule, seen in shown.items() if not seen] == []


def test_a_broken_rule_shows_against_the_event_engine_and_is_gone_afterwards():
    error = next(error for error in planted.planted() if error.rule == "acknowledgements have even luck")
    case = planted.recorded_cases()[error.rule]
    with planted.plant(error):
        assert "fields" in compare.compare(world(SEED, case), "event")
    assert compare.compare(world(SEED, case), "event") == ""


def test_the_readme_has_the_table_of_planted_errors():
    text = planted.README.read_text(encoding="utf-8")
    assert planted.with_table(text) == text
