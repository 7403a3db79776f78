"""Random worlds that mix everything: models, splits, directed and changing graphs, attacks, step times, shared links.

``python -m tests.campaigns.mixed_worlds [--seed 0] [--cases 300] [--replay 17]``. Each world runs on the event engine
and on the one that ``auto`` picks, observed and not: they give the same bits. What an observer saw is counted
anew: copies and bytes that were sent, lost and delivered, edges that were closed, turns on an uplink, and the time of
steps. A world that a protocol refuses is drawn again, with another seed.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from hushnet.agents.errors import InputError
from hushnet.agents.tasks import TASKS
from hushnet.agents.tasks.task import Task
from hushnet.protocols.attacks import ATTACKS
from hushnet.protocols.base import Problem
from hushnet.simulator.network.adversaries import AdversaryParameters
from hushnet.simulator.network.compute import COMPUTE_TIMES
from hushnet.simulator.network.randomness import Draws, stable_ids
from hushnet.simulator.network.setting import Setting
from hushnet.simulator.network.topology import TOPOLOGIES
from hushnet.simulator.world.world import World

from .campaign import campaign, exit_with
from .world_cases import ROUNDS, Case, _one, random_setting
from .world_history import Arrival, Departure, History, Woke, history_of
from .worlds import EVERY, checked_ends, differences

PATIENT = {"schedule": {"kind": "rounds", "patience": 0.7}}
ASYNC = {"schedule": "async"}
RULES = ("median", "trimmed_mean", "krum", "geometric_median", "clipped_gossip")
KEPT = [{"compression": name, "keep": 2} for name in ("top_k", "random_k")]
COMPRESSED = [*KEPT, {"compression": "sign"}, {"compression": "quantise"}]
MIXED = [
    *(Case("decentralised_sgd", {"aggregation": rule, "byzantine": 0 if rule == "krum" else 1}) for rule in RULES),
    Case("decentralised_sgd", {"order": "adapt_then_combine", "local_steps": 2, "batch": 2}),
    Case("decentralised_sgd", PATIENT),
    *(Case("choco_sgd", {**fields, "precision": "float32"}) for fields in COMPRESSED),
    *(Case("stochastic_gradient_push", fields) for fields in (ASYNC, PATIENT, ROUNDS)),
    *(Case("epidemic_learning", {**fields, "local_steps": 2}) for fields in (ASYNC, PATIENT, ROUNDS)),
    *(Case("gossip_learning", fields) for fields in (ASYNC, {**PATIENT, "batch": 2})),
    *(Case(kind) for kind in ("gradient_tracking", "extra", "nids", "ad_psgd", "random_walk_sgd", "dual_averaging")),
    Case("federated_averaging", {"local_steps": 2, **ROUNDS}),
    Case("divshare", {"fragments": 3, "peers": 2}),
    Case("dada", {"graph_every": 2}),
    Case("push_sum_dual_averaging", {"sampling": "full", "mu": 0.1, "gamma": 1.0}),
]
DIRECTED = [
    {"kind": "directed_ring", "reach": 2},
    {"kind": "exponential"},
    {"kind": "directed_random", "probability": 0.5},
]
CHANGING = [
    {"kind": "complete", "changes": {"kind": "sample", "peers": 2, "every": 2}},
    {"kind": "complete", "changes": {"kind": "regular", "peers": 2}},
    {"kind": "exponential", "changes": {"kind": "in_turn"}},
    {"kind": "ring", "reach": 2, "changes": {"kind": "matchings"}},
    {"kind": "complete", "changes": {"kind": "times", "path": "times.csv"}},
    {"kind": "complete", "changes": {"kind": "mobility", "radius": 0.5, "speed": 0.2}},
]
MODELS = [{"kind": "softmax"}, {"kind": "perceptron", "hidden": [3]}, {"kind": "perceptron", "activation": "tanh"}]
MODELS += [{**model, "precision": "float32"} for model in MODELS]
SPLITS = [
    {"kind": "even"},
    {"kind": "dirichlet", "concentration": 0.3},
    {"kind": "shards"},
    {"kind": "quantity", "concentration": 0.5},
]
STEPS = [
    {"kind": "constant", "value": 0.4, "speed": {"kind": "stragglers", "share": 0.4, "slow": 0.2}},
    {"kind": "by_size", "each": 0.01, "base": 0.1, "rows": 2},
    {"kind": "trace", "path": "steps.csv"},
]
LOSSY = 1e-9
"""What sums of times may differ by, in time units."""


def mixed_setting(case: Case, rng: np.random.Generator, folder: Path) -> Setting:
    """A setting of `random_setting` with some of everything else.

    Raises
    ------
    InputError
        If the protocol, or its graph, cannot be run with what was drawn.
    """
    plain = random_setting(replace(case, agents=int(rng.integers(4, 9))), rng, folder)
    agents, directed = plain.task.agents, case.protocol.traits.directed
    task = _task(case, agents, plain.task, rng)
    (folder / "times.csv").write_text("source,target,from,until\n0,1,0,2.5\n1,0,4,5\n2,3,1,100\n")
    rows = [f"{agent},{time}" for agent in range(agents) for time in rng.choice([0.0, 0.25, 1.0], 3)]
    (folder / "steps.csv").write_text("\n".join(["agent,duration", *rows]) + "\n")
    graph, changes = plain.graph, None
    chosen = {"kind": "star"} if case.kind == "federated_averaging" else None
    if chosen is None and rng.random() < (0.8 if directed else 0.1):
        chosen = _one(rng, DIRECTED + CHANGING)
    if chosen is not None:
        made = TOPOLOGIES[chosen["kind"]].model_validate(chosen)
        graph, changes = made.build(task, rng=rng, base=folder), made.changes
    adversaries = None
    if rng.random() < 0.4:
        attack = {"kind": _one(rng, list(ATTACKS))}
        given = AdversaryParameters.model_validate({"share": 0.3, "attack": attack})
        adversaries = given.build(task, graph, Draws(int(rng.integers(1000))))
    chosen = _one(rng, [None, None, None, *STEPS])
    compute = None if chosen is None else COMPUTE_TIMES[chosen["kind"]].model_validate(chosen)
    shared = {"uplink": _one(rng, [None, None, 400.0]), "downlink": _one(rng, [None, None, 300.0])}
    network = plain.network.model_copy(update=shared)
    stop = plain.stop if plain.stop.time is None or plain.stop.time <= 20 else replace(plain.stop, time=20.0)
    setting = replace(
        plain, task=task, graph=graph, network=network, stop=stop, changes=changes, compute=compute,
        adversaries=adversaries,
    )  # fmt: skip
    case.protocol.check_problem(case.parameters, Problem(task, graph))
    World(setting, case.protocol, case.parameters)
    return setting


def _task(case: Case, agents: int, plain: Task, rng: np.random.Generator) -> Task:
    """The small task with a model, or some digits in a split."""
    if rng.random() < 0.4:
        return plain
    model = _one(rng, MODELS[::3] if case.protocol.learns == "convex" else MODELS)
    kind = _one(rng, ["linear_classification", "digits"])
    given: dict[str, Any] = {"kind": kind, "model": model}
    given |= {"split": {**_one(rng, SPLITS), "agents": agents}} if kind == "digits" else {
        "agents": agents, "dimension": 3, "samples": [1, 6], "targets": "common",
    }  # fmt: skip
    return _built(repr(given), int(rng.integers(3)))


@lru_cache(maxsize=64)
def _built(given: str, seed: int) -> Task:
    from ast import literal_eval

    fields, draws = literal_eval(given), Draws(seed)
    kind = TASKS[fields["kind"]].model_validate(fields)
    return kind.with_model(kind.build(rng=draws.generator("data"), data_dir=None), rng=draws.generator("model"))


def attempt(rng: random.Random, folder: Path, loud: bool) -> tuple[str, list[str]]:
    """One random world that its protocol admits: what ran it, and what is wrong."""
    numbers = np.random.default_rng(rng.getrandbits(64))
    for _ in range(50):
        case = MIXED[int(numbers.integers(len(MIXED)))]
        try:
            setting = mixed_setting(case, numbers, folder)
        except InputError:
            continue
        record = EVERY[int(numbers.integers(len(EVERY)))]
        if loud:
            print(case, setting.clock, setting.network, setting.availability, setting.stop, record, sep="\n")
            print(setting.changes, setting.compute, setting.adversaries, setting.task.model, sep="\n")
        try:
            return examine(case, setting, record)
        except Exception as error:
            if loud:
                raise
            return "raises", [f"raises: {type(error).__name__} with {case}: {str(error)[:300]}"]
    return "refused", ["no world was admitted in 50 draws"]


def examine(case: Case, setting: Setting, record: dict[str, Any]) -> tuple[str, list[str]]:
    """Run a world on both engines; what ran it, and what is wrong."""
    seen = history_of(case, setting, "event", record=record, observe=True, watch=False)
    other = history_of(case, setting, "auto", record=record, observe=False, watch=False)
    wrong = [*counted(seen), *checked_ends(seen), *differences(seen, other)]
    if not other.engine.startswith("event"):
        observed = history_of(case, setting, "auto", record=record, observe=True, watch=False)
        wrong += [*differences(seen, observed), *counted(observed), *checked_ends(observed)]
    return other.engine, [f"{what} ({case.kind}, {other.engine})" for what in wrong]


def counted(history: History) -> list[str]:
    """What an observer counted that the world's tallies, the graph, links or step times do not allow."""
    setting, wrong = history.setting, []
    departures, arrivals = history.of(Departure), history.of(Arrival)
    tallies = history.events[-1].tallies
    sizes = {one.order: one.size for one in departures}
    for unit, weigh in (("links", lambda one: 1), ("bytes", lambda one: sizes[one.order])):
        found = {
            "sent": sum(map(weigh, departures)),
            "lost": sum(weigh(one) for one in departures if one.lost),
            "delivered": sum(weigh(one) for one in arrivals if one.up),
            "dropped": sum(weigh(one) for one in arrivals if not one.up),
        }
        given = {name: tallies[unit][name] for name in found}
        if found != given:
            wrong.append(f"conservation: {unit} {given}, and observers counted {found}")
    crowded = _crowded(setting, arrivals, sizes)
    return [*wrong, *_closed(setting, departures), *_overtaken(setting, departures), *crowded, *_hasty(history)]


