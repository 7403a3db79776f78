"""Tuning at one epsilon: several fields of each protocol, noise that follows, and mistakes in it."""

import copy

import pytest
from hushnet.agents.errors import InputError
from hushnet.protocols.privacy.budget import Total
from hushnet.simulator.experiment import run
from hushnet.simulator.experiment.tuning import sentences
from hushnet.simulator.language.loading import load
from hushnet.simulator.language.trials import FIRST_SEED

OVER = {
    "dvp.noise.updates": [2, 5],
    "dvp.penalty": [0.5, 1.0],
    "pp.noise.updates": [5, 10],
    "pp.penalty_growth": [1.01, 1.05],
}
CLAIMED, VERIFIED = {"claimed": 5.0}, {"verified": 3.0, "delta": 1e-5}


def written(budget, over=OVER, **noise):
    """Dual variable perturbation and penalty perturbation on five agents."""
    protocol = {"kind": "perturbed_admm", "loss_weight": 5.0, "noise": {"alpha": 3.0, "updates": 10, **noise}}
    return {
        "schema": 1,
        "scenario": "tiny",
        "task": {
            "kind": "linear_classification",
            "agents": 5,
            "dimension": 3,
            "samples": [20, 20],
            "points": "ball",
        },
        "topology": {"kind": "ring"},
        "clock": {"kind": "periodic"},
        "protocols": {"dvp": protocol, "pp": copy.deepcopy(protocol) | {"penalty_growth": 1.05}},
        "stop": {"time": 10},
        "record": {"every": 1.0, "metrics": ["training_loss", "epsilon"]},
        "seeds": 2,
        "tune": {"over": over, "budget": budget, "metric": "training_loss", "seeds": 1},
    }


@pytest.mark.parametrize(
    ("budget", "which"), [(CLAIMED, "claimed"), (VERIFIED, "verified")], ids=["claimed", "verified"]
)
def test_dual_and_penalty_perturbation_are_tuned_at_an_equal_epsilon(budget, which, tmp_path):
    collection = run(written(budget), out=tmp_path)
    tuning = collection.index["tuning"]
    assert tuning["trials"] == 4
    assert tuning["seeds"] == [FIRST_SEED]
    assert tuning["budget"] == Total(**budget).words
    assert any(f"tuned dvp at a {which} epsilon of" in line for line, _ in sentences(tuning))
    for manifest in collection.manifests:
        assert manifest["privacy"][which] == pytest.approx(budget[which], rel=2e-3)
        assert manifest["privacy"][which] <= budget[which] * (1 + 1e-12)
        noise = manifest["scenario"]["protocols"][manifest["protocol"]]["noise"]
        assert noise["alpha"] is None
    by_protocol = {chosen["protocol"]: chosen["values"] for chosen in tuning["chosen"]}
    assert {key: set(values) for key, values in by_protocol.items()} == {
        "dvp": {"noise.updates", "penalty"},
        "pp": {"noise.updates", "penalty_growth"},
    }


def test_gradient_noise_follows_from_a_claimed_or_a_verified_total():
    privacy = {"mechanism": "gaussian", "multiplier": 2.0, "updates": 4, "clip": 1.0}
    data = written({"claimed": 2.0, "delta": 1e-3}, over={"cd.privacy.updates": [2, 4]})
    data["protocols"] = {"cd": {"kind": "coordinate_descent", "radius": 1.0, "privacy": privacy}}
    for trial, updates in zip(load(data).trials, (2, 4), strict=True):
        found = trial.scenario.protocols["cd"].privacy
        assert (found.budget.epsilon, found.budget.delta, found.multiplier, found.updates) == (2.0, 1e-3, None, updates)
    data["tune"]["budget"] = VERIFIED
    found = load(data).trials[0].scenario.protocols["cd"].privacy
    assert (found.target.verified, found.target.delta, found.budget, found.multiplier) == (3.0, 1e-5, None, None)


def test_a_claim_below_what_the_determinants_cost_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"cannot be reached by any noise: theorem 4\.1 claims .* take fewer updates"):
        run(written({"claimed": 0.05}), out=tmp_path)
