"""Sweeps: forms of values, several fields at once, chosen protocols only, the quick version, and mistakes in them."""

import json

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.language.loading import load
from hushnet.simulator.language.sweep_parameters import Geometric, Range, Together
from hushnet.simulator.language.sweeps import axes, expand
from hypothesis import given
from hypothesis import strategies as st

BASE = """\
schema: 1
scenario: tiny
task: {kind: linear_classification, agents: 4, dimension: 3}
topology: {kind: ring}
protocols:
  local: {kind: local}
  cd: {kind: coordinate_descent}
  admm: {kind: collaborative_admm}
stop: {time: 2}
"""


def loaded(tmp_path, *lines, **options):
    path = tmp_path / "tiny.yaml"
    path.write_text(BASE + "\n".join(lines) + "\n", encoding="utf-8")
    return load(path, **options)


@pytest.mark.parametrize(
    ("ends", "values"),
    [
        ((0.0, 0.3, 0.1), [0.0, 0.1, 0.2, 0.3]),
        ((0, 1, 0.4), [0.0, 0.4, 0.8]),
        ((1, 7, 3), [1, 4, 7]),
        ((2.5, 2.5, 1), [2.5]),
    ],
)
def test_a_range_has_the_last_value_if_its_steps_meet_it(ends, values):
    found = Range.model_validate(dict(zip(("from", "to", "step"), ends, strict=True))).values()
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    "same", [[True, 1, True], [0, 0.0], [0.0, -0.0], [1, "1"], [0.1, "0.1"], ["true", True], [{"a": 1}, '{"a": 1}']]
)
def test_places_that_tables_write_alike_are_refused(same):
    with pytest.raises(InputError, match="names a value twice"):
        axes({"task.points": same})
    zipped = Together.model_validate(
        {"zip": {"network.loss": list(range(len(same)))}, "labels": list(map(_label, same))}
    )
    with pytest.raises(InputError, match="names a value twice"):
        axes({"places": zipped})


def _label(value):
    return json.dumps(value) if isinstance(value, dict) else value


@given(
    first=st.floats(1e-6, 1e6),
    factor=st.floats(1.001, 1e6) | st.floats(1e-6, 0.999),
    count=st.integers(2, 60),
)
def test_logarithmic_values_keep_their_ends_and_their_ratio(first, factor, count):
    values = Geometric.model_validate({"log": [first, first * factor, count]}).values()
    assert (len(values), values[0], values[-1]) == (count, first, first * factor)
    assert values == sorted(values, reverse=factor < 1)
    exact = [first * factor ** (rank / (count - 1)) for rank in range(count)]
    assert values == pytest.approx(exact, rel=5e-3)


def test_fields_that_move_together_are_one_axis(tmp_path):
    found = loaded(
        tmp_path,
        "sweep:",
        "  network.loss: [0.0, 0.1]",
        "  size:",
        "    zip: {task.agents: [4, 8], stop.time: {from: 10, to: 20, step: 10}}",
    )
    assert [tuple(point.values.values()) for point in found.points] == [(0.0, 4), (0.0, 8), (0.1, 4), (0.1, 8)]
    assert [(p.scenario.task.agents, p.scenario.stop.time) for p in found.points] == [(4, 10), (8, 20)] * 2


def test_braces_set_a_field_of_several_protocols_alike(tmp_path):
    found = loaded(tmp_path, "sweep:", "  protocols.{cd,admm}.mu: [0.1, 0.2]")
    for point, mu in zip(found.points, [0.1, 0.2], strict=True):
        assert [point.scenario.protocols[key].mu for key in ("cd", "admm")] == [mu, mu]
        assert point.values == {"protocols.{cd,admm}.mu": mu}
    assert expand("protocols.{a, b}.privacy.target") == ["protocols.a.privacy.target", "protocols.b.privacy.target"]


@pytest.mark.parametrize(
    ("axis", "assignment"),
    [
        ("network.loss: [0.0, 0.1]", "network.loss=0.2"),
        ("loss: {zip: {network.loss: [0.0, 0.1]}}", "network.loss=0.2"),
        ("protocols.cd.mu: {from: 1, to: 3, step: 1}", "protocols.{cd,admm}.mu=2"),
    ],
)
def test_setting_a_field_that_is_swept_is_refused_rather_than_without_effect(axis, assignment, tmp_path):
    with pytest.raises(InputError) as refused:
        loaded(tmp_path, "sweep:", f"  {axis}", overrides=[assignment])
    name = axis.partition(":")[0]
    assert str(refused.value).startswith(f"--set {assignment}: has no effect, for the sweep sets this field")
    assert f"give sweep.{name} other values" in str(refused.value)
    assert len(loaded(tmp_path, "sweep:", f"  {axis}", overrides=["sweep={}", assignment]).points) == 1


def test_a_swept_scenario_is_plain_when_resolved_and_loads_again(tmp_path):
    found = loaded(
        tmp_path,
        "sweep:",
        "  network.loss: {log: [0.01, 0.1, 3]}",
        "  size: {zip: {stop.time: [1, 2], network.latency: [0, 1]}, labels: [a, b]}",
        "target: {metric: accuracy, level: 0.8}",
        "quick: {stop.time: 1}",
        "seeds: [{data: 0, run: 5}, 7]",
    )
    resolved = json.loads(json.dumps(found.scenario.resolved()))
    again = load(resolved)
    assert again.scenario.resolved() == resolved
    assert [point.values for point in again.points] == [point.values for point in found.points]
    assert found.scenario.seed_pairs() == [(5, 0, 5), (7, 7, 7)]


def test_the_quick_version_has_its_own_name_and_settings_and_yields_to_the_command_line(tmp_path):
    lines = [
        "sweep: {network.loss: [0.0, 0.1, 0.2]}",
        "quick: {stop.time: 1, 'protocols.{cd,admm}.mu': 0.5, sweep.network.loss: [0.0]}",
    ]
    found = loaded(tmp_path, *lines, quick=True)
    assert found.scenario.scenario == "tiny-quick"
    assert (found.scenario.stop.time, len(found.points)) == (1, 1)
    assert found.scenario.protocols["admm"].mu == 0.5
    assert loaded(tmp_path, *lines, quick=True, overrides=["stop.time=3"]).scenario.stop.time == 3
    full = loaded(tmp_path, *lines)
    assert (full.scenario.scenario, full.scenario.stop.time, len(full.points)) == ("tiny", 2, 3)
