"""Every private protocol can be put at a verified epsilon by its scenario alone, and moved along it by one sweep."""

import pytest
from hushnet.protocols import catalog
from hushnet.simulator.experiment import Experiment, execute
from hushnet.simulator.language.loading import load

TARGET = {"verified": 0.5, "delta": 1e-3}
GRADIENTS = {"mechanism": "gaussian", "target": TARGET, "updates": 4, "clip": 1.0}
ONCE = {"mechanism": "gaussian", "target": TARGET, "updates": 1, "clip": 1.0}
ROWS = {
    "task": {
        "kind": "linear_classification", "agents": 5, "dimension": 3, "points": "ball", "samples": [30, 60],
        "loss": "logistic",
    },
    "topology": {"kind": "ring"},
}  # fmt: skip
COLUMNS = {
    "task": {"kind": "gisette_like", "rows": 40, "dimension": 6, "split": {"by": "columns", "parts": [3, 3]}},
    "topology": {"kind": "star"},
}

PRIVATE = {
    "coordinate_descent": (ROWS, {"privacy": GRADIENTS, "radius": 1.0}, "privacy"),
    "coordinate_descent, laplace": (ROWS, {"privacy": {**GRADIENTS, "mechanism": "laplace"}, "radius": 1.0}, "privacy"),
    "model_propagation": (ROWS, {"privacy": ONCE}, "privacy"),
    "model_propagation, gamma": (ROWS, {"privacy": {**ONCE, "mechanism": "gamma"}}, "privacy"),
    "muffliato": (ROWS, {"privacy": ONCE}, "privacy"),
    "muffliato, shared noise": (ROWS, {"privacy": ONCE, "shared_noise": 2.0}, "privacy"),
    "local_dp": (ROWS, {"privacy": ONCE}, "privacy"),
    "local_dp_descent": (ROWS, {"privacy": ONCE}, "privacy"),
    "decentralised_sgd": (ROWS, {"privacy": GRADIENTS}, "privacy"),
    "decentralised_sgd, several gossip steps": (
        ROWS,
        {
            "privacy": {**GRADIENTS, "updates": 2},
            "order": "adapt_then_combine",
            "gossip_steps": 2,
            "gossip": "chebyshev",
        },
        "privacy",
    ),
    "decentralised_sgd, shared noise": (ROWS, {"privacy": GRADIENTS, "shared_noise": 2.0}, "privacy"),
    "decentralised_sgd, all of an agent": (ROWS, {"privacy": {**GRADIENTS, "unit": "agent"}}, "privacy"),
    "dual_averaging": (ROWS, {"privacy": GRADIENTS, "sampling": "full"}, "privacy"),
    "dual_averaging, sampled": (ROWS, {"privacy": {**GRADIENTS, "updates": 2}, "batch": 5}, "privacy"),
    "push_sum_dual_averaging": (ROWS, {"privacy": GRADIENTS, "sampling": "full"}, "privacy"),
    "random_walk_sgd": (ROWS, {"privacy": {**GRADIENTS, "updates": 2}}, "privacy"),
    "perturbed_admm": (ROWS, {"noise": {"target": TARGET, "updates": 4}, "loss_weight": 0.5}, "noise"),
    "feature_sharing": (COLUMNS, {"privacy": GRADIENTS}, "privacy"),
    "stale_feature_sharing": (COLUMNS, {"privacy": GRADIENTS}, "privacy"),
}


def scenario(key, **fields):
    problem, parameters, _ = PRIVATE[key]
    return {
        "schema": 1,
        "scenario": "frontier",
        **problem,
        "protocols": {"mine": {"kind": key.partition(",")[0], **parameters}},
        "stop": {"time": 12},
        **fields,
    }


def verified(loaded):
    """Verified epsilon of every run."""
    experiment = Experiment(loaded)
    return [execute(experiment, run).manifest["privacy"]["verified"] for run in experiment.runs()]


@pytest.mark.parametrize("key", PRIVATE)
def test_a_private_protocol_meets_every_target_along_an_axis_from_below(key):
    path = f"protocols.mine.{PRIVATE[key][2]}.target.verified"
    loaded = load(scenario(key, sweep={"verified epsilon": {"zip": {path: [0.5, 2.0]}}}))
    for epsilon, target in zip(verified(loaded), [0.5, 2.0], strict=True):
        assert epsilon <= target * (1 + 1e-9)
        assert epsilon == pytest.approx(target, rel=2e-3)


def test_every_shipped_protocol_with_noise_can_be_calibrated():
    """Fields that are noise, apart from feature_sharing's as printed, of which nothing can be verified."""
    noisy = {
        name
        for name in catalog.PROTOCOLS
        if {"privacy", "noise"} & catalog.resolve(name).Parameters.model_fields.keys()
    }
    assert noisy == {key.partition(",")[0] for key in PRIVATE}