def _closed(setting: Setting, departures: list[Departure]) -> list[str]:
    """Copies over edges that are no out-edges, or are closed at the tick of their step."""
    graph, numbers = setting.graph, stable_ids(setting.task.ids)
    opening = None
    if setting.changes is not None:
        opening = setting.changes.build(graph, setting.task.ids, numbers, setting.draws, setting.base)
    at_times = getattr(setting.changes, "kind", None) in ("times", "mobility")
    for one in departures:
        edges = graph.edges_of(one.sender)
        rank = int(np.flatnonzero(graph.heads[edges] == one.receiver)[0])
        if not graph.opened[edges][rank]:
            return [f"closed: {one.sender} sends to {one.receiver} against the direction"]
        chosen = opening is None or at_times or not one.vector or opening(one.sender, one.tick, one.now)[rank]
        if not chosen:
            return [f"closed: {one.sender} sends to {one.receiver} at tick {one.tick}"]
    return []


def _overtaken(setting: Setting, departures: list[Departure]) -> list[str]:
    """Copies that leave an uplink before their turn, by Lindley's recursion over each sender's copies."""
    if setting.network.uplink is None:
        return []
    free: dict[int, float] = {}
    for one in departures:
        begin = max(free.get(one.sender, 0.0), one.now)
        free[one.sender] = begin + one.size / setting.network.uplink
        if one.delay < free[one.sender] - one.now - LOSSY * (1 + one.now) * len(departures):
            return [f"uplink: a copy of {one.sender} at {one.now} is {one.delay} late, and not its turn"]
    return []


