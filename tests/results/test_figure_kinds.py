"""Heat maps, frontiers, scatters, portraits and timelines hold the numbers that their runs left behind."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.graph import Graph
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.figures import plots, save_figure
from hushnet.simulator.storage.store import Store
from matplotlib.text import Text

from .synthetic import FALSE, LABELS, make_run
from .writing import figure_of, written

LOSSES, DEPTHS = (0.0, 0.1, 0.3), (1, 10)
HEAT = {"y": "accuracy", "x": "network.loss", "rows": "depth"}
LONG = "asynchronous private coordinate descent with late allocation of the budget over a very lossy network"
LOG = [
    ("message", "0", "1", "model", 0.5, 1.5, "delivered", 16),
    ("message", "0", "2", "model", 0.5, 2.5, "overtaken", 16),
    ("message", "1", "0", "reply", 1.6, math.nan, "lost", 16),
    ("message", "2", "0", "model", 2.0, 3.0, "dropped", 16),
    ("message", "2", "10", "model", 2.0, 2.5, "delivered", 16),
    ("message", "2", "1", "model", 3.9, 4.6, "in flight", 16),
    ("step", "0", "", "", 0.5, 0.5, "", 0),
    ("absence", "0", "", "", 2.7, 3.4, "", 0),
]


def swept(protocols=LABELS, seeds=2):
    grid = [(loss, depth) for loss in LOSSES for depth in DEPTHS]
    runs = []
    for loss, depth in grid:
        for protocol in protocols:
            for seed in range(seeds):
                run = make_run(protocol, seed, grid={"network.loss": loss, "depth": depth})
                if protocol != "local":
                    run.trace.loc[run.trace["metric"] == "accuracy", "value"] += 0.01 * math.log10(depth)
                runs.append(run)
    return runs


def private(protocol, seed, epsilon, *, unit="record", observer="all neighbours"):
    promise = {"unit": [unit], "adjacency": ["replace-one"], "observer": observer}
    privacy = None if epsilon is None else {**FALSE, "claimed": epsilon / 2, "verified": epsilon, **promise}
    run = make_run("cd", seed, grid={"epsilon": 1.0 if epsilon is None else epsilon}, privacy=privacy, label=protocol)
    run.manifest["protocol"] = run.trace["protocol"] = run.agents["protocol"] = protocol
    if epsilon is None:
        run.agents["epsilon_verified"] = run.agents["epsilon_claimed"] = math.inf
    return run


@pytest.fixture
def network(experiment, tmp_path):
    """A function that writes two protocols' runs with a ring of 30 agents and a log of messages."""
    agents = np.arange(30)
    ring = Graph.from_edges(30, agents, (agents + 1) % 30, np.ones(30))

    def write(**options):
        name = Store(tmp_path / "results" / "synthetic").save_graph(ring)
        runs = [make_run(protocol, seed) for protocol in ("local", "cd") for seed in range(2)]
        for run in runs:
            run.agents["age"] = np.where(agents == 3, np.nan, agents)
            run.agents["epsilon_verified"] = np.where(agents == 4, np.inf, agents)
            run.manifest["topology"] = {"graph": name}
            run.manifest["scenario"]["record"] = {"messages": {"agents": 3, "between": [0.0, 4.0]}}
            columns = ["what", "agent", "other", "kind", "start", "end", "fate", "bytes"]
            run.extras["messages"] = pd.DataFrame(LOG, columns=columns)
        return load_all(experiment(runs, **options))

    return write


def only(collection, spec):
    (plot,) = plots(collection, spec)
    return plot.points


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def test_a_list_of_metrics_has_a_panel_for_each(experiment):
    collection = load_all(experiment())
    found = plots(
        collection, {"y": "accuracy", "x": "time", "statistic": "worst_decile", "facet": ["accuracy", "objective"]}
    )
    assert [(plot.metric, plot.statistic) for plot in found] == [("accuracy", "worst_decile"), ("objective", "gap")]
    figure = figure_of(collection, {"y": "accuracy", "x": "time", "facet": ["accuracy", "objective"], "target": True})
    assert [axes.get_ylabel() for axes in figure.axes] == ["accuracy", "objective gap $Q-Q^*$"]
    assert "target: objective gap down to 0.1 of its start" in texts(figure)
    # The gaps start at 1, 1.1 and 1.2.
    assert figure.axes[1].lines[-1].get_ydata()[0] == pytest.approx(0.11)


