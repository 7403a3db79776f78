"""The first cases of the campaigns of mutants and of data files, and that a failure among them would be seen."""

from __future__ import annotations

import random
import time
from types import SimpleNamespace

import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.input_files import read_bytes
from hushnet.simulator.contract.bench import small_setting, small_task

from . import campaign, data_files, environments, mutants
from .grounds import needs_what_was_drawn, noted


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


@pytest.mark.parametrize(
    ("code", "err", "wrong"),
    [
        (70, "an error that hushnet did not foresee", "was not foreseen"),
        (2, "s.yaml: no such file", "ends with code 2"),
        (5, "interrupted", "says interrupted"),
        (5, "", "says nothing"),
        (0, "Traceback (most recent call last)", "says Traceback"),
        (5, "standard output: No space left on device", ""),
    ],
)
def test_what_is_no_end_in_a_strange_environment_is_a_failure(code, err, wrong):
    found = environments.failures(environments.Ended(code, "", err, False), environments.Environment(excuses={5}), [])
    assert any(wrong in what for what in found) == bool(wrong)


def test_results_that_an_environment_changed_are_a_failure(monkeypatch, tmp_path):
    run = tmp_path / "0123456789abcdef"
    run.mkdir()
    (run / "trace.parquet").write_bytes(b"as ever")
    expected = environments.tables(tmp_path)
    monkeypatch.setattr(environments, "reference", lambda: expected)
    assert environments.missing("run", tmp_path) == []
    (run / "trace.parquet").write_bytes(b"otherwise")
    assert environments.missing("run", tmp_path) == ["0123456789abcdef/trace.parquet is another"]
    (run / "trace.parquet").unlink()
    assert environments.missing("run", tmp_path) == ["0123456789abcdef/trace.parquet is missing"]
    assert environments.missing("report", tmp_path) == ["report.html is missing"]


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


def raised(function, *given):
    with pytest.raises(InputError) as error:
        function(*given)
    return error.value


def test_a_refusal_that_needs_no_data_is_told_from_one_that_does(tmp_path):
    task, graph = small_task(), small_setting().graph

    def without(agents):
        raise InputError(f"{agents} are too few")

    def with_data(task):
        raise InputError(f"{task.agents} are too few")

    def with_a_graph(holder):
        raise InputError("are too few")

    assert not needs_what_was_drawn(raised(without, 3))
    assert needs_what_was_drawn(raised(with_data, task))
    assert needs_what_was_drawn(raised(with_a_graph, SimpleNamespace(graph=graph)))
    assert needs_what_was_drawn(raised(read_bytes, tmp_path / "missing"))


def test_what_a_command_complains_about_is_noted(tmp_path):
    path = tmp_path / "s.yaml"
    text = "task: {kind: mean_estimation, agents: 3}\ntopology: {kind: erdos_renyi, probability: 1.0e-9}\n"
    path.write_text(f"schema: 1\nscenario: s\n{text}protocols: {{a: {{kind: local}}}}\nstop: {{time: 1}}\nseeds: 1\n")
    with noted() as errors:
        assert campaign.command(["run", str(path), "--out", str(tmp_path / "out"), "--quiet"])[0] == 2
    assert [type(error) for error in errors] == [InputError]
    assert needs_what_was_drawn(errors[0])
