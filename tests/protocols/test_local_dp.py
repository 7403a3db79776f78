"""Local models from perturbed examples, against Bellet et al. 2018, appendix D.1."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.clipping import clip_rows
from hushnet.agents.objectives.objectives import local_models
from hushnet.agents.tables import Table
from hushnet.protocols.algorithms.local_dp import LocalDP, LocalDPParameters
from hushnet.simulator.contract.bench import run_small, small_task

PURE = {"mechanism": "laplace", "budget": {"epsilon": 2.0, "delta": 0.0}, "updates": 1}
CLAIMED, CLIP = {**PURE, "sensitivity": "claimed"}, {**PURE, "sensitivity": "clip", "clip": 1.0}


def parameters(**fields) -> LocalDPParameters:
    return LocalDPParameters.model_validate({"kind": "local_dp", **fields})


@pytest.mark.parametrize(
    ("privacy", "scale"),
    [
        (CLAIMED, 2 * 3 / 2.0),
        (CLIP, 2 * 1 / 2.0),
        ({**PURE, "sensitivity": "data_check", "radius": 4.0}, 2 * 4 / 2.0),
        ({**CLIP, "mechanism": "gamma"}, 2 * 1 / 2.0),
    ],
)
def test_noise_is_scaled_to_the_diameter_of_the_domain_over_epsilon(privacy, scale):
    """The cube of dimension 3 has l1 radius 3."""
    seen = []
    world_parameters = parameters(privacy=privacy)

    class Watched(LocalDP):
        def _release(self, me):
            seen.append(super()._release(me))
            return seen[-1]

    run_small(Watched, world_parameters)
    assert {release.scale for release in seen} == {scale}
    assert all(release.verified_sensitivity == release.sensitivity for release in seen)


def test_features_are_clipped_and_perturbed_and_labels_kept():
    """What is learned is the exact minimiser on such rows."""
    task, noisy, lengths = small_task(), {}, []

    class Watched(LocalDP):
        def _within_bound(self, features, agent):
            clipped = super()._within_bound(features, agent)
            lengths.extend(np.abs(clipped).sum(axis=1))
            return clipped

        def start(self, me):
            rows = clip_rows(me.data.features, 1.0, norm="l1")
            if len(rows):
                again = me.source_.make_stream  # which begins anew
                noisy[me.agent] = self._release(me).perturb(rows, rng=again("noise", me.agent, me.tick))
            super().start(me)

    world = run_small(Watched, parameters(privacy=CLIP))
    assert max(lengths) <= 1 + 1e-12
    features = np.concatenate([noisy[agent] for agent in sorted(noisy)])
    learned = dataclasses.replace(task, train=Table(features, task.train.labels, task.train.offsets))
    np.testing.assert_allclose(world.protocol.models(world.state), local_models(learned), atol=1e-8)


@pytest.mark.parametrize("privacy", [None, {**PURE, "budget": None, "multiplier": 0.0, "sensitivity": "claimed"}])
def test_without_noise_it_is_the_purely_local_model_and_gives_the_rows_away(privacy):
    world = run_small(LocalDP, parameters(privacy=privacy))
    np.testing.assert_allclose(world.protocol.models(world.state), local_models(small_task()), atol=1e-9)
    inhabited = small_task().train.counts > 0
    np.testing.assert_array_equal(np.isinf(world.ledger.epsilon("verified", 1e-5)), inhabited)
