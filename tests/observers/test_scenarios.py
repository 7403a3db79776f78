"""Observers of a scenario: what a run keeps of them, and sentences about observers that there are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator import run
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.figures.figure_files import draw_all
from hushnet.simulator.report.grid import Grid
from hushnet.simulator.report.privacy import observed_rows
from hushnet.simulator.reproduction.reproduction_runs import Runs

PRIVACY = {"mechanism": "gaussian", "multiplier": 2.0, "clip": 2.0, "delta": 1e-4}
TINY = {
    "schema": 1,
    "scenario": "tiny",
    "task": {"kind": "mean_estimation", "agents": 12, "samples": 4, "spread": 0.0},
    "topology": {"kind": "ring"},
    "network": {"loss": 0.2},
    "protocols": {"gossip": {"kind": "muffliato", "rounds": 3, "privacy": PRIVACY}},
    "stop": {"time": 20},
    "record": {"every": 5, "metrics": ["objective", "epsilon", "epsilon_observers"]},
    "observers": {"against": ["everyone", "agents", {"link": [3, 4]}, {"share": 0.2}], "record": True},
}


def test_a_run_keeps_who_can_have_learned_what(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(TINY)
    (folder,) = {path.parent for path in tmp_path.rglob("observers.parquet")}
    pairs, copies, releases = (
        pd.read_parquet(folder / f"{name}.parquet") for name in ("observers", "copies", "releases")
    )
    stated = {one["against"]: one for one in result.manifests[0]["privacy"]["observers"]}
    verified = result.manifests[0]["privacy"]["verified"]
    assert stated["everyone on the wire"]["worst"] == verified
    assert list(stated) == [
        "everyone on the wire",
        "each other agent by itself",
        "link 3 - 4",
        "coalition of 0.2 of all agents",
    ]
    by_pair = pairs[pairs["against"] == "each other agent by itself"]
    assert len(by_pair) == 12 * 11
    assert stated["each other agent by itself"]["worst"] == by_pair["epsilon"].max() == pytest.approx(verified)
    of_agents = result.agents.set_index("agent")["epsilon_observers"]
    limited = pairs[pairs["against"] != "everyone on the wire"]
    pd.testing.assert_series_equal(of_agents.sort_index(), limited.groupby("agent")["epsilon"].max(), check_names=False)
    farthest = by_pair.groupby("distance")["epsilon"].max()
    assert farthest.is_monotonic_decreasing
    assert farthest[4] == farthest[6] == 0.0  # in rounds, three messages do not go further
    two_apart = pairs.loc[pairs["distance"] == 2, "epsilon"]
    runs = Runs(load_all(tmp_path / "results" / "tiny"))
    assert runs.mean_of_pairs("gossip", 2).to_dict() == {0: pytest.approx(two_apart.mean())}
    assert two_apart.mean() < two_apart.max()
    last = result.trace[result.trace["metric"] == "epsilon_observers"].groupby("statistic")["value"].last()
    assert last["distance 2"] <= last["worst"] == pytest.approx(verified)
    assert set(releases["mechanism"]) == {"gaussian"}
    np.testing.assert_allclose(releases["scale"], 2.0 * releases["sensitivity"])
    assert releases["charged"].tolist() == [verified] * 12  # each agent has made one
    assert releases["parents"].map(len).sum() == 0
    totals = result.manifests[0]["totals"]
    assert 0 < (copies["fate"] == "lost").sum() <= totals["lost"]  # acknowledgements have no content
    assert len(copies) == totals["vectors"]
    assert (copies.loc[copies["read"] >= 0, "fate"] == "delivered").all()


def test_a_row_of_copies_is_at_most_40_bytes_before_compression(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run({**TINY, "task": {**TINY["task"], "agents": 100}})
    (file,) = tmp_path.rglob("copies.parquet")
    written = pq.ParquetFile(file).metadata
    columns = [written.row_group(0).column(k) for k in range(written.num_columns)]
    assert sum(column.total_uncompressed_size for column in columns) <= 40 * written.num_rows


@pytest.mark.parametrize("engine", ["event", "batched"])
def test_releases_of_starts_are_recorded_whole(engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run({**TINY, "network": {}, "engine": engine})
    (releases,) = map(pd.read_parquet, tmp_path.rglob("releases.parquet"))
    np.testing.assert_allclose(releases["scale"], 2.0 * releases["sensitivity"], equal_nan=False)


@pytest.mark.parametrize("engine", ["event", "batched"])
def test_each_agents_releases_have_the_noise_of_its_own_number_of_samples(engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task, descent = {**TINY["task"], "spread": 1.0}, {"kind": "coordinate_descent", "mu": 0.5, "privacy": PRIVACY}
    result = run({**TINY, "engine": engine, "task": task, "protocols": {"descent": descent}})
    (releases,) = map(pd.read_parquet, tmp_path.rglob("releases.parquet"))
    samples = releases["agent"].map(result.agents.astype({"agent": str}).set_index("agent")["samples"])
    assert samples.nunique() > 1
    np.testing.assert_allclose(releases["scale"], 2.0 * 2 * PRIVACY["clip"] / samples)


@pytest.mark.parametrize("engine", ["event", "batched"])
def test_a_record_that_grows_too_long_is_one_sentence(engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hushnet.simulator.recording.message_log.MOST_NOTES", 20)
    with pytest.raises(InputError, match="observers: ask for a record of all messages, and this run has more than 20 "):
        run({**TINY, "engine": engine})


def test_observers_change_nothing_that_is_recorded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = {**TINY, "scenario": "plain", "record": {"every": 5, "metrics": ["objective"]}}
    del plain["observers"]
    with_observers = run({**plain, "scenario": "watched", "observers": ["agents", "everyone"]})
    traces = [result.trace.drop(columns="run") for result in (run(plain), with_observers)]
    pd.testing.assert_frame_equal(*traces)


@pytest.mark.parametrize(
    ("observers", "sentence"),
    [
        (["nobody"], "observers[0] = 'nobody': must be 'everyone', 'eavesdropper', 'neighbours' or 'agents'"),
        ([{"agent": 77}], "there is no agent 77; did you mean '7'? agents are called 0, 1, 2, ..., 11"),
        ([{"coalition": [1, "x"]}], "there is no agent 'x'"),
        ([{"link": [0, 5]}], "agents 0 and 5 have no link; neighbours of 0: 1, 11"),
        ([{"link": [5, 5]}], "link names agent 5 twice"),
        ([{"agent": 1, "share": 0.5}], "give exactly one of agent, coalition, share, link"),
        ([{"share": 1.5}], "less than 1"),
        ({"against": ["agents"], "heard": "all"}, "delivered"),
        (None, "is measured against observers; give the scenario observers: [agents]"),
    ],
)
def test_observers_that_there_are_not_are_one_sentence(observers, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as found:
        run({**TINY, "observers": observers})
    assert sentence in str(found.value)
    assert "\n" not in str(found.value)


def test_what_observers_could_learn_is_drawn_and_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn = [
        {"kind": "pairs", "name": "pairs"},
        {"kind": "by_distance", "name": "distance"},
        {"y": "epsilon_observers", "statistic": "distance 2", "x": "time", "name": "time"},
    ]
    result = run({**TINY, "observers": ["agents"], "figures": drawn})
    (folder,) = tmp_path.glob("results/*")
    paths, failures = draw_all(load_all(folder), tmp_path)
    assert failures == []
    assert {path.suffix for path in paths} == {".png", ".pdf", ".svg", ".csv"}
    pairs, distance, over_time = (pd.read_csv(tmp_path / f"{one['name']}.csv") for one in drawn)
    assert len(pairs) == 12 * 11
    by_distance = pairs.groupby("distance")["value"].max()
    np.testing.assert_allclose(distance.sort_values("x")["mean"], by_distance)
    assert over_time["mean"].is_monotonic_increasing
    assert over_time["mean"].iloc[-1] == pytest.approx(by_distance[2])
    (row,) = observed_rows(collection := load_all(folder), Grid(collection))
    stated = result.manifests[0]["privacy"]["observers"][0]
    worst = pairs.astype({"observer": str, "agent": str}).set_index(["observer", "agent"])["value"]
    assert worst[stated["observer"], stated["agent"]] == worst.max() == stated["worst"]
    assert (row["observer"], row["agent"]) == (stated["observer"], stated["agent"])


def test_what_leaves_without_a_message_counts_as_heard_by_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = {"kind": "local_dp", "privacy": PRIVACY}
    task = {"kind": "epsilon_like", "agents": 6, "samples": 4, "dimension": 3, "loss": "logistic"}
    plain = {**TINY, "task": task, "protocols": {"rows": rows}, "observers": ["agents"], "figures": []}
    (stated,) = run(plain).manifests[0]["privacy"]["observers"]
    assert stated["bounds"] == ["everyone"]
    assert stated["worst"] > 0


@pytest.mark.parametrize("kind", ["pairs", "by_distance"])
def test_figures_of_observers_need_observers(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = {**TINY, "record": {"every": 5, "metrics": ["objective"]}, "figures": [{"kind": kind}]}
    del plain["observers"]
    with pytest.raises(InputError, match=f"figure of kind {kind} needs observers"):
        run(plain)


def test_where_steps_take_time_bounds_are_those_of_what_was_read(tmp_path, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    gossip = {**TINY["protocols"]["gossip"], "gossip": "simple", "schedule": "async"}
    run({**TINY, "compute": 0.7, "protocols": {"gossip": gossip}})
    pairs = pd.concat(map(pd.read_parquet, tmp_path.rglob("observers.parquet")))
    assert "linear Gaussian" in set(pairs.loc[pairs["against"] == "each other agent by itself", "bound"])
    assert not [one for one in recwarn if "linear_map" in str(one.message)]
