"""What a run will take, about: told from a table of measured steps, never timed here."""

from __future__ import annotations

import itertools
import json

import pytest
from hushnet.protocols import catalog
from hushnet.simulator.console import run_scenario
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.experiment.estimate import _duration, estimate
from hushnet.simulator.experiment.expected_time import expected_form, has_steps, round_length, seconds_of
from hushnet.simulator.experiment.step_times import Size, Steps, StepTimes, between, noise_of, rising, way_of
from hushnet.simulator.language.loading import load, shipped

SMALL = {
    "schema": 1,
    "scenario": "small",
    "task": {"kind": "linear_classification", "agents": 50, "dimension": 10},
    "topology": {"kind": "ring"},
    "network": {"latency": {"kind": "exponential", "mean": 0.2}},
    "protocols": {"cd": {"kind": "coordinate_descent"}},
    "stop": {"time": 500},
}
OWN = """
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent, CoordinateDescentParameters


class OwnParameters(CoordinateDescentParameters):
    kind: str


class Own(CoordinateDescent):
    Parameters = OwnParameters
"""


def seconds(tmp_path, **changes):
    """What the runs of a scenario take, as an estimate says."""
    total = estimate(Experiment(load({**SMALL, **changes}), tmp_path)).total
    assert not total.unknown
    return total.seconds


def test_numbers_between_points_are_linear_and_go_on_beyond_the_last_ones_only():
    axes = [[1.0, 3.0], [0.0, 10.0, 20.0]]
    values = [2.0 * x + x * y for x, y in itertools.product(*axes)]
    for x, y in [(1.0, 0.0), (2.0, 5.0), (3.0, 20.0), (2.5, 17.0), (7.0, 40.0)]:
        assert between(axes, values, (x, y)) == pytest.approx(2 * x + x * y)
    assert between(axes, values, (0.1, 5.0)) == pytest.approx(2 + 5)


def test_what_took_less_at_a_larger_size_was_noise():
    assert rising([[1, 2], [1, 2, 3]], [1.0, 3.0, 2.0, 0.5, 4.0, 1.0]) == [1.0, 3.0, 3.0, 1.0, 4.0, 4.0]
    assert between([[1.0, 2.0], [1.0, 2.0]], [1.0, 9.0, 5.0, 9.0], (3.0, 3.0)) >= 9.0


def test_it_grows_with_agents_time_dimension_seeds_and_records(tmp_path):
    base = seconds(tmp_path)
    assert base > 0
    task, stop = SMALL["task"], SMALL["stop"]
    assert seconds(tmp_path, task={**task, "agents": 500}) > 2 * base
    assert seconds(tmp_path, task={**task, "dimension": 100}) > base
    assert seconds(tmp_path, stop={"time": 10 * stop["time"]}) > 2 * base
    assert seconds(tmp_path, stop={"updates": 5000}) > 2 * base
    assert seconds(tmp_path, topology={"kind": "complete"}) > base
    assert seconds(tmp_path, record={"every": 0.1}) > base
    assert seconds(tmp_path, seeds=3) == pytest.approx(3 * base)
    assert seconds(tmp_path, engine="event") > 5 * base
    assert seconds(tmp_path, network={**SMALL["network"], "loss": 0.05}) >= base


@pytest.mark.parametrize("name", ["dual_averaging", "push_sum_dual_averaging"])
def test_who_draws_its_rows_takes_no_longer_where_there_are_more(name):
    kind, few, many = catalog.resolve(name), 10.0, 20_000.0
    drawn = kind.Parameters.model_validate({"kind": name, "batch": 3})
    full = kind.Parameters.model_validate({"kind": name, "sampling": "full"})
    assert kind.rows_of_step(drawn, few) == kind.rows_of_step(drawn, many) == 3.0
    assert kind.rows_of_step(drawn, 2.0) == 2.0
    assert kind.rows_of_step(full, many) == many


def test_who_falls_silent_makes_no_more_steps(tmp_path):
    few = {"cd": {"kind": "coordinate_descent", "updates": 10}}
    assert seconds(tmp_path, protocols=few, stop={"time": 500}) < seconds(tmp_path)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_protocol_of_a_shipped_scenario_has_a_time(name):
    loaded = load(shipped()[name])
    scenario = loaded.points[0].scenario
    for parameters in scenario.protocols.values():
        protocol = loaded.code.protocol(parameters.kind)
        degree = 1.6 if protocol.learns_from == "columns" else 4.0
        found = [
            seconds_of(scenario, protocol, parameters, 50, Size(p, 20.0, degree), wakes=1e4, samples=10.0)
            for p in (10, 400)
        ]
        assert found[0] is not None, parameters.kind
        assert found[1] is not None
        assert 0 < found[0] <= found[1]


