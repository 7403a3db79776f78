"""Numbers of two protocols stand side by side only where they are of one kind."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.objectives.consensus_objective import ConsensusObjective
from hushnet.agents.objectives.objectives import GraphRegularised, LocalOnly
from hushnet.agents.objectives.pooled_objective import PooledObjective
from hushnet.agents.quantity import epsilon_quantity
from hushnet.simulator.analysis.comparability import Incomparable
from hushnet.simulator.analysis.summary import summarise
from hushnet.simulator.analysis.targets import reached
from hushnet.simulator.api import run
from hushnet.simulator.compare import compare
from hushnet.simulator.contract.bench import small_graph, small_task
from hushnet.simulator.figures import redraw
from hushnet.simulator.report.report_page import content
from hushnet.simulator.storage.store import Store

from .synthetic import HONEST, collected, make_run

SUM_BESIDE_MEAN = {
    "schema": 1,
    "scenario": "kinds",
    "task": {"kind": "linear_classification", "agents": 60, "dimension": 3, "samples": [4, 4], "points": "ball"},
    "topology": {"kind": "ring"},
    "engine": "event",
    "protocols": {"admm": {"kind": "consensus_admm"}, "push": {"kind": "push_sum_dual_averaging"}},
    "stop": {"time": 2},
    "record": {"every": 1.0, "metrics": ["objective", "accuracy"]},
    "seeds": 3,
}


def measured(scale, times, *, identity="one", **more):
    return {"function": "Q", "scale": scale, "times": times, "identity": identity, **more}


def two(ours, theirs, *, factor=1.0, seeds=3):
    """Runs of ``local`` and ``cd`` with objectives of these kinds; cd's numbers times a factor."""
    runs = []
    for key, quantity in (("local", theirs), ("cd", ours)):
        for seed in range(seeds):
            made = make_run(key, seed)
            made.manifest["measures"] = {} if quantity is None else {"objective": quantity}
            if key == "cd":
                scaled = made.trace["metric"] == "objective"
                made.trace.loc[scaled, "value"] *= factor
            runs.append(made)
    return runs


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    return run(SUM_BESIDE_MEAN, out=tmp_path_factory.mktemp("kinds") / "kinds")


def test_a_sum_beside_a_mean_is_refused_and_nobody_is_better(beside):
    starts = beside.collection.trace.query("metric == 'objective' and statistic == 'value' and time == 0")
    assert starts.groupby("protocol")["value"].mean().round(3).to_dict() == {"admm": 41.589, "push": 0.693}  # n log 2
    comparison = beside.compare()
    assert not comparison.differences["measure"].str.contains("objective|target").any()
    assert any("sum over agents" in said and "mean over agents" in said for said in comparison.warnings)
    assert sum("not of one kind" in said for said in comparison.warnings) == 1
    with pytest.raises(InputError, match=r"are not of one kind; set record\.objective_of"):
        reached(beside.collection, None, "time")


def test_a_manifest_says_what_every_metric_measures(beside):
    said = {m["protocol"]: m["measures"] for m in beside.manifests}
    assert (said["admm"]["objective"]["scale"], said["admm"]["objective"]["times"]) == ("sum over agents", 60.0)
    assert (said["push"]["objective"]["scale"], said["push"]["objective"]["times"]) == ("mean over agents", 1.0)
    assert said["admm"]["accuracy"] == said["push"]["accuracy"]
    assert said["admm"]["accuracy"]["rows"] == "test rows"


def test_summary_and_report_set_what_is_of_another_kind_apart(beside):
    frame = summarise(beside.collection).set_index("protocol")
    assert np.isnan(frame.loc["push", "objective gap"])
    assert np.isnan(frame.loc["admm", "objective of push gap"])
    page = content(beside.collection, beside.folder)
    assert any("not of one kind" in said for said in page["alarms"])
    assert {"objective", "objective of push"} <= {m["id"].partition(":")[0] for m in page["data"]["curves"]["metrics"]}


