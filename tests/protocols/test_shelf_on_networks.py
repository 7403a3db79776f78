"""Every method of the shelf on networks that lose, delay, come and go, have directions or change: one table.

``python -m tests.protocols.test_shelf_on_networks`` writes it into the page ``rounds``.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path

import numpy as np
from hushnet.agents.availability import OnOff
from hushnet.agents.errors import InputError
from hushnet.agents.objectives.objectives import mean_losses
from hushnet.agents.objectives.pooled_objective import PooledObjective
from hushnet.protocols.base import Problem
from hushnet.protocols.catalog import resolve
from hushnet.protocols.invariants import NoInvariant
from hushnet.simulator import docs
from hushnet.simulator.contract.bench import protocol_parameters, small_task
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.network.topology import TOPOLOGIES
from hushnet.simulator.recording.recorder import Recorder

from ..engine.driving import build_world, drive
from .worlds import setting_of

AGENTS, STEP = 8, {"step_size": 0.1, "mu": 0.05}
SHELF = {
    "decentralised_sgd": STEP,
    "gradient_tracking": STEP,
    "extra": STEP,
    "nids": STEP,
    "choco_sgd": {**STEP, "keep": 2, "consensus_step": 0.3},
    "dual_averaging": {"mu": 0.05, "gamma": 1.0, "sampling": "full"},
    "ad_psgd": STEP,
    "stochastic_gradient_push": STEP,
    "push_sum_dual_averaging": {"mu": 0.05, "gamma": 1.0, "sampling": "full"},
    "epidemic_learning": STEP,
    "gossip_learning": STEP,
    "divshare": STEP,
    "random_walk_sgd": STEP,
    "federated_averaging": STEP,
    "dada": {},
}
PERSONAL = ("dada",)
"""Methods of whose models each is for its agent alone."""
LOSS, LATENCY = {"loss": 0.3, "latency": 0.2}, {"latency": 5.0}
CHURN = {"latency": 0.2, "availability": OnOff(kind="on_off", online=0.7, mean_down=2.0)}
CALM = {"latency": 0.2}
DIRECTED, CHANGING = {"kind": "exponential"}, {"kind": "complete", "changes": {"kind": "sample", "peers": 2}}
BOTH = {"kind": "exponential", "changes": {"kind": "in_turn"}}
NETWORKS = {
    "30 % loss": (LOSS, None),
    "latency 5": (LATENCY, None),
    "churn": (CHURN, None),
    "directed": (CALM, DIRECTED),
    "changing": (CALM, CHANGING),
    "all of these": (LOSS | LATENCY | {"availability": CHURN["availability"]}, BOTH),
}
PAGE = Path(docs.__file__).parent / "pages" / "rounds.md"


def outcome(kind, network, topology):
    """What a network does to a protocol: refused; kept, none or broken of its invariants; and whether it diverges."""
    task, protocol = small_task(AGENTS, empty=False), resolve(kind)
    given = topology or {"kind": "ring", "reach": 2}
    if kind == "federated_averaging" and given != DIRECTED:
        given = {"kind": "star"} if topology is None else {"kind": "star", "changes": {"kind": "sample", "peers": 3}}
    made = TOPOLOGIES[given["kind"]].model_validate(given)
    graph, parameters = made.build(task, rng=np.random.default_rng(1)), protocol_parameters(protocol, SHELF[kind])
    setting = setting_of(task=task, graph=graph, stop=Stop(time=400.0), **network)
    recorder = Recorder([])
    try:
        protocol.check_problem(parameters, Problem(task, graph))
        setting = dataclasses.replace(setting, changes=made.changes)
        world = build_world("auto", setting, protocol, parameters, recorder=recorder, every=5.0)
    except InputError:
        return "refused"
    drive(world)
    assert world.traffic.conserved
    kept = recorder.invariants.report()
    said = "broken" if any(one["broken"] for one in kept) else "kept" if kept else "runs"
    losses = (
        partial(mean_losses, task) if kind in PERSONAL else PooledObjective.mean_of_agents(task, parameters.mu).value
    )
    models = world.protocol.models(world.state)
    end, start = (float(np.mean(losses(at))) for at in (models, np.zeros_like(models)))
    return said if end < start else f"{said}, diverges"


def table():
    """The lines of the table."""
    lines = [f"| method | keeps | {' | '.join(NETWORKS)} |", "| --- " * (2 + len(NETWORKS)) + "|"]
    for kind in SHELF:
        task, protocol = small_task(AGENTS, empty=False), resolve(kind)
        graph = TOPOLOGIES["star"].model_validate({"kind": "star"}).build(task, rng=np.random.default_rng(1))
        made = protocol(protocol_parameters(protocol, SHELF[kind]), Problem(task, graph))
        said = made.invariants()
        keeps = f"nothing: {said.why}" if isinstance(said, NoInvariant) else ", ".join(one.name for one in said)
        cells = [outcome(kind, *network) for network in NETWORKS.values()]
        lines.append(f"| `{kind}` | {keeps} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def test_the_table_of_the_page_is_what_runs_come_to():
    found = table()
    assert f"\n\n{found}\n" in PAGE.read_text()
    assert "broken" not in found
    assert all(word in found for word in ("kept", "refused", "runs", "diverges"))


if __name__ == "__main__":
    text = PAGE.read_text()
    begin = text.index("| method |")
    PAGE.write_text(text[:begin] + table() + text[text.index("\n\n", begin) + 1 :])