@pytest.mark.parametrize(("metric", "share"), [("accuracy", 0.75), ("objective", 0.25)])
def test_wins_are_the_share_of_seeds_with_the_better_value_and_ties_count_one_half(experiment, metric, share):
    """Of two seeds one is better and one is equal up to rounding, both of which the direction of the metric decides."""
    collection = load_all(experiment([make_run(protocol, seed) for protocol in ("local", "cd") for seed in range(2)]))
    rows = (collection.trace["metric"] == metric) & collection.trace["statistic"].isin(["mean", "value"])
    for (protocol, seed), value in {("cd", 0): 3, ("local", 0): 2, ("cd", 1): 5 + 1e-12, ("local", 1): 5}.items():
        trace = collection.trace
        trace.loc[rows & (trace["protocol"] == protocol) & (trace["seed"] == seed), "value"] = value
    spec = {"y": metric, "statistic": "value" if metric == "objective" else "mean", "x": "protocol"}
    spec |= {"baseline": "local", "wins": True}
    points = only(collection, spec)
    assert list(points["protocol"]) == ["cd"]
    assert list(points["mean"]) == [share]
    figure = figure_of(collection, spec)
    assert figure.axes[0].get_ylabel().startswith("share of wins over\nlocal (")
    assert "paired wins (a tie counts one half) and 95 % score" in " ".join(texts(figure))


def frontier(experiment, **labels):
    runs = [private(p, seed, epsilon) for p in ("a", "b") for epsilon in (0.5, 1.0, 4.0) for seed in range(2)]
    runs += [private("f", seed, 2.0, unit="feature column", observer="the centre") for seed in range(2)]
    runs += [private("open", seed, None) for seed in range(2)]
    return load_all(experiment(runs, labels={key: labels.get(key, key) for key in ("a", "b", "f", "open")}))


def test_infinite_epsilons_stand_beyond_a_broken_end_of_the_axis(experiment):
    figure = figure_of(frontier(experiment), {"y": "accuracy", "x": "epsilon_verified", "log": "x", "panels": []})
    axes = figure.axes[0]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels[-1] == "\N{INFINITY}"
    places = dict(zip(labels, axes.get_xticks(), strict=True))
    assert 4.0 < places["\N{INFINITY}"] < axes.get_xlim()[1]
    assert all(float(label) == place for label, place in places.items() if label != "\N{INFINITY}")


def test_a_portrait_has_every_agent_and_every_edge_of_the_run(network):
    found = plots(network(), {"y": "accuracy", "x": "time", "kind": "portrait", "seed": 1})
    assert [plot.panel for plot in found] == ["local", "coordinate descent"]
    points = found[1].points
    nodes, edges = points[points["what"] == "agent"], points[points["what"] == "edge"]
    np.testing.assert_allclose(nodes["value"], 0.6 + 0.004 * np.arange(10, 40) + 0.1 + 0.01)
    assert {frozenset(pair) for pair in zip(edges["agent"], edges["other"], strict=True)} == {
        frozenset((str(k), str((k + 1) % 30))) for k in range(30)
    }
    # Neighbours on a ring are as far apart as any other neighbours, and nobody lies upon another.
    place = nodes.set_index("agent")[["x", "y"]]
    lengths = [np.linalg.norm(place.loc[a] - place.loc[b]) for a, b in zip(edges["agent"], edges["other"], strict=True)]
    assert max(lengths) < 1.5 * min(lengths)
    pd.testing.assert_frame_equal(found[0].points[["x", "y"]], points[["x", "y"]])


def test_a_timeline_holds_the_log_in_the_unit_of_the_scenario(network):
    spec = {"y": "messages", "x": "time", "kind": "timeline", "protocols": ["cd"]}
    points = only(network(time_unit="30 s"), spec)
    assert len(points) == len(LOG)
    np.testing.assert_allclose(points["start"], [30 * row[4] for row in LOG])
    assert dict(zip(points["agent"], points["lane"], strict=True)) == {"0": 0, "1": 1, "2": 2}
    figure = figure_of(network(time_unit="30 s"), spec)
    assert figure.axes[0].get_xlim() == (0, 120)
    lanes = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert lanes == ["0", "1", "2", "10"], "who only receives has a lane as well"
    assert {"lost", "receiver absent", "arrived after a newer one", "still under way at the end", "absent"} <= set(
        texts(figure)
    )


def test_what_a_run_did_not_keep_is_said(experiment):
    collection = load_all(experiment())
    with pytest.raises(InputError, match="a timeline needs the messages of the run"):
        plots(collection, {"y": "messages", "x": "time", "kind": "timeline"})
    with pytest.raises(InputError, match="a portrait needs the graph of the run"):
        plots(collection, {"y": "accuracy", "x": "time", "kind": "portrait"})
    with pytest.raises(InputError, match=r"seed 9 was not run; it must be one of 0, 1, 2"):
        plots(collection, {"y": "accuracy", "x": "time", "kind": "portrait", "seed": 9})


