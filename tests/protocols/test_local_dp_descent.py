"""Coordinate descent on perturbed examples, against Bellet et al. 2018, appendix D.1."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.objectives.objectives import GraphRegularised
from hushnet.agents.tables import Table
from hushnet.protocols.algorithms.local_dp_descent import LocalDPDescent, LocalDPDescentParameters
from hushnet.simulator.contract import check_contract
from hushnet.simulator.contract.bench import run_small, small_graph, small_task
from hushnet.simulator.contract.violation import ContractViolation
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine

CLIP = {
    "mechanism": "laplace",
    "budget": {"epsilon": 2.0, "delta": 0.0},
    "updates": 1,
    "sensitivity": "clip",
    "clip": 1.0,
}


def parameters(**fields) -> LocalDPDescentParameters:
    return LocalDPDescentParameters.model_validate({"kind": "local_dp_descent", "mu": 0.5, **fields})


@pytest.mark.parametrize("engine", [BatchedEngine(), EventEngine()])
def test_it_ends_at_the_minimum_of_the_objective_on_the_perturbed_examples(engine):
    world = run_small(LocalDPDescent, parameters(privacy=CLIP), time=400.0, engine=engine)
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
        check_contract(mistake, {"privacy": CLIP, "mu": 0.5})
