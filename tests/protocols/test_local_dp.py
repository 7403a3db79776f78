"""Local models and coordinate descent on perturbed examples, against Bellet et al. 2018, appendix D.1."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.clipping import clip_rows
from hushnet.agents.objectives.objectives import GraphRegularised, local_models
from hushnet.agents.tables import Table
from hushnet.protocols.algorithms.local_dp import LocalDP, LocalDPParameters
from hushnet.protocols.algorithms.local_dp_descent import LocalDPDescent, LocalDPDescentParameters
from hushnet.simulator.contract import check_contract
from hushnet.simulator.contract.bench import run_small, small_graph, small_task
from hushnet.simulator.contract.violation import ContractViolation
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine

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


CLIPPED = {
    "mechanism": "laplace",
    "budget": {"epsilon": 2.0, "delta": 0.0},
    "updates": 1,
    "sensitivity": "clip",
    "clip": 1.0,
}


def descent(**fields) -> LocalDPDescentParameters:
    return LocalDPDescentParameters.model_validate({"kind": "local_dp_descent", "mu": 0.5, **fields})


@pytest.mark.parametrize("engine", [BatchedEngine(), EventEngine()])
def test_it_ends_at_the_minimum_of_the_objective_on_the_perturbed_examples(engine):
    world = run_small(LocalDPDescent, descent(privacy=CLIPPED), time=400.0, engine=engine)
    task, rows = small_task(), world.protocol.rows
    noisy = np.concatenate([shard.features for shard in rows])
    assert np.abs(noisy - task.train.features).max() > 1.0
    learned = dataclasses.replace(task, train=Table(noisy, task.train.labels, task.train.offsets))
    objective = GraphRegularised(learned, small_graph(task.agents), 0.5, world.protocol.confidence)
    np.testing.assert_allclose(world.protocol.models(world.state), objective.minimise()[0], atol=1e-6)
    assert world.traffic.messages > 100


class Peeks(LocalDPDescent):
    """Learns from its true examples, and calls what it says post-processing."""

    def local_data(self, agent, shard):
        return shard


class StepsByTruth(LocalDPDescent):
    """Takes its step sizes from the true examples."""

    def start(self, me):
        super().start(me)
        me.alpha = me.alpha * np.tanh(np.abs(self.problem.task.shard(me.agent).features).sum())


class NeverPays(LocalDPDescent):
    """Says what follows from perturbed examples that nobody has paid for."""

    def start(self, me):
        vars(me)["disclose"] = lambda release: None
        super().start(me)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (Peeks, "depends on the agent's data"),
        (StepsByTruth, "depends on the (agent's )?data"),
        (NeverPays, "noise"),
    ],
)
def test_the_contract_finds_who_tells_more_than_what_follows_from_paid_examples(mistake, words):
    with pytest.raises(ContractViolation, match=words):
        check_contract(mistake, {"privacy": CLIPPED, "mu": 0.5})