SPECS = {
    "curve": {"y": "objective", "x": "vectors", "log": "both", "at": {"depth": 1}, "protocols": ["cd"]},
    "level": {"y": "accuracy", "x": "vectors", "at": {"depth": 1, "network.loss": 0.1}},
    "samples": {"y": "accuracy", "x": "samples"},
    "depth": {"y": "accuracy", "x": "depth", "at": {"network.loss": 0.1}, "log": "x"},
    "sweep": {"y": "accuracy", "x": "network.loss", "at": {"depth": 1}},
    "heat": {**HEAT, "baseline": "local"},
    "targets": {"y": "time_to_target", "x": "network.loss", "at": {"depth": 1}, "log": "y"},
    "facets": {"y": "accuracy", "x": "time", "facet": "network.loss"},
    "metrics": {"y": "accuracy", "x": "time", "facet": ["accuracy", "objective"], "at": {"depth": 1}},
    "scatter": {"y": "accuracy", "x": "samples", "kind": "scatter", "baseline": "local", "facet": "depth"},
    "bars": {"y": "accuracy", "x": "protocol", "baseline": "local", "facet": "network.loss", "at": {"depth": 1}},
}


def every_kind(experiment, network, tmp_path, label, kind):
    if kind in ("portrait", "timeline"):
        spec = {"y": "accuracy", "x": "time", "kind": kind, "title": label}
        return network(labels={"local": "local", "cd": label}), spec
    if kind == "frontier":
        return frontier(experiment, a=label), {"y": "accuracy", "x": "epsilon_verified", "log": "x", "title": LONG}
    return load_all(experiment(swept(), labels={**LABELS, "cd": label})), {"title": LONG, **SPECS[kind]}


@pytest.mark.parametrize("kind", [*SPECS, "frontier", "portrait", "timeline"])
def test_every_text_of_every_kind_lies_inside_the_figure(experiment, network, tmp_path, kind):
    collection, spec = every_kind(experiment, network, tmp_path, f"_costs $5_and_$6, {LONG}", kind)
    figure = figure_of(collection, spec)
    width, height = figure.bbox.size
    for text, box in written(figure):
        assert box.x0 >= -0.5, text
        assert box.y0 >= -0.5, text
        assert box.x1 <= width + 0.5, text
        assert box.y1 <= height + 0.5, text
    for axes in figure.axes:
        assert axes.get_window_extent().height > 4


def test_bars_of_labels_are_of_all_rows_of_every_agent(experiment):
    run_of_two = make_run("cd", 0)
    for label, counts in (("a", 3), ("b", 4)):
        run_of_two.agents[f"samples_of_{label}"] = counts
    spec = {"kind": "labels", "y": "samples", "x": "agent"}
    collection = load_all(experiment([run_of_two]))
    figure = figure_of(collection, spec)
    agents = len(run_of_two.agents)
    assert only(collection, spec).groupby("label")["value"].sum().to_dict() == {"a": 3 * agents, "b": 4 * agents}
    assert [bar.get_height() for bar in figure.axes[0].patches] == [3] * agents + [4] * agents
    assert [bar.get_y() for bar in figure.axes[0].patches] == [0] * agents + [3] * agents
    assert {"label a", "label b"} <= set(texts(figure))
    with pytest.raises(InputError, match="labels are no classes"):
        plots(load_all(experiment([make_run("cd", 0)])), spec)


@pytest.mark.parametrize("kind", ["heat", "frontier", "portrait", "timeline"])
def test_every_kind_is_drawn_with_the_same_bytes_again(experiment, network, tmp_path, kind):
    collection, spec = every_kind(experiment, network, tmp_path, "short", kind)
    first = [path.read_bytes() for path in save_figure(collection, spec, tmp_path / "first")]
    again = [path.read_bytes() for path in save_figure(load_all(collection.root), spec, tmp_path / "again")]
    assert first == again


def test_cells_without_a_number_are_told_apart(experiment):
    runs = [run for run in swept(["cd"]) if run.manifest["grid"] != {"network.loss": 0.0, "depth": 10}]
    for run in runs:
        if run.manifest["grid"]["network.loss"] == 0.3:
            run.trace.loc[run.trace["metric"] == "objective", "value"] = 5.0
    collection = load_all(experiment(runs))
    figure = figure_of(collection, {**HEAT, "y": "time_to_target"})
    shown = [text.get_text() for text in figure.axes[0].texts]
    # Row by row from below: the target is met at time 3 without losses, never at a loss of 0.3; one cell was not run.
    assert shown == ["3.00", "3.00", "\N{INFINITY}", "\N{EN DASH}", "3.00", "\N{INFINITY}"]


def test_runs_that_never_reach_the_target_stand_above_the_axis(experiment):
    runs = swept(["cd"], seeds=3)
    for run in runs:
        if run.manifest["grid"]["network.loss"] == 0.3 and run.manifest["seed"] == 2:
            run.trace.loc[run.trace["metric"] == "objective", "value"] = 5.0
    collection = load_all(experiment(runs))
    spec = {"y": "time_to_target", "x": "network.loss", "at": {"depth": 1}}
    points = only(collection, spec)
    assert list(points["mean"]) == [3.0, 3.0, math.inf]
    assert list(points["reached"]) == [3, 3, 2]
    assert points["high"].isna().tolist() == [False, False, True]
    shown = texts(figure_of(collection, spec))
    assert "never" in shown
    assert "2/3" in shown
