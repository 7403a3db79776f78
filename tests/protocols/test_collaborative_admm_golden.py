"""Collaborative learning by ADMM against traces of an independent implementation (tests/golden)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.graph import Graph
from hushnet.agents.losses import LOSSES
from hushnet.agents.objectives.objectives import GraphRegularised
from hushnet.agents.tables import Table
from hushnet.agents.tasks.task import Task
from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.network.clocks import Recorded
from hushnet.simulator.network.setting import Stop

from ..engine.driving import drive
from .collaborative import EveryActivation, parameters, world_of

GOLDEN = dict(np.load(Path(__file__).parents[1] / "golden" / "linear_12_agents.npz"))


class Scripted(CollaborativeAdmm):
    """Partners and start models of an independent implementation."""

    def start(self, me):
        super().start(me)
        me.sent_.clear()
        me.model = me.z_own = GOLDEN["local"][me.agent]
        me.send("solitary", me.model, me.plain("a solitary model"))

    def partner(self, me, uniform):
        own = GOLDEN["neighbour"][GOLDEN["order"] == me.agent]
        return int(np.searchsorted(me.neighbours, own[me.tick]))


def golden_task(loss: str, regularisation: np.ndarray) -> Task:
    base = small_task(12).__dict__
    train = Table.from_owners(GOLDEN["X"], GOLDEN["Y"], GOLDEN["own"], 12)
    test = Table.from_owners(GOLDEN["target"], np.ones(12), np.arange(12), 12)
    fields = {"train": train, "test": test, "loss": LOSSES[loss], "regularisation": regularisation}
    return Task(**{**base, **fields})


def golden_run(task: Task, **fields):
    recorder = EveryActivation()
    world = world_of(
        parameters(**fields),
        protocol=Scripted,
        task=task,
        graph=Graph.from_matrix(GOLDEN["W"]),
        clock=Recorded(kind="recorded", order=GOLDEN["order"].tolist(), spacing=1.0),
        stop=Stop(),
        recorder=recorder,
        activations=1,
    )
    drive(world)
    assert world.activations == 200
    return world, np.array(recorder.models)


def test_gossip_with_gradient_steps_follows_an_independent_implementation_step_by_step():
    task = golden_task("logistic", GOLDEN["lam"])
    fields = {"objective": "bellet", "mu": 4.0, "confidence": "relative", "rho": 0.1, "local_steps": 10}
    world, models = golden_run(task, **fields)
    np.testing.assert_allclose(models, GOLDEN["admm_logit_mu4_rho0.1_K10"], atol=1e-10)
    assert world.protocol.objective().value(GOLDEN["opt_mu4"]) == pytest.approx(float(GOLDEN["Qstar_mu4"]), abs=1e-9)


def test_gossip_on_the_hinge_follows_an_independent_implementation_step_by_step():
    """Its local problems are solved to about 1e-5 there."""
    world, models = golden_run(golden_task("hinge", np.zeros(12)), mu=0.25, rho=0.3, start="zero")
    np.testing.assert_allclose(models, GOLDEN["cladmm_hinge_mu0.25_rho0.3"], atol=1e-4)
    assert world.protocol.objective() is None


@pytest.mark.slow
def test_rounds_on_the_hinge_end_at_the_optimum_that_an_independent_implementation_found():
    spec = parameters(mu=0.25, rho=0.1, start="zero", schedule="rounds")
    task, graph = golden_task("hinge", np.zeros(12)), Graph.from_matrix(GOLDEN["W"])
    world = world_of(spec, task=task, graph=graph, stop=Stop(updates=300))
    drive(world)
    models = world.state.agent["model"].rows
    np.testing.assert_allclose(models, GOLDEN["clopt_hinge_mu0.25"], atol=1e-6)
    value = 2 * GraphRegularised(task, graph, 0.25 / 2, world.protocol.confidence).value(models)
    assert value == pytest.approx(float(GOLDEN["Qcl_mu0.25"]), abs=1e-8)
