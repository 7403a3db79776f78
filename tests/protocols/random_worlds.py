"""Small random worlds for every shipped protocol: delays, losses, absences, joins, leaves, clocks and starts.

``python -m tests.protocols.random_worlds 200 7`` runs 200 of them for each case and seed 7, and prints what is broken.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hushnet.agents.availability import Always, Diurnal, OnOff, Window
from hushnet.agents.errors import Divergence, Stall
from hushnet.agents.graph import Graph
from hushnet.protocols import catalog
from hushnet.simulator.bench import protocol_parameters, small_task
from hushnet.simulator.choice import rounds_of
from hushnet.simulator.clocks import Periodic, Poisson
from hushnet.simulator.engine import build_world
from hushnet.simulator.network import NetworkParameters
from hushnet.simulator.randomness import Draws
from hushnet.simulator.recorder import Recorder
from hushnet.simulator.setting import Setting, Stop

from .columns import split_task, star

NOISY = {"mechanism": "laplace", "budget": {"epsilon": 1.0, "delta": 1e-3}, "updates": 6, "clip": 1.0}
GAUSSIAN = {"mechanism": "gaussian", "multiplier": 2.0, "sensitivity": "clip", "clip": 1.0}
FULL = {"sampling": "full", "mu": 0.1, "gamma": 1.0}
ROUNDS = {"schedule": "rounds"}
PATIENT = {"schedule": {"kind": "rounds", "patience": 0.7}}


@dataclass(frozen=True)
class Case:
    """A protocol with some parameters; ``split`` if features are split between parties."""

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    split: bool = False


CASES = [
    Case("local"),
    Case("solitary"),
    Case("consensus"),
    Case("local_dp", {"privacy": {**NOISY, "updates": 1}}),
    Case("coordinate_descent", {"mu": 0.5}),
    Case("coordinate_descent", {"mu": 0.5, "updates": 4, "start": "local"}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": NOISY}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": NOISY, **ROUNDS}),
    Case("coordinate_descent", {"mu": 0.5, **ROUNDS}),
    Case("coordinate_descent", {"mu": 0.5, **PATIENT}),
    Case("model_propagation", {"alpha": 0.7}),
    Case("model_propagation", {"alpha": 0.9, "partners": "weighted", "confidence": "count"}),
    Case("model_propagation", {"alpha": 0.7, "schedule": "async"}),
    Case("model_propagation", {"alpha": 0.7, **ROUNDS}),
    Case("model_propagation", {"alpha": 0.7, **PATIENT}),
    Case("model_propagation", {"closed_form": True}),
    Case("model_propagation", {"privacy": {**GAUSSIAN, "updates": 1}}),
    Case("collaborative_admm"),
    Case("collaborative_admm", {"local_steps": 2, "rho": 0.2, "objective": "bellet", "start": "zero"}),
    Case("collaborative_admm", {"rho": 3.0, **ROUNDS}),
    Case("collaborative_admm", PATIENT),
    Case("consensus_admm", {"penalty_growth": 1.05, "dual_step_growth": 1.02}),
    Case("consensus_admm", {"loss_weight": 5.0, "dual_step": [0.1, 0.2, 0.3, 0.4, 0.5, 0.1]}),
    Case("consensus_admm", {"dual_step_growth": [1.0, 1.1, 1.2, 1.0, 1.0, 1.0]}),
    Case("perturbed_admm", {"noise": {"alpha": 3.0, "updates": 5}}),
    Case("perturbed_admm", {"noise": {"alpha": 0.5, "growth": 1.1}}),
    Case("edge_consensus_admm"),
    Case("edge_consensus_admm", {"penalty": 2.0, "loss_weight": 4.0}),
    Case("dual_averaging", FULL),
    Case("dual_averaging", {"step_weights": "constant", "privacy": {**GAUSSIAN, "updates": 7}, "radius": 1.0}),
    Case("push_sum_dual_averaging", FULL),
    Case("push_sum_dual_averaging", {"step_weights": "constant", **PATIENT}),
    Case("push_sum_dual_averaging", {"privacy": {**GAUSSIAN, "updates": 7}, "radius": 1.0}),
    Case("feature_sharing", {"rho": 1.0}, split=True),
    Case("feature_sharing", {"order": "gauss_seidel"}, split=True),
    Case("feature_sharing", {**PATIENT, "privacy": {**GAUSSIAN, "updates": 3}}, split=True),
    Case("stale_feature_sharing", {"rho": 1.0}, split=True),
    Case("stale_feature_sharing", {"staleness": "unbounded", "damping": 1.0}, split=True),
    Case("feature_sgd", {"batch": 10}, split=True),
]
LATENCIES: list[Any] = [
    0.0,
    0.7,
    {"kind": "uniform", "high": 2.0},
    {"kind": "exponential", "mean": 1.5},
    {"kind": "lognormal", "mean": 0.7, "sigma": 1.5},
    {"kind": "gamma", "mean": 0.5, "shape": 0.5},
]
LOSSES: list[Any] = [0.0, 0.0, 0.3, 0.6, {"kind": "gilbert_elliott", "mean_good": 2.0, "mean_bad": 2.0}]


def random_setting(case: Case, rng: np.random.Generator) -> Setting:
    """Any network, clock and availability that the protocol can run with; one in three is without loss or absence."""
    protocol = catalog.resolve(case.kind)
    parameters = protocol_parameters(protocol, case.fields)
    in_rounds = rounds_of(protocol.traits_for(parameters), parameters) is not None
    task = split_task(rows=12, seed=int(rng.integers(1000))) if case.split else small_task(seed=int(rng.integers(1000)))
    calm = rng.random() < 1 / 3
    availability: Any = Always(kind="always")
    if not calm:
        choices = [
            availability,
            OnOff(kind="on_off", online=0.6, mean_down=1.5),
            Diurnal(kind="diurnal", period=4.0, online=0.5),
        ]
        if not in_rounds:
            come, go = Window(share=0.5, between=[1.0, 8.0]), Window(share=0.5, between=[4.0, 12.0])
            choices += [
                Always(kind="always", joins=come, leaves=go),
                OnOff(kind="on_off", online=0.7, mean_down=0.5, joins=come),
            ]
            choices += [OnOff(kind="on_off", online=0.7, mean_down=2.0, joins=come, leaves=go)]
        availability = choices[rng.integers(len(choices))]
    network = {
        "latency": LATENCIES[rng.integers(len(LATENCIES))],
        "loss": 0.0 if calm else LOSSES[rng.integers(len(LOSSES))],
        "start": ["known", "own", "zero"][rng.integers(3)],
    }
    clocks = [Poisson(kind="poisson"), Periodic(kind="periodic", jitter=0.3), Periodic(kind="periodic", phase="common")]
    stops = [Stop(time=20.0), Stop(time=60.0), Stop(updates=9, time=80.0), Stop(vectors=150, time=80.0)]
    return Setting(
        task=task,
        graph=star(task) if case.split else _graph(task.agents, rng),
        clock=clocks[rng.integers(len(clocks))],
        network=NetworkParameters.model_validate(network),
        availability=availability,
        stop=stops[rng.integers(len(stops))],
        draws=Draws(int(rng.integers(2**32))),
    )


def checked_run(case: Case, setting: Setting, engine: str, *, activations: int | None = None, protocol=None):
    """A world after its run, and the invariants that were watched in it."""
    protocol = protocol or catalog.resolve(case.kind)
    recorder = Recorder([])
    every = None if activations else 0.7
    parameters = protocol_parameters(protocol, case.fields)
    world = build_world(engine, setting, protocol, parameters, recorder=recorder, every=every, activations=activations)
    try:
        world.run()
    except (Divergence, Stall):
        recorder.sample(world, final=True)
    assert recorder.invariants is not None
    return world, recorder.invariants


def _graph(agents: int, rng: np.random.Generator) -> Graph:
    """A random graph, perhaps disconnected, perhaps with agents on their own."""
    upper = np.triu(rng.random((agents, agents)) < rng.choice([0.3, 0.6, 1.0]), 1)
    weights = upper * rng.uniform(0.5, 2.0, (agents, agents))
    return Graph.from_matrix(weights + weights.T)


def main(worlds: int, seed: int) -> None:
    """Run many, and print what is broken and how often each was looked at."""
    for number, case in enumerate(CASES):
        seen: dict[str, list[float]] = {}
        for rank in range(worlds):
            rng = np.random.default_rng([seed, number, rank])
            setting = random_setting(case, rng)
            activations = 3 if rng.random() < 0.3 else None
            for engine in ("reference", "auto"):
                world, check = checked_run(case, setting, engine, activations=activations)
                for entry in check.report():
                    mine = seen.setdefault(entry["name"], [0, 0.0])
                    mine[0], mine[1] = mine[0] + entry["checked"], max(mine[1], entry["worst"])
                    if entry["broken"]:
                        print("BROKEN", case, [seed, number, rank], world.engine, entry, setting.network, flush=True)
        print(case.kind, case.fields, seen, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
