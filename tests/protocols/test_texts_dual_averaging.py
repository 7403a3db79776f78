"""Dual averaging runs the same as Python and compiled: updates and charges exactly, models to 1e-10."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.protocols.algorithms.dual_averaging import DualAveraging, DualAveragingParameters

from .text_worlds import check_forms, random_setting

BUDGET = {"mechanism": "gaussian", "budget": {"epsilon": 1.0, "delta": 0.01, "by": "basic_composition"}, "updates": 9}
TARGET = {"mechanism": "gaussian", "target": {"verified": 4.0, "delta": 1e-3}, "updates": 7}
MULTIPLE = {"mechanism": "gaussian", "multiplier": 0.8}
PRIVACY = [
    None,
    {**BUDGET, "sensitivity": "claimed"},
    {**TARGET, "sensitivity": "clip", "clip": 0.3},
    {**MULTIPLE, "sensitivity": "clip", "clip": 1.5},
    {**MULTIPLE, "multiplier": 0.0, "updates": 5, "sensitivity": "clip", "clip": 0.1},
]


def parameters(rng: np.random.Generator, **fields) -> DualAveragingParameters:
    sampling = str(rng.choice(["uniform", "poisson", "full"]))
    if sampling != "full":
        fields["batch"] = int(rng.integers(1, 6))
    if rng.random() < 0.3:
        fields["radius"] = 0.7
    steps = str(rng.choice(["linear", "constant"]))
    return DualAveragingParameters.model_validate(
        {"kind": "dual_averaging", "mu": 0.1, "gamma": 2.0, "step_weights": steps, "sampling": sampling, **fields}
    )


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 30))])
def test_all_forms_agree_on_random_worlds(seed):
    rng = np.random.default_rng(1000 + seed)
    privacy = PRIVACY[seed % len(PRIVACY)]
    # nothing bounds the slope of the squared loss, which noise for a claimed sensitivity asks for
    losses = ["logistic", "hinge", "smoothed_hinge"] + ["squared"] * (privacy is None)
    make = random_setting(seed, loss=str(rng.choice(losses)), easy=bool(seed % 2))
    world = check_forms(make, DualAveraging, parameters(rng, privacy=privacy))
    assert world.activations >= 10


@pytest.mark.parametrize("sampling", ["uniform", "poisson"])
@pytest.mark.parametrize("batch", [1, 3, 50])
def test_both_forms_draw_the_same_rows(sampling, batch):
    spec = DualAveragingParameters.model_validate({"kind": "dual_averaging", "sampling": sampling, "batch": batch})
    check_forms(random_setting(3, loss="logistic", easy=True), DualAveraging, spec)
