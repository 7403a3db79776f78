"""Noise for all of an agent's records beside noise for one: what is clipped, what a release states, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.tables import Shard
from hushnet.protocols import catalog
from hushnet.protocols.noise import GradientNoise
from hushnet.protocols.privacy.budget import GradientPrivacy
from hushnet.simulator.contract import check_replay, protocol_parameters
from hushnet.simulator.contract.bench import example
from hushnet.simulator.contract.small_settings import small_setting
from hushnet.simulator.language.loading import load
from hushnet.simulator.recording.privacy_statement import delta_warnings, privacy_statement

GIVEN = {"mechanism": "gaussian", "multiplier": 2.0, "updates": 3, "clip": 0.2}
USERS = {
    "coordinate_descent": {"mu": 0.5, "privacy": {**GIVEN, "unit": "agent"}},
    "decentralised_sgd": {"privacy": {**GIVEN, "unit": "agent"}},
    "muffliato": {"privacy": {**GIVEN, "updates": 1, "unit": "agent"}},
}


@pytest.mark.parametrize("size", [3.0, 1e6, 1e300])
@pytest.mark.parametrize(("unit", "moved"), [("record", 2 * 0.2 / 4), ("agent", 2 * 0.2)])
def test_opposite_data_move_a_mean_gradient_by_what_noise_is_scaled_for(unit, moved, size):
    task = small_setting().task
    noise = GradientNoise(GradientPrivacy(**GIVEN, unit=unit), task)
    rows = np.full((4, task.dimension), size)
    signs = np.array([-1.0, 1.0, 1.0, 1.0]) if unit == "record" else -np.ones(4)
    means = [
        noise.mean_gradient(np.zeros(task.dimension), Shard(side[:, None] * rows, np.ones(4)))
        for side in (np.ones(4), signs)
    ]
    assert np.linalg.norm(means[0] - means[1]) == pytest.approx(moved, rel=1e-12)
    assert noise.sensitivities(4) == (pytest.approx(moved), pytest.approx(moved))


@pytest.mark.parametrize("kind", USERS)
def test_all_records_of_an_agent_are_protected_and_replay_agrees(kind):
    protocol = catalog.resolve(kind)
    world = example(protocol, **USERS[kind])
    statement = privacy_statement(world, "construction")[0]
    assert statement is not None
    assert statement["unit"] == ["agent"]
    record = {**USERS[kind], "privacy": {**USERS[kind]["privacy"], "unit": "record"}}
    same = privacy_statement(example(protocol, **record), "construction")[0]
    assert same is not None
    assert statement["verified"] == same["verified"] > 0  # the multiplier is of the sensitivity, whatever the unit
    check_replay(protocol, protocol_parameters(protocol, USERS[kind]))


@pytest.mark.parametrize(
    ("delta", "counts", "unit", "words"),
    [
        (1e-2, [10, 90], "record", ""),
        (1 / 90, [10, 90], "record", "the agent with the most records (m = 90)"),
        (0.4, [10, 90], "agent", ""),
        (0.5, [10, 90], "agent", "1/n for n = 2 agents"),
        (0.5, [], "record", ""),
    ],
)
def test_a_delta_that_promises_little_is_named(delta, counts, unit, words):
    found = delta_warnings(delta, np.array(counts, dtype=np.int64), unit)
    assert bool(found) == bool(words)
    assert all(words in sentence for sentence in found)


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        ({"kind": "local_dp", "privacy": {**GIVEN, "updates": 1, "unit": "agent"}}, "unit"),
        ({"kind": "dual_averaging", "gamma": 1.0, "privacy": {**GIVEN, "unit": "agent"}}, "unit"),
        (
            {
                "kind": "coordinate_descent",
                "mu": 0.5,
                "start": {"kind": "private_propagation", "budget": {"epsilon": 0.1}},
                "privacy": {**GIVEN, "unit": "agent"},
            },
            "start",
        ),
    ],
)
def test_protocols_without_such_noise_refuse_it(protocol, words):
    rows = {"kind": "linear_classification", "agents": 4, "dimension": 3}
    with pytest.raises(InputError, match=words):
        load({"schema": 1, "scenario": "unit", "task": rows, "protocols": {"mine": protocol}, "stop": {"time": 2}})
