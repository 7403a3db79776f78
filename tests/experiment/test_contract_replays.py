"""A sweep replays a user's protocol at some of its points, and verifies no epsilon at the others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.noise import GradientNoise
from hushnet.protocols.privacy.budget import Privacy
from hushnet.protocols.steps import Constants, average, local_gradient, perturbed
from hushnet.simulator import run
from hushnet.simulator.analysis.summary import print_summary
from hushnet.simulator.cli import main
from hushnet.simulator.compare.comparison import compare
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.experiment import contract_replays as proving
from hushnet.simulator.experiment.contract_replays import to_replay
from hushnet.simulator.experiment.plan import plan
from hushnet.simulator.figures import frontier
from hushnet.simulator.figures.figure_files import drawing
from hushnet.simulator.figures.style import FigureStyle
from hushnet.simulator.language.loading import load
from hushnet.simulator.report.report_page import write_report
from rich.console import Console

UPDATES = 3
PRIVACY = {"mechanism": "gaussian", "multiplier": 3.0, "updates": UPDATES, "sensitivity": "clip", "clip": 0.5}
EPSILON = 3.0
"""Above what three releases at multiplier 3 come to, at delta 1e-5."""
TIMES = [2.0, 3.0, 9.0, 4.0, 5.0, 6.0]


class GossipParameters(ProtocolParameters):
    privacy: Privacy | None = None


class Gossip(Protocol):
    """Averages models, and descends along clipped gradients under noise."""

    Parameters = GossipParameters

    def prepare(self):
        self.step_noise = GradientNoise(
            self.parameters.privacy, self.problem.task, weights=np.full(UPDATES, 1 / UPDATES)
        )

    def constants(self):
        return Constants(run={"limit": UPDATES, "many": self.problem.task.agents >= 12})

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.send("model", me.model, me.public("the start does not depend on data"))

    @staticmethod
    def step(me):
        gradient = perturbed(me, local_gradient(me, me.model))
        me.model = (me.model + average(me)) / 2 - 0.1 * gradient
        me.message = me.model
        return me.updates + 1 >= me.limit


class LeaksInACrowd(Gossip):
    """Adds its exact gradient to what it sends where agents are many."""

    @staticmethod
    def step(me):
        exact = local_gradient(me, me.model)
        gradient = perturbed(me, exact)
        me.model = (me.model + average(me)) / 2 - 0.1 * gradient
        me.message = me.model + me.many * exact
        return me.updates + 1 >= me.limit


def scenario(kind="mine", **fields):
    return {
        "schema": 1,
        "scenario": "swept",
        "task": {"kind": "linear_classification", "agents": 6, "dimension": 2, "samples": [4, 6]},
        "topology": {"kind": "ring"},
        "protocols": {"mine": {"kind": kind, "privacy": PRIVACY}},
        "stop": {"time": 6.0},
        "record": {"every": 2, "metrics": ["accuracy", "epsilon"]},
        "seeds": 1,
        **fields,
    }


TIMED = {"sweep": {"stop.time": TIMES}}


@pytest.fixture(scope="module")
def replayed():
    """Stop times and numbers of agents of the worlds that are replayed, in order."""
    found, judge = [], proving.judge

    def noted(experiment, run):
        found.append((run.point.values, run.seed))
        return judge(experiment, run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hushnet.simulator.experiment.worker_pool.judge", noted)
        yield found


@pytest.fixture(scope="module")
def swept(tmp_path_factory, replayed):
    """A sweep with two proofs, and what they were of."""
    folder, before = tmp_path_factory.mktemp("swept"), len(replayed)
    return folder, ran(folder, contract_points=2), replayed[before:]


def ran(tmp_path, protocol=Gossip, *, fields=TIMED, **how):
    return run(scenario(**fields), protocols={"mine": protocol}, out=tmp_path / "results", **how)


def by_point(result, path="stop.time"):
    return {manifest["grid"][path]: manifest for manifest in result.manifests}


def chosen(fields, contract_points, kind="mine"):
    experiment = Experiment(load(scenario(**fields), extra={"mine": Gossip}), contract_points=contract_points)
    worlds = {planned.run.world_key: planned for planned in reversed(plan(experiment, experiment.runs()))}
    return [tuple(planned.run.point.values.values()) for planned in to_replay(experiment, [*worlds.values()][::-1])]


def test_a_point_without_a_replay_of_its_own_has_no_verified_epsilon_and_names_one_that_was_replayed(swept):
    _, result, proved = swept
    assert proved == [({"stop.time": 9.0}, 0), ({"stop.time": 2.0}, 0)]
    found = by_point(result)
    for time in (9.0, 2.0):
        privacy = found[time]["privacy"]
        assert privacy["verified"] < EPSILON
        assert privacy["verified_by"] == "replay"
        assert privacy["contract"].endswith(f"replayed here (stop.time = {time}, seed 0)")
    for time in (3.0, 4.0, 5.0, 6.0):
        privacy = found[time]["privacy"]
        assert (privacy["verified"], privacy["verified_by"]) == (math.inf, None)
        assert privacy["contract"] == "replayed at stop.time = 9.0, seed 0 and 1 other point: not verified here"
        assert "replayed at stop.time = 9.0, seed 0 and 1 other point, not here" in privacy["because"][0]
        assert found[time]["contract"]["status"] == "elsewhere"
    trace = result.trace[result.trace["metric"] == "epsilon_verified"]
    finite = trace[np.isfinite(trace["value"]) & (trace["time"] > 0)]["stop.time"]
    assert set(finite) == {2.0, 9.0}
    assert set(result.agents[np.isfinite(result.agents["epsilon_verified"])]["stop.time"]) == {2.0, 9.0}


def test_tables_and_figures_show_no_verified_epsilon_where_nothing_was_replayed(tmp_path, capsys):
    shipped = {"kind": "coordinate_descent", "mu": 0.5, "privacy": PRIVACY}
    protocols = {**scenario()["protocols"], "cd": shipped}
    collection = ran(tmp_path, fields={**TIMED, "protocols": protocols}, contract_points=2).collection
    print_summary(collection, Console(width=2000))
    said = capsys.readouterr().out
    assert (
        "verified by replay; not verified in 4 of 6 runs because the protocol's privacy contract was replayed at"
        in said
    )
    assert "replayed here (stop.time = 2.0, seed 0), and at 1 other point;" in said
    compared = compare(collection)
    epsilons = compared.differences.query("measure == 'epsilon'")
    assert set(epsilons["stop.time"]) == {2.0, 9.0}
    assert any("4 of 6 runs of mine have no verified epsilon to compare" in said for said in compared.warnings)
    points = frontier.numbers(collection, {"x": "epsilon_verified", "y": "accuracy", "kind": "frontier"}).points
    mine = points[points["protocol"] == "mine"]
    assert set(mine[np.isfinite(mine["x"])]["stop.time"]) == {2.0, 9.0}
    assert len(mine) == len(TIMES)
    found = drawing(collection, {"kind": "frontier", "y": "accuracy", "x": "epsilon_verified"}, "one", FigureStyle())
    words = " ".join(legend.get_title().get_text() for legend in found.figure.legends).replace("\n", " ")
    assert "of mine replayed at stop.time = 9.0, seed 0 and 1 other point: not verified elsewhere" in words
    page = write_report(tmp_path / "results").read_text(encoding="utf-8")
    assert page.count("contract replayed at stop.time = 9.0, seed 0 and 1 other point: not verified here") == 4
    assert (page.count("verified by replay<"), page.count("verified by construction<")) == (2, 1)


def test_more_proofs_verify_more_points_and_what_was_replayed_stays_so(swept, replayed):
    folder, result, _ = swept
    first, before = by_point(result), len(replayed)
    every = ran(folder, contract_points=len(TIMES))
    assert len(replayed) == before + len(TIMES) - 2
    assert all(manifest["privacy"]["verified"] < EPSILON for manifest in every.manifests)
    again = by_point(ran(folder, contract_points=1))
    assert len(replayed) == before + len(TIMES) - 2
    assert again == by_point(every)
    assert {time for time in TIMES if first[time] == again[time]} == {2.0, 9.0}
    unasked = by_point(ran(folder, contract=False))
    assert unasked == again


def test_the_largest_world_the_longest_run_and_every_topology_and_task_come_first():
    agents, times = {"task.agents": [6, 30, 8]}, {"stop.time": [3.0, 60.0, 4.0]}
    assert chosen({"sweep": {**agents, **times}}, 1) == [(30, 60.0)]
    graphs = {"topology.kind": ["ring", "star", "complete"], "network.loss": [0.0, 0.1, 0.2]}
    found = chosen({"sweep": graphs}, 3)
    assert {kind for kind, _ in found} == {"ring", "star", "complete"}
    both = {"sweep": {"topology.kind": ["ring", "star"], "task.dimension": [2, 3, 4], "network.loss": [0.0, 0.1]}}
    assert {(kind, p) for kind, p, _ in chosen(both, 6)} == {(k, p) for k in ("ring", "star") for p in (2, 3, 4)}
    assert len(chosen(both, 12)) == len(chosen(both, 20)) == 12


def test_a_leak_in_the_largest_world_counts_where_nothing_was_replayed(tmp_path):
    result = ran(tmp_path, LeaksInACrowd, fields={"sweep": {"task.agents": [4, 5, 14]}}, contract_points=2)
    found = by_point(result, "task.agents")
    assert found[14]["contract"]["status"] == found[5]["contract"]["status"] == "failed"
    assert found[4]["contract"]["status"] == "passed"
    assert found[5]["contract"]["text"].startswith("failed: replayed at task.agents = 14, seed 0: agent")
    assert math.isinf(found[5]["privacy"]["verified"])
    assert math.isinf(found[14]["privacy"]["verified"])


def test_shipped_protocols_are_verified_by_construction_at_every_point(tmp_path):
    shipped = {"cd": {"kind": "coordinate_descent", "mu": 0.5, "privacy": PRIVACY}}
    result = run(scenario(**{**TIMED, "protocols": shipped}), out=tmp_path / "results", contract_points=1)
    for manifest in result.manifests:
        assert manifest["privacy"]["verified"] < EPSILON
        assert manifest["privacy"]["verified_by"] == "construction"
        assert manifest["privacy"]["contract"] == "passed (shipped: replayed by hushnet's own tests)"


def test_no_proof_at_all_is_refused_in_a_sentence(tmp_path, capsys):
    with pytest.raises(InputError, match="contract_points = 0: must be an integer from 1"):
        ran(tmp_path, contract_points=0)
    assert main(["run", "quickstart", "--contract-points", "0", "--out", str(tmp_path / "out")]) == 2
    assert "contract_points = 0: must be an integer from 1" in capsys.readouterr().err
