"""Small random settings of every clock, latency, loss, absence and topology, for every protocol in all its modes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from hushnet.agents.availability import AvailabilityParameters
from hushnet.agents.graph import Graph
from hushnet.protocols import catalog
from hushnet.protocols.base import Protocol, Traits
from hushnet.protocols.schedule_selection import rounds_of
from hushnet.simulator.contract.bench import protocol_parameters, small_task
from hushnet.simulator.network.clocks import ClockParameters
from hushnet.simulator.network.network import NetworkParameters
from hushnet.simulator.network.randomness import Draws
from hushnet.simulator.network.setting import Setting, Stop
from hushnet.simulator.network.topology import TopologyParameters
from pydantic import TypeAdapter

from ..engine.exchange import Forgetful, Gossip
from ..engine.helpers import Chatter, Collect, Echo, Stamp, Whisper
from ..protocols.columns import split_task, star

NOISY = {"mechanism": "laplace", "budget": {"epsilon": 1.0, "delta": 1e-3}, "updates": 6, "clip": 1.0}
GAUSSIAN = {"mechanism": "gaussian", "multiplier": 2.0, "sensitivity": "clip", "clip": 1.0}
TARGET = {"mechanism": "gaussian", "target": {"verified": 2.0, "delta": 1e-3}, "updates": 5, "clip": 1.0}
BASIC = {
    "mechanism": "laplace",
    "budget": {"epsilon": 3.0, "delta": 0.0, "by": "basic_composition"},
    "updates": 4,
    "clip": 1.0,
}
CAPPED = {
    "mechanism": "gaussian",
    "budget": {"epsilon": 2.0, "delta": 1e-3, "by": "gaussian"},
    "updates": 5,
    "clip": 1.0,
}
FULL = {"sampling": "full", "mu": 0.1, "gamma": 1.0}
ROUNDS = {"schedule": "rounds"}
PATIENT = {"schedule": {"kind": "rounds", "patience": 0.7}}
RESENDING = {"schedule": {"kind": "rounds", "resend_after": 0.8}}
HASTY = {"schedule": {"kind": "exchange", "resend_after": 0.6}}


class StampInRounds(Stamp):
    """Stamps in rounds, each read in its own round."""

    traits = Traits(trigger="round", inbox="per_round")

    def step(self, me):
        super().step(me)
        if me.agent == 2 and me.round == 5:
            me.fall_silent()


class EchoOnce(Echo):
    """Agents answer only those stamps that are news to them."""

    def react(self, me, message):
        if message.kind == "model" and message.tick % 2:
            me.send("answer", me.stream("noise").normal(size=1), me.public("no data in it"), to=message.sender)


PROBES: dict[str, type[Protocol]] = {
    "stamp": Stamp,
    "echo": Echo,
    "echo once": EchoOnce,
    "chatter": Chatter,
    "collect": Collect,
    "whisper": Whisper,
    "stamp in rounds": StampInRounds,
    "gossip": Gossip,
    "forgetful": Forgetful,
}
"""Tiny protocols that show how the world is driven, by name."""


@dataclass(frozen=True)
class Case:
    """A protocol with some parameters; ``split`` if features are split between parties, ``agents`` if lists say so."""

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    split: bool = False
    agents: int | None = None

    @property
    def protocol(self) -> type[Protocol]:
        """The class of the protocol."""
        return PROBES[self.kind] if self.kind in PROBES else catalog.resolve(self.kind)

    @property
    def parameters(self) -> Any:
        """Its parameters."""
        return protocol_parameters(self.protocol, self.fields)

    @property
    def in_rounds(self) -> bool:
        """Whether it runs in rounds."""
        return rounds_of(self.protocol.traits_for(self.parameters), self.parameters) is not None


CASES = [
    Case("local"),
    Case("solitary"),
    Case("consensus"),
    Case("local_dp", {"privacy": {**NOISY, "updates": 1}}),
    Case("local_dp_descent", {"mu": 0.5, "privacy": {**NOISY, "updates": 1}}),
    Case("coordinate_descent", {"mu": 0.5}),
    Case("coordinate_descent", {"mu": 0.5, "updates": 4, "start": "local"}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": NOISY}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": BASIC}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": CAPPED, "start": "constant", "start_value": 0.5}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": TARGET}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": {**NOISY, "allocation": "late"}}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": NOISY, **ROUNDS}),
    Case("coordinate_descent", {"mu": 0.5, "privacy": {**GAUSSIAN, "updates": 7}, **PATIENT}),
    Case("coordinate_descent", {"mu": 0.5, **ROUNDS}),
    Case("coordinate_descent", {"mu": 0.5, **RESENDING}),
    Case("coordinate_descent", {"mu": 0.5, **PATIENT}),
    Case("model_propagation", {"alpha": 0.7}),
    Case("model_propagation", {"alpha": 0.7, **HASTY}),
    Case("model_propagation", {"alpha": 0.9, "partners": "weighted", "confidence": "count"}),
    Case("model_propagation", {"alpha": 0.7, "schedule": "async"}),
    Case("model_propagation", {"alpha": 0.7, **ROUNDS}),
    Case("model_propagation", {"alpha": 0.7, **PATIENT}),
    Case("model_propagation", {"closed_form": True}),
    Case("muffliato", {}),
    Case("muffliato", {"gossip": "simple", "schedule": "async", "privacy": {**GAUSSIAN, "updates": 1}}),
    Case("muffliato", {"gossip": "simple", "privacy": {**TARGET, "updates": 1}, "shared_noise": 2.0, **PATIENT}),
    Case("model_propagation", {"privacy": {**GAUSSIAN, "updates": 1}}),
    Case("model_propagation", {"privacy": {**TARGET, "updates": 1}, "schedule": "async"}),
    Case("ad_psgd"),
    Case("ad_psgd", {"batch": 2}),
    Case("stochastic_gradient_push"),
    Case("choco_sgd", {"compression": "random_k"}),
    Case("choco_sgd", {"compression": "quantise", "precision": "float16"}),
    Case("gossip_learning"),
    Case("random_walk_sgd"),
    Case("federated_averaging", {"local_steps": 2, **ROUNDS}),
    Case("epidemic_learning"),
    Case("divshare", {"fragments": 3, "peers": 2}),
    Case("dada", {"graph_every": 2}),
    Case("epidemic_learning", {"batch": 2, **PATIENT}),
    Case("stochastic_gradient_push", {"batch": 2, **PATIENT}),
    Case("decentralised_sgd"),
    Case("decentralised_sgd", {"aggregation": "median"}),
    Case("decentralised_sgd", {"order": "adapt_then_combine", "local_steps": 3, **PATIENT}),
    Case("gradient_tracking"),
    Case("extra"),
    Case("nids"),
    Case("collaborative_admm"),
    Case("collaborative_admm", HASTY),
    Case("collaborative_admm", {"local_steps": 2, "rho": 0.2, "objective": "bellet", "start": "zero"}),
    Case("collaborative_admm", {"rho": 3.0, **ROUNDS}),
    Case("collaborative_admm", PATIENT),
    Case("consensus_admm", {"penalty_growth": 1.05, "dual_step_growth": 1.02}),
    Case("consensus_admm", {"loss_weight": 5.0, "dual_step": [0.1, 0.2, 0.3, 0.4, 0.5, 0.1]}, agents=6),
    Case("consensus_admm", {"dual_step_growth": [1.0, 1.1, 1.2, 1.0, 1.0, 1.0]}, agents=6),
    Case("consensus_admm", RESENDING),
    Case("perturbed_admm", {"noise": {"alpha": 3.0, "updates": 5}}),
    Case("perturbed_admm", {"noise": {"alpha": 0.5, "growth": 1.1}}),
    Case("perturbed_admm", {"noise": {"target": {"verified": 3.0, "delta": 1e-3}, "updates": 4}}),
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
    Case("stale_feature_sharing", {"privacy": {**GAUSSIAN, "updates": 4}}, split=True),
    Case("feature_sgd", {"batch": 10}, split=True),
]
"""All shipped protocols with all their modes."""

PROBING = [
    *(Case(kind) for kind in PROBES),
    *(Case(kind, schedule) for kind in ("stamp", "collect", "whisper") for schedule in (ROUNDS, PATIENT, RESENDING)),
    Case("stamp in rounds", PATIENT),
    Case("stamp in rounds", {"schedule": {"kind": "rounds", "resend_after": "never"}}),
    Case("gossip", HASTY),
    Case("forgetful", {"schedule": {"kind": "exchange", "timeout": 1.1}}),
]
"""Tiny protocols in all schedules."""


def random_setting(case: Case, rng: np.random.Generator, folder: Path | None = None) -> Setting:
    """Any network, clock, topology and availability that the protocol can run with.

    One in three is without loss or absence. Only with a ``folder`` some of it is read from files.
    """
    agents = case.agents or int(rng.choice([1, 2, 3, 5, 6, 6, 8]))
    seed = int(rng.integers(1000))
    empty = agents > 1 and bool(rng.integers(2))
    task = split_task(rows=12, seed=seed) if case.split else small_task(agents, seed=seed, empty=empty)
    task = replace(task, profiles=rng.normal(size=(task.agents, 3)), profiles_are="made up")
    calm = rng.random() < 1 / 3
    graph = star(task) if case.split else _graph(task, rng, folder)
    until = {"time": 40.0}
    stops = [{"time": 12.25}, {"time": 20.0}, until, {"updates": 9, **until}, {"vectors": 150, **until}]
    stops += [{"activations": 40, **until}]
    return Setting(
        task=task,
        graph=graph,
        clock=TypeAdapter(ClockParameters).validate_python(_clock(task.agents, rng, case, folder)),
        network=NetworkParameters.model_validate(_network(task.agents, rng, folder, calm=calm)),
        availability=TypeAdapter(AvailabilityParameters).validate_python(
            {"kind": "always"} if calm else _availability(task.agents, rng, case, folder)
        ),
        stop=Stop(**_one(rng, stops)),
        draws=Draws(int(rng.integers(2**63))),
        base=folder,
    )


def _one(rng: np.random.Generator, options: list[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


def _clock(agents: int, rng: np.random.Generator, case: Case, folder: Path | None) -> dict[str, Any]:
    order = rng.integers(agents, size=40).tolist()
    options: list[dict[str, Any]] = [
        {"kind": "poisson"},
        {"kind": "poisson", "rate": rng.uniform(0.3, 3.0, agents).tolist()},
        {"kind": "poisson", "rate": {"kind": "uniform", "low": 0.5, "high": 2.0}},
        {"kind": "poisson", "rate": {"kind": "lognormal", "sigma": 0.7}},
        {"kind": "poisson", "rate": {"kind": "stragglers", "share": 0.4, "slow": 0.2}},
        {"kind": "periodic", "jitter": 0.3},
        {"kind": "periodic", "phase": "common"},
        {"kind": "periodic", "phase": "common", "period": rng.choice([0.5, 1.0, 1.5], agents).tolist()},
    ]
    if not case.in_rounds:
        options += [{"kind": "recorded", "order": order, "spacing": 0.25}]
        if folder is not None:
            (folder / "order.txt").write_text("\n".join(map(str, order)) + "\n")
            options += [{"kind": "recorded", "path": "order.txt", "spacing": 0.5}]
    return _one(rng, options)


def _network(agents: int, rng: np.random.Generator, folder: Path | None, *, calm: bool) -> dict[str, Any]:
    latencies: list[Any] = [
        *(0.0, 0.0, 0.5, 0.7),
        {"kind": "uniform", "low": 0.1, "high": 2.0},
        {"kind": "exponential", "mean": 1.5},
        {"kind": "lognormal", "mean": 0.7, "sigma": 1.5},
        {"kind": "gamma", "mean": 0.5, "shape": 0.5},
    ]
    if folder is not None:
        rows = [f"{i},{j},{rng.choice([0.0, 0.25, 1.3])}" for i in range(agents) for j in range(agents) if (i + j) % 3]
        (folder / "delays.csv").write_text("\n".join(["sender,receiver,delay", *rows]) + "\n")
        latencies += [{"kind": "matrix", "path": "delays.csv", "default": 0.4}]
    bursts = {"kind": "gilbert_elliott", "mean_good": 2.0, "mean_bad": 2.0}
    losses: list[Any] = [0.0, 0.0, 0.3, 0.6, bursts, {**bursts, "loss_good": 0.1, "loss_bad": 0.8}]
    return {
        "latency": _one(rng, latencies),
        "loss": 0.0 if calm else _one(rng, losses),
        "bandwidth": _one(rng, [None, None, 16.0, 100.0]),
        "header_bytes": _one(rng, [0, 16]),
        "start": _one(rng, ["known", "own", "zero"]),
    }


def _availability(agents: int, rng: np.random.Generator, case: Case, folder: Path | None) -> dict[str, Any]:
    options: list[dict[str, Any]] = [
        {"kind": "always"},
        {"kind": "on_off", "online": 0.6, "mean_down": 1.5},
        {"kind": "on_off", "online": 0.8, "mean_down": 0.4, "distribution": "lognormal", "sigma": 1.3},
        {"kind": "diurnal", "period": 4.0, "online": 0.5},
        {"kind": "diurnal", "period": 2.0, "online": 0.7, "spread": 0.3},
    ]
    if folder is not None:
        rows = []
        for agent in range(agents):
            points = np.sort(rng.choice(np.arange(80), 2 * int(rng.integers(5)), replace=False)) / 4
            rows += [f"{agent},{a},{b}" for a, b in zip(points[::2], points[1::2], strict=True)]
        (folder / "up.csv").write_text("\n".join(["agent,up_from,up_to", *rows]) + "\n")
        options += [{"kind": "trace", "path": "up.csv", "others": _one(rng, ["up", "down"])}]
    chosen = _one(rng, options)
    if not case.in_rounds and rng.random() < 0.6:
        windows = [None, {"share": 0.5, "between": [1.0, 8.0]}, {"share": 0.6, "between": [2.0, 2.0]}]
        chosen |= {"joins": _one(rng, windows), "leaves": _one(rng, [*windows, {"share": 0.5, "between": [4.0, 12.0]}])}
    return chosen


def _graph(task: Any, rng: np.random.Generator, folder: Path | None) -> Graph:
    """A random graph, perhaps disconnected, perhaps with agents on their own; or one of a topology."""
    agents = task.agents
    if agents < 5 or rng.random() < 0.4:
        upper = np.triu(rng.random((agents, agents)) < rng.choice([0.3, 0.6, 1.0]), 1)
        weights = upper * rng.uniform(0.5, 2.0, (agents, agents))
        return Graph.from_matrix(weights + weights.T)
    options: list[dict[str, Any]] = [
        {"kind": "complete"},
        {"kind": "ring"},
        {"kind": "ring", "reach": 2},
        {"kind": "torus", "rows": 1 if agents % 2 else 2},
        {"kind": "erdos_renyi", "probability": 0.4},
        {"kind": "watts_strogatz", "rewire": 0.3},
        {"kind": "barabasi_albert", "links": 2},
        {"kind": "random_regular"},
        {"kind": "star"},
        {"kind": "angular_similarity", "gamma": 1.0},
        {"kind": "gaussian_kernel", "sigma": 1.0},
        {"kind": "knn", "k": 2},
    ]
    if folder is not None:
        rows = [f"{i},{(i + 1) % agents},{rng.uniform(0.5, 2.0)}" for i in range(agents)]
        (folder / "edges.csv").write_text("\n".join(["source,target,weight", *rows]) + "\n")
        options += [{"kind": "edge_list", "path": "edges.csv"}]
    chosen = {**_one(rng, options), "allow_isolated": True, "allow_disconnected": True}
    return TypeAdapter(TopologyParameters).validate_python(chosen).build(task, rng=rng, base=folder)