def test_a_figure_of_two_kinds_is_refused_after_the_others_are_drawn(experiment):
    shared = {"x": "time", "style": {"formats": ["png"]}}
    figures = [{"y": "objective", "statistic": "gap", **shared}, {"y": "accuracy", **shared}]
    runs = two(measured("sum over agents", 60.0, identity="other"), measured("mean over agents", 1.0))
    root = experiment(runs, figures)
    with pytest.raises(InputError, match=r"figures: 1-objective-vs-time: objective of .* not of one kind"):
        redraw(root)
    assert [path.name for path in (root / "figures").glob("*.png")] == ["2-accuracy-vs-time.png"]
    index = Store(root).index() | {"figures": [figures[0] | {"protocols": ["cd"]}]}
    Store(root).write_index(**index)
    assert {path.stem for path in redraw(root)} == {"1-objective-vs-time"}


def test_runs_that_do_not_say_what_they_measure_are_of_unknown_kinds():
    comparison = compare(collected(two(None, None)))
    assert any("do not say what it measures" in said and "unknown" in said for said in comparison.warnings)
    known = compare(collected(two(*[measured("mean over agents", 1.0)] * 2)))
    rows = [found.differences.set_index("measure").loc["objective gap"] for found in (comparison, known)]
    assert rows[0]["p"] == rows[1]["p"] < 0.05
    assert [row["verdict"] for row in rows] == ["", "better"]


def test_epsilons_at_other_deltas_or_of_other_units_are_not_compared():
    claims = {"local": HONEST, "cd": HONEST | {"delta": 0.1, "unit": ["record"]}, "cd_eps": HONEST}
    runs = []
    for key, claim in claims.items():
        for seed in range(2):
            made = make_run(key, seed, privacy={"unit": ["record"], "observer": "all neighbours"} | claim)
            said = epsilon_quantity("verified", made.manifest["privacy"]["delta"], "record", "", "all neighbours")
            made.manifest["measures"] = {"epsilon_verified": said.as_dict()}
            made.trace = made.trace.replace({"traffic": "epsilon_verified"})
            runs.append(made)
    comparison = compare(collected(runs))
    rows = comparison.differences[comparison.differences["measure"] == "epsilon"]
    assert list(rows["protocol"]) == ["cd_eps"]
    assert any("delta 0.1" in said and "delta 0.0067" in said for said in comparison.warnings)


def test_objectives_declare_what_they_measure():
    task, graph = small_task(4), small_graph(4)
    twice = ConsensusObjective(task, 2.0, 6.0).quantity
    once = ConsensusObjective(task, 1.0, 3.0).quantity
    assert once.same_function(twice)
    assert (once.times, twice.times) == (4.0, 8.0)
    models = np.random.default_rng(0).normal(size=(4, task.dimension))
    values = [ConsensusObjective(task, *given).value(models) for given in ((1.0, 3.0), (2.0, 6.0))]
    assert values[1] / twice.times == pytest.approx(values[0] / once.times)
    assert not once.same_function(ConsensusObjective(task, 1.0, 2.0).quantity)
    mean = PooledObjective.mean_of_agents(task, 0.75).quantity
    assert not once.same_function(mean)  # the same function, but at every agent's own model
    half = [GraphRegularised(task, graph, mu, np.ones(4)).quantity for mu in (0.5, 0.25)]
    assert not half[0].same_function(half[1])
    assert not half[0].same_function(LocalOnly(task).quantity)


def test_scales_alone_are_read_as_means_and_it_is_said():
    runs = two(measured("sum over agents", 60.0), measured("mean over agents", 1.0), factor=60.0)
    plain = compare(collected(two(*[measured("mean over agents", 1.0)] * 2)))
    scaled = compare(collected(runs))
    assert scaled.differences["difference"].to_numpy() == pytest.approx(
        plain.differences["difference"].to_numpy(), nan_ok=True
    )
    assert any("read as means (divided: coordinate descent by 60, local by 1)" in said for said in scaled.warnings)
    with pytest.raises(Incomparable, match="level 5 would be one for several scales"):
        reached(collected(runs), {"metric": "objective", "level": 5.0, "statistic": "value"}, "time")
