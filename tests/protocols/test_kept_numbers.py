"""Runs of every shipped protocol on a bad network come to kept numbers, ``kept_numbers.json``, on both engines.

The numbers have no source but this project: where they change, what runs draw, send, are charged or end with has
changed. ``python -m tests.protocols.test_kept_numbers`` writes them anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ..engine.driving import drive
from .test_bad_network import CASES, Case, world_on

FILE = Path(__file__).with_name("kept_numbers.json")
DELTA = 1e-3
CLIPPED = {"mechanism": "gaussian", "multiplier": 2.0, "updates": 6, "clip": 0.5}
ONCE = {**CLIPPED, "mechanism": "gamma", "updates": 1}
MORE = [
    Case("coordinate_descent", {"mu": 0.5, "start": "local", "updates": 4, "confidence": "relative"}),
    Case("coordinate_descent", {"mu": 0.5, "radius": 0.5, "smoothness": "data", "privacy": CLIPPED}),
    Case("coordinate_descent", {"mu": 0.5, "schedule": {"kind": "rounds", "patience": 1.5}}),
    Case("model_propagation", {"mu": 0.5, "solitary": {"steps": 2}, "partners": "weighted", "confidence": "uniform"}),
    Case("model_propagation", {"schedule": "async", "alpha": 0.5}),
    Case("model_propagation", {"closed_form": True, "privacy": ONCE}),
    Case("collaborative_admm", {"start": "zero", "objective": "bellet", "mu": 0.5}),
    Case("collaborative_admm", {"schedule": "rounds", "local_steps": 2, "solitary": {"steps": 3, "step_size": 0.5}}),
    Case("consensus_admm", {"penalty_growth": 1.05, "dual_step_growth": 1.02, "loss_weight": 2.0}),
    Case("dual_averaging", {"step_weights": "constant", "sampling": "poisson", "batch": 2, "privacy": CLIPPED}),
    Case("dual_averaging", {"sampling": "uniform", "batch": 3, "radius": 0.7}),
    Case("push_sum_dual_averaging", {"batch": 2, "gamma": 1.0, "schedule": "rounds"}),
    Case("gradient_tracking", {"batch": 2}),
    Case("local_dp", {"privacy": ONCE}),
    Case("feature_sharing", {"parties": 2, "ridge": 0.5}, split=True),
    Case("feature_sgd", {"batch": 4, "decay": 0.1}, split=True),
    Case("stale_feature_sharing", {"staleness": 1, "damping": 0.5}, split=True),
]
"""Other fields of shipped protocols, beside those of `test_bad_network`."""
EVERY = [*CASES, *MORE]


def numbers(case, engine="auto") -> dict[str, list[float]]:
    """Sum and norm of every block; counts of messages, steps and charges; epsilons of every agent."""
    world = drive(world_on(case, 0, engine))
    blocks = {f"{kind} {name}": block for kind in ("agent", "edge") for name, block in vars(world.state)[kind].items()}
    ledger, links = world.ledger, world.traffic.links
    objective, models = world.protocol.objective(), world.protocol.models(world.state)
    charges = [sum(ledger.histogram(agent).values()) for agent in range(ledger.agents)]
    return {
        "time, steps, messages, vectors, lost, delivered, dropped": [
            *(world.now, world.activations, world.traffic.messages, world.traffic.vectors),
            *(links.lost, links.delivered, links.dropped),
        ],
        "updates": world.updates.tolist(),
        "charges": charges,
        **{which: ledger.epsilon(which, DELTA).tolist() for which in ("claimed", "verified")},
        "conserved": [*world.protocol.conserved(world.state).values()],
        "objective, minimum": [objective.value(models), objective.minimise()[1]] if objective else [],
        **{name: [float(block.values.sum()), float(np.linalg.norm(block.values))] for name, block in blocks.items()},
    }


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
@pytest.mark.parametrize("engine", ["auto", "event"])
def test_a_run_comes_to_the_numbers_that_are_kept(case, engine):
    kept, found = json.loads(FILE.read_text())[case.name], numbers(case, engine)
    assert found.keys() == kept.keys()
    for name, values in found.items():
        np.testing.assert_allclose(values, kept[name], rtol=1e-6, atol=1e-9, err_msg=name)


if __name__ == "__main__":
    found = {case.name: numbers(case) for case in EVERY}
    FILE.write_text(
        "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(all)}" for name, all in found.items()) + "\n}\n"
    )