def test_the_table_has_every_protocol_that_steps_on_both_engines():
    times = StepTimes.shipped()
    measured = {tuple(key.split()) for key in times.content["steps"]}
    for kind in catalog.PROTOCOLS:
        if has_steps(catalog.resolve(kind)):
            forms = {key[3] for key in measured if key[0] == kind}
            assert "event" in forms, kind
            assert forms & {"compiled", "Python"}, kind
    points = len(times.content["dimension"]) * len(times.content["rows"]) * len(times.content["degree"])
    assert {len(one) for one in times.content["steps"].values()} == {points}
    assert all(number > 0 for one in times.content["steps"].values() for number in one)


def test_losses_add_what_they_add_without_noise_and_what_was_not_measured_counts_as_what_was():
    content = {
        "dimension": [1, 2],
        "rows": [1, 2],
        "degree": [1, 2],
        "columns": {"kinds": []},
        "steps": {
            "cd rounds plain compiled": [2.0] * 8,
            "cd rounds plain compiled lossy": [7.0] * 8,
            "cd rounds gamma compiled": [3.0] * 8,
            "cd rounds plain event": [100.0] * 8,
        },
    }
    times, size = StepTimes(content), Size(1, 1, 1)

    def step(noise, form, lossy=False, kind="cd"):
        found = times.step(Steps(kind, "rounds", noise, form, lossy), size)
        return None if found is None else round(1e6 * found, 9)

    assert step("plain", "compiled") == 2.0
    assert step("plain", "compiled", lossy=True) == 7.0
    assert step("gamma", "compiled", lossy=True) == 8.0
    assert step("laplace", "compiled", lossy=True) == 7.0
    assert step("gamma", "event") == 100.0
    assert step("plain", "Python") == 2.0
    assert step("plain", "compiled", kind="other") is None


def test_ways_noises_and_forms_are_read_from_what_a_protocol_is_given():
    protocol = catalog.resolve("model_propagation")
    for schedule, way in ((None, "exchange"), ("async", "broadcast"), ("rounds", "rounds")):
        given = {"kind": "model_propagation"} | ({} if schedule is None else {"schedule": schedule})
        assert way_of(protocol, protocol.Parameters.model_validate(given)) == way
    perturbed = catalog.resolve("perturbed_admm").Parameters.model_validate(
        {"kind": "perturbed_admm", "noise": {"alpha": 1.0}}
    )
    assert noise_of(perturbed) == "gamma"
    silent = {"mechanism": "laplace", "multiplier": 0.0, "sensitivity": "clip", "clip": 1.0}
    descent = catalog.resolve("coordinate_descent")
    for multiplier, noise in ((0.0, "plain"), (1.0, "laplace")):
        fields = {"kind": "coordinate_descent", "privacy": {**silent, "multiplier": multiplier}}
        assert noise_of(descent.Parameters.model_validate(fields)) == noise
    scenario = load(SMALL).points[0].scenario
    assert expected_form(scenario, descent) == "compiled"
    assert expected_form(load({**SMALL, "engine": "event"}).points[0].scenario, descent) == "event"
    assert round_length(scenario, 0.0) == pytest.approx(1.2)
    assert not has_steps(catalog.resolve("local"))


def test_a_dry_run_says_about_how_long_and_that_it_limits_nothing(tmp_path, capsys):
    run_scenario(load(SMALL), out=tmp_path / "out", dry_run=True, jobs=2)
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("time about"))
    assert f"on {StepTimes.shipped().source}" in line
    assert "with 2 processes" in line
    assert line.endswith("an estimate, and no limit")


def test_of_a_protocol_in_no_table_the_time_is_unknown(tmp_path, capsys):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "mine.json").write_text(
        json.dumps({**SMALL, "protocols": {"own": {"kind": "./own.py:Own"}, "cd": {"kind": "coordinate_descent"}}})
    )
    both = load(tmp_path / "mine.json", trust_code=True)
    run_scenario(both, out=tmp_path / "out", dry_run=True)
    assert "to which comes what is unknown: nobody has measured ./own.py:Own" in capsys.readouterr().out
    (tmp_path / "mine.json").write_text(json.dumps({**SMALL, "protocols": {"own": {"kind": "./own.py:Own"}}}))
    run_scenario(load(tmp_path / "mine.json", trust_code=True), out=tmp_path / "out", dry_run=True)
    assert "time unknown: nobody has measured ./own.py:Own" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.123, "0.12 s"), (12.3, "12 s"), (125.0, "2.1 minutes"), (7250.0, "2 hours")]
)
def test_durations_have_two_digits(seconds, words):
    assert _duration(seconds) == words
