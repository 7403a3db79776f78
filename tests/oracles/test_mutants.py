"""Errors planted in the project's own rules are found in the worlds of the frozen engine."""

import json

import pytest

from . import judging, mutants

EVERY, FOUND = mutants.mutants(), mutants.recorded()
CAUGHT = [one for one in EVERY if FOUND.get(one.rule) is not None]


def test_every_error_can_be_planted_once_and_is_a_program():
    refused = []
    for one in EVERY:
        try:
            compile(one.planted((mutants.ROOT / one.file).read_text(encoding="utf-8")), one.rule, "exec")
        except (OSError, SyntaxError, ValueError) as error:
            refused.append(str(error))
    assert refused == []


def test_all_but_a_few_errors_are_caught_and_the_others_have_a_reason():
    assert [one.rule for one in EVERY] == list(FOUND)
    assert len({one.rule for one in EVERY}) == len(EVERY) >= 120
    assert len(CAUGHT) >= 0.95 * len(EVERY)
    assert [one.rule for one in EVERY if bool(one.excuse) == (one in CAUGHT)] == []


def test_the_page_of_results_says_what_was_found():
    assert mutants.RESULTS.read_text(encoding="utf-8") == mutants.results(EVERY, FOUND)


def shown_again(chosen, folder):
    """By rule, what shows an error in the world where it was found."""
    cases, sound = {FOUND[one.rule][1] for one in chosen}, folder / "sound.json"
    sound.write_text(json.dumps(judging.sound_digests(cases)), encoding="utf-8")
    with mutants.Copy(folder / "copy", sound) as copy:
        found = [copy.first_shown(one, [FOUND[one.rule][1]]) for one in chosen]
    return dict(zip([one.rule for one in chosen], found, strict=True))


def test_a_planted_error_shows_in_its_world_and_the_rule_as_it_stands_does_not(tmp_path):
    one = next(one for one in CAUGHT if one.rule == "the session of the higher agent wins")
    assert shown_again([one], tmp_path) == {one.rule: FOUND[one.rule]}
    engine, case = FOUND[one.rule]
    assert not judging.differs(case, engine, judging.sound_digests([case])[case])


@pytest.mark.slow
def test_planted_errors_show_where_they_were_found(tmp_path):
    chosen = CAUGHT[::20]
    assert shown_again(chosen, tmp_path) == {one.rule: FOUND[one.rule] for one in chosen}
