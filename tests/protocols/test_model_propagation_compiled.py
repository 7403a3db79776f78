"""Compiled steps of model propagation are those in Python, up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.availability import Always, OnOff, Window
from hushnet.protocols.algorithms.model_propagation import ModelPropagation, ModelPropagationParameters
from hushnet.simulator.contract.bench import run_small
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.network.network import NetworkParameters

PRIVATE = {"mechanism": "laplace", "budget": {"epsilon": 2.0, "delta": 0.0}, "updates": 1, "sensitivity": "claimed"}


def parameters(**fields) -> ModelPropagationParameters:
    return ModelPropagationParameters.model_validate({"kind": "model_propagation", **fields})


AWAY = OnOff(
    kind="on_off",
    online=0.9,
    mean_down=1.0,
    joins=Window(share=0.4, between=[1.0, 6.0]),
    leaves=Window(share=0.4, between=[25.0, 35.0]),
)
SLOW = {"latency": {"kind": "exponential", "mean": 0.3}}


@pytest.mark.parametrize("start", ["known", "own", "zero"])
@pytest.mark.parametrize(
    ("fields", "network", "availability"),
    [
        ({}, {}, Always(kind="always")),
        ({"partners": "weighted"}, {**SLOW, "loss": 0.1}, AWAY),
        ({"schedule": "async"}, {**SLOW, "loss": 0.1}, AWAY),
        ({"schedule": "rounds"}, SLOW, Always(kind="always")),
    ],
)
def test_the_compiled_steps_are_those_in_python_and_are_charged_alike(fields, network, availability, start):
    spec = parameters(alpha=0.8, **fields)
    shared = {
        "network": NetworkParameters.model_validate({**network, "start": start}),
        "availability": availability,
        "time": 40.0,
    }
    reference, compiled = (
        run_small(ModelPropagation, spec, engine=engine, **shared) for engine in (EventEngine(), BatchedEngine())
    )
    assert compiled.engine == "batched (compiled step)"
    assert compiled.activations == reference.activations > 20
    assert compiled.traffic == reference.traffic
    for name in ("agent", "edge"):
        blocks = getattr(compiled.state, name)
        for block, expected in getattr(reference.state, name).items():
            np.testing.assert_allclose(blocks[block].values, expected.values, rtol=0, atol=1e-12)
    costs, charges = zip(
        *(
            (world.ledger.epsilon("verified", 1e-5).tolist(), [world.ledger.releases(agent) for agent in range(6)])
            for world in (reference, compiled)
        ),
        strict=True,
    )
    assert costs[0] == costs[1]
    if (fields.get("schedule"), start) != ("async", "own"):
        # There, who has heard nobody repeats itself up to rounding, and only the same bytes are free.
        assert charges[0] == charges[1]
        assert sum(charges[0]) > 20


@pytest.mark.parametrize("start", ["known", "own"])
@pytest.mark.parametrize("schedule", ["exchange", "async", "rounds"])
def test_with_noise_at_the_start_steps_are_compiled_and_charge_it_once(schedule, start):
    spec = parameters(alpha=0.8, privacy=PRIVATE, schedule=schedule)
    network = NetworkParameters.model_validate({**SLOW, "start": start})
    reference, compiled = (
        run_small(ModelPropagation, spec, engine=engine, network=network, time=20.0)
        for engine in (EventEngine(), BatchedEngine())
    )
    assert compiled.engine == "batched (compiled step)"
    assert compiled.ledger.to_frame().equals(reference.ledger.to_frame())
    assert max(compiled.ledger.releases(agent) for agent in range(6)) == 1
    for block, expected in reference.state.agent.items():
        np.testing.assert_allclose(compiled.state.agent[block].values, expected.values, rtol=0, atol=1e-12)
