"""Numbers that a correct build of Hu et al. 2019 reaches on LIBSVM a9a, 66 and 57 columns.

Established by two independent implementations; zero latency, no loss, everybody online.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.tasks.base import Task
from hushnet.agents.tasks.libsvm_sets import A9a

from ..engine.driving import drive
from .columns import mean_test_loss, value, world_of

DATA = os.environ.get("HUSHNET_DATA")
needs_a9a = pytest.mark.skipif(
    not (DATA and (Path(DATA) / "a9a" / "a9a").is_file()), reason="needs HUSHNET_DATA with the folder a9a"
)


@pytest.fixture(scope="module")
def a9a() -> Task:
    spec = A9a.model_validate({"kind": "a9a", "split": {"by": "columns", "parts": [66, 57]}})
    return spec.build(rng=np.random.default_rng(0), data_dir=Path(str(DATA)))


@needs_a9a
def test_a9a_reaches_its_optimum_and_its_numbers(a9a):
    """Jacobi, rho = .3: objective / N at epochs 10 and 50; optimum, test loss."""
    world = world_of(a9a, 100, rho=0.3)
    drive(world)
    objective, count = world.protocol.objective(), len(a9a.train.labels)
    assert value(a9a, world.recorder.models[10]) / count == pytest.approx(0.329101, abs=2e-6)
    assert value(a9a, world.recorder.models[50]) / count == pytest.approx(0.323515, abs=2e-6)
    assert max(world.recorder.residuals[1:]) < 1e-8
    best, minimum = objective.minimise()
    assert minimum / count == pytest.approx(0.3233796, abs=1e-7)
    assert mean_test_loss(a9a, best[0]) == pytest.approx(0.32406, abs=1e-5)


@pytest.mark.slow
@needs_a9a
def test_a9a_diverges_in_parallel_at_a_small_penalty_and_converges_in_turn(a9a):
    gaps = {}
    for order, rounds in (("jacobi", 2), ("gauss_seidel", 4)):
        world = world_of(a9a, 20 * rounds, rho=0.01, order=order)
        drive(world)
        objective = world.protocol.objective()
        gap = objective.value(world.protocol.models(world.state)) - 0.3233795824648475 * 32561
        gaps[order] = gap / 32561
    assert gaps["jacobi"] > 1
    assert 0 < gaps["gauss_seidel"] < 2e-3


@pytest.mark.slow
@needs_a9a
def test_a9a_learns_less_from_the_first_party_alone(a9a):
    world = world_of(a9a, 200, parties=1)
    drive(world)
    assert mean_test_loss(a9a, world.protocol.models(world.state)[0]) == pytest.approx(0.3494, abs=1e-4)
