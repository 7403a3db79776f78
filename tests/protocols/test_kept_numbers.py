"""Every protocol on a bad network: 30 % of messages lost, lognormal delays, agents that come and go.

Runs end, conserve messages, keep their budgets and come to kept numbers, ``kept_numbers.json``, on both engines. The
numbers have no source but this project: where they change, what runs draw, send, are charged or end with has changed.
``python -m tests.protocols.test_kept_numbers`` writes them anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hushnet.agents.availability import OnOff
from hushnet.protocols.catalog import PROTOCOLS, resolve
from hushnet.simulator.contract import protocol_parameters
from hushnet.simulator.contract.bench import small_task
from hushnet.simulator.engine.selection import Name
from hushnet.simulator.network.setting import Stop

from ..engine.driving import build_world, drive
from .columns import split_task, star
from .worlds import setting_of

FILE = Path(__file__).with_name("kept_numbers.json")
DELTA = 1e-3
BAD = {"latency": {"kind": "lognormal", "mean": 0.5, "sigma": 1.0}, "loss": 0.3}
BUDGET = {"epsilon": 2.0, "delta": 1e-3}
GAUSSIAN = {"mechanism": "gaussian", "budget": {**BUDGET, "by": "gaussian"}, "updates": 6, "clip": 1.0}
LAPLACE = {"mechanism": "laplace", "budget": BUDGET, "updates": 6, "clip": 1.0}
RELEASED_ONCE = {"mechanism": "gaussian", "budget": {**BUDGET, "by": "gaussian"}, "updates": 1, "clip": 1.0}
TARGET = {"mechanism": "gaussian", "target": {"verified": 2.0, "delta": 1e-3}, "updates": 6, "clip": 1.0}
WARM = {"kind": "private_propagation", "epsilon": 1.0}
SUBGRADIENT = {
    "mechanism": "gaussian",
    "budget": {"epsilon": 1.0, "delta": 1e-3, "by": "basic_composition"},
    "updates": 6,
    "sensitivity": "claimed",
}
CLIPPED = {"mechanism": "gaussian", "multiplier": 2.0, "updates": 6, "clip": 0.5}
ONCE = {**CLIPPED, "mechanism": "gamma", "updates": 1}


@dataclass(frozen=True)
class Case:
    """A protocol with the parameters that it needs."""

    kind: str
    fields: dict[str, Any]
    split: bool = False

    @property
    def name(self) -> str:
        """The protocol and what is set, with the kind of the amount where it is private."""
        amounts = {"budget", "target"} & set(self.fields.get("privacy", {}))
        return "-".join([self.kind, *self.fields, *amounts])


CASES = [
    Case("coordinate_descent", {"mu": 0.5}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": LAPLACE}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": GAUSSIAN, "schedule": "rounds"}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": LAPLACE, "start": WARM}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": TARGET}),
    Case("local", {}),
    Case("local_dp", {"privacy": {"mechanism": "laplace", "budget": BUDGET, "updates": 1, "clip": 1.0}}),
    Case(
        "local_dp_descent",
        {"mu": 0.5, "privacy": {"mechanism": "laplace", "budget": BUDGET, "updates": 1, "clip": 1.0}},
    ),
    Case("solitary", {}),
    Case("consensus", {}),
    Case("model_propagation", {}),
    Case("model_propagation", {"privacy": RELEASED_ONCE}),
    Case("model_propagation", {"schedule": "rounds"}),
    Case("muffliato", {}),
    Case("muffliato", {"gossip": "simple", "schedule": "async", "privacy": RELEASED_ONCE, "shared_noise": 2.0}),
    Case("collaborative_admm", {}),
    Case("collaborative_admm", {"schedule": "rounds"}),
    Case("consensus_admm", {}),
    Case("perturbed_admm", {"noise": {"alpha": 3.0, "growth": 1.03}, "penalty_growth": 1.05}),
    Case("edge_consensus_admm", {}),
    Case("dual_averaging", {}),
    Case("dual_averaging", {"privacy": SUBGRADIENT}),
    Case("dual_averaging", {"privacy": TARGET}),
    Case("push_sum_dual_averaging", {}),
    Case("push_sum_dual_averaging", {"privacy": SUBGRADIENT}),
    Case("decentralised_sgd", {}),
    Case("decentralised_sgd", {"order": "adapt_then_combine", "local_steps": 3}),
    Case("decentralised_sgd", {"order": "adapt_then_combine", "privacy": GAUSSIAN}),
    Case("decentralised_sgd", {"privacy": TARGET}),
    Case("gradient_tracking", {}),
    Case("extra", {}),
    Case("nids", {}),
    Case("ad_psgd", {}),
    Case("stochastic_gradient_push", {}),
    Case("choco_sgd", {"keep": 2}),
    Case("choco_sgd", {"compression": "sign"}),
    Case("gossip_learning", {}),
    Case("federated_averaging", {"local_steps": 2}),
    Case("random_walk_sgd", {}),
    Case("epidemic_learning", {}),
    Case("divshare", {}),
    Case("dada", {}),
    Case("epidemic_learning", {"schedule": "rounds"}),
    Case("decentralised_sgd", {"aggregation": "geometric_median"}),
    Case("feature_sharing", {}, split=True),
    Case("feature_sharing", {"order": "gauss_seidel"}, split=True),
    Case("feature_sharing", {"noise": {"scale": 3.0, "updates": 6}}, split=True),
    Case("feature_sharing", {"privacy": GAUSSIAN}, split=True),
    Case("feature_sgd", {}, split=True),
    Case("stale_feature_sharing", {}, split=True),
    Case("stale_feature_sharing", {"privacy": GAUSSIAN}, split=True),
    Case("stale_feature_sharing", {"privacy": TARGET}, split=True),
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


def world_on(case: Case, engine: Name = "auto"):
    task = split_task() if case.split else small_task(6, empty=False)
    protocol, away = resolve(case.kind), OnOff(kind="on_off", online=0.7, mean_down=2.0)
    setting = setting_of(
        task=task, graph=star(task) if case.split else None, availability=away, stop=Stop(time=40.0), seed=0, **BAD
    )
    return build_world(engine, setting, protocol, protocol_parameters(protocol, case.fields))


def numbers(world) -> dict[str, list[float]]:
    """Sum and norm of every block; counts of messages, steps and charges; epsilons of every agent."""
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


def check(world) -> None:
    """The run has ended, conserved its messages, stayed finite and kept its budget."""
    assert world.ended
    assert world.traffic.conserved
    for block in world.state.agent.values():
        assert np.isfinite(block.values).all()
    privacy = world.protocol.privacy
    if privacy is None:
        return
    if privacy.budget is not None:
        claimed = world.ledger.epsilon("claimed", privacy.budget.delta)[world.protected]
        assert (claimed <= privacy.budget.epsilon * (1 + 1e-9)).all()
    if getattr(privacy, "target", None) is not None:
        verified = world.ledger.verified(privacy.target.delta)[world.protected]
        assert (verified <= privacy.target.verified * (1 + 1e-9)).all()
    if privacy.updates is not None:
        assert max(world.ledger.releases(agent) for agent in np.flatnonzero(world.protected)) <= privacy.updates


def test_no_protocol_is_left_out():
    assert {case.kind for case in CASES} == set(PROTOCOLS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("engine", ["auto", "event"])
def test_a_run_keeps_its_budget_and_comes_to_the_numbers_that_are_kept(case, engine):
    world = drive(world_on(case, engine))
    check(world)
    kept, found = json.loads(FILE.read_text())[case.name], numbers(world)
    assert found.keys() == kept.keys()
    for name, values in found.items():
        np.testing.assert_allclose(values, kept[name], rtol=1e-6, atol=1e-9, err_msg=name)


if __name__ == "__main__":
    found = {case.name: numbers(drive(world_on(case))) for case in CASES}
    FILE.write_text(
        "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(all)}" for name, all in found.items()) + "\n}\n"
    )