def _crowded(setting: Setting, arrivals: list[Arrival], sizes: dict[int, int]) -> list[str]:
    """Copies that a receiver's downlink gives out sooner after the one before than their bytes take."""
    if setting.network.downlink is None:
        return []
    last: dict[int, float] = {}
    for one in sorted(arrivals, key=lambda one: (one.now, -sizes[one.order])):  # what waits without bytes comes with it
        transfer = sizes[one.order] / setting.network.downlink
        if one.now - last.get(one.receiver, 0.0) < transfer - LOSSY * (1 + one.now):
            return [f"downlink: copies reach {one.receiver} at {last[one.receiver]} and {one.now}, {transfer} apart"]
        last[one.receiver] = one.now
    return []


def _hasty(history: History) -> list[str]:
    """Steps of an agent that are closer than the first of them takes, where all of its steps take as long."""
    setting = history.setting
    if setting.compute is None or setting.compute.kind == "trace" or history.case.kind == "ad_psgd":
        return []
    times = setting.compute.build(setting.task, stable_ids(setting.task.ids), setting.draws, setting.base)
    last: dict[int, float] = {}
    for woke in history.of(Woke):
        if woke.agent in last and woke.now - last[woke.agent] < times.of(woke.agent, 0) - LOSSY:
            return [f"time of steps: {woke.agent} steps at {last[woke.agent]} and {woke.now}"]
        last[woke.agent] = woke.now
    return []


if __name__ == "__main__":
    exit_with(campaign("mixed worlds", attempt, cases=300))
