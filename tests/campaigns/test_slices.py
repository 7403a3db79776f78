"""The first cases of the campaigns of mutants and of data files, and that a failure among them would be seen."""

from __future__ import annotations

import random
import time

import pytest

from . import campaign, data_files, mutants


def luck(number):
    return random.Random(f"0-{number}")


def test_the_first_mutants_are_answered(monkeypatch):
    monkeypatch.setattr(mutants, "RUN", 0.0)
    made = list(campaign.one_batch(mutants.attempt, luck, range(60)))
    assert [case for case in made if case[2]] == []
    assert {"refused", "valid"} <= {outcome for _, outcome, _ in made}


def test_a_mutant_of_a_small_scenario_changes_no_other():
    scenario = next(data for data in mutants.scenarios() if data["task"]["kind"] == "linear_classification")
    before = mutants.small(scenario)
    before["task"]["samples"][1] = 10**7
    assert mutants.small(scenario)["task"]["samples"] == [4, 6]


def test_the_first_hostile_data_files_are_one_sentence_with_their_line():
    made = list(campaign.one_batch(data_files.attempt, luck, range(60)))
    assert [case for case in made if case[2]] == []
    assert {f"{name} refused" for name in data_files.LOADERS} <= {outcome for _, outcome, _ in made}


@pytest.mark.parametrize(
    ("main", "wrong"),
    [
        (lambda _: 1 // 0, "raises ZeroDivisionError"),
        (lambda _: 70, "was not foreseen"),
        (lambda _: 2, "says nothing"),
        (lambda _: print("line\n" * 40), "ends with code None"),
    ],
)
def test_what_is_no_answer_is_a_failure(main, wrong):
    assert any(wrong in what for what in campaign.command([], main=main)[2])


def test_a_case_that_ends_its_process_is_a_failure_and_the_others_go_on():
    def attempt(rng, folder, loud):
        if rng.random() < 0.5:
            raise SystemExit
        return "done", []

    made = list(campaign.forked(attempt, luck, range(6)))
    assert [number for number, _, _ in made] == list(range(6))
    assert {outcome for _, outcome, _ in made} == {"done", "lost"}


def test_a_command_that_waits_for_ever_hangs_and_one_that_works_does_not(monkeypatch):
    monkeypatch.setattr(campaign, "PATIENCE", 1)

    def work(_):
        end = time.process_time() + 1.2
        while time.process_time() < end:
            pass
        return 0

    assert campaign.command([], main=lambda _: time.sleep(3600) or 0)[2] == ["hangs"]
    assert campaign.command([], main=work)[2] == []


def test_a_case_whose_process_sleeps_for_good_is_a_failure(monkeypatch):
    monkeypatch.setattr(campaign, "PATIENCE", 2)

    def attempt(number, folder, loud):
        if number == 1:
            time.sleep(3600)
        return "done", []

    assert [case[1] for case in campaign.forked(attempt, int, range(3))] == ["done", "lost", "done"]
