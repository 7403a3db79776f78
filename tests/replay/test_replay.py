"""A replay shows what happened, of the very run that was saved, and nothing that a private run must keep."""

from __future__ import annotations

import json
import math
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import AuditFailure, InputError
from hushnet.simulator.cli import main
from hushnet.simulator.figures.graph_layout import graph_layout
from hushnet.simulator.language.message_window import FATES
from hushnet.simulator.replay import write_replay
from hushnet.simulator.replay.animation import AGES, animation
from hushnet.simulator.replay.chosen import chosen
from hushnet.simulator.replay.difference import first_difference
from hushnet.simulator.replay.rerun import rerun
from hushnet.simulator.storage.run_folder import read_manifest
from hushnet.simulator.storage.store import Store

TEXT = """\
schema: 1
scenario: watched
title: Watched
seeds: 2
task: {kind: linear_classification, agents: 9, dimension: 3, samples: [20, 30], points: ball}
topology: {kind: ring, reach: 2}
network: {latency: {kind: exponential, mean: 0.5}, loss: 0.1}
availability: {kind: on_off, online: 0.8, mean_down: 2}
protocols:
  local: {kind: local}
  cd: {kind: coordinate_descent, mu: 0.1}
  pairs: {kind: edge_consensus_admm}
  rounds: {kind: coordinate_descent, mu: 0.1, schedule: {kind: rounds, resend_after: 2}}
  private:
    like: cd
    label: private one
    privacy: {mechanism: gaussian, target: {verified: 3.0, delta: 0.001}, updates: 10, sensitivity: clip, clip: 0.2}
stop: {time: 12}
record: {every: 1.0, metrics: [objective, epsilon, traffic], objective_of: cd}
sweep: {network.latency.mean: [0.1, 2.0]}
"""


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replay")
    (folder / "watched.yaml").write_text(TEXT)
    assert main(["run", str(folder / "watched.yaml"), "--out", str(folder / "watched"), "--quiet"]) == 0
    return folder / "watched"


def told(path):
    """The data of a page."""
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert text
    return json.loads(text[1])


@pytest.fixture(scope="session")
def both(results):
    """A page of two protocols."""
    return write_replay(results, ["cd", "private"], out=results.parent / "both.html")[0]


@pytest.mark.parametrize("protocol", ["cd", "pairs", "rounds", "private"])
def test_what_is_shown_adds_up_to_what_was_recorded(protocol, results):
    (entry,) = chosen(results, [f"{protocol},network.latency.mean=2"])
    made = rerun(results, entry, (0.0, 12.0))
    shown = animation(made, ["mean 2"])
    messages = {name: np.array(column, dtype=float) for name, column in shown["messages"].items()}
    fate = [FATES[int(rank)] for rank in messages["fate"]]
    traffic = made.trace[made.trace["metric"] == "traffic"]
    traffic = traffic.pivot_table(index="time", columns="statistic", values="value")
    assert len(traffic) == 13
    assert messages["start"].size > 20
    ended = {name: np.array([f == name for f in fate]) for name in FATES}
    for instant, row in traffic.iterrows():
        sent = messages["start"] <= instant
        gone = sent & (messages["end"] <= instant)
        arrived = int((gone & (ended["delivered"] | ended["overtaken"])).sum())
        lost, dropped = int((sent & ended["lost"]).sum()), int((gone & ended["dropped"]).sum())
        assert (int(sent.sum()), arrived, lost, dropped) == tuple(
            row[name] for name in ("sent", "delivered", "lost", "dropped")
        ), instant
        assert int(sent.sum()) - arrived - lost - dropped == row["in_flight"]


def test_everything_lies_within_the_world(both):
    for shown in told(both)["animations"]:
        n = len(shown["places"])
        assert n == len(shown["agents"]) == shown["of"] == 9
        assert np.all((np.array(shown["places"]) >= 0) & (np.array(shown["places"]) <= 1))
        assert {*shown["messages"]["from"], *shown["messages"]["to"], *shown["steps"]["agent"]} <= set(range(n))
        edges = {frozenset(edge) for edge in shown["edges"]}
        pairs = zip(shown["messages"]["from"], shown["messages"]["to"], strict=True)
        assert {frozenset(pair) for pair in pairs} <= edges
        assert len(shown["age"]["mean"]) == AGES
        assert shown["absences"]


def test_two_protocols_meet_the_same_wake_ups_and_absences(both):
    plain, private = told(both)["animations"]
    assert plain["absences"] == private["absences"]
    wakes = [set(zip(each["steps"]["agent"], each["steps"]["at"], strict=True)) for each in (plain, private)]
    assert wakes[1] <= wakes[0]  # who has spent its budget falls silent
    assert len(wakes[1]) > 20
    assert "Two runs on common random numbers" in both.read_text()


def test_of_private_runs_no_model_is_told(results):
    path, _ = write_replay(results, ["private", "private,seed=1"], out=results.parent / "c.html")
    data = told(path)
    for shown in data["animations"]:
        assert shown["private"]
        assert shown["models"] is None
        assert set(shown) == {
            *("title", "seed", "seeds", "grid", "network", "agents", "of", "places", "edges", "messages", "steps"),
            *("absences", "epsilons", "age", "models", "private"),
        }
        assert shown["epsilons"]["epsilon_verified"][-1][1] <= 3.0
    assert "its models are not shown" in path.read_text()
    (entry,) = chosen(results, ["private"])
    assert rerun(results, entry, (0.0, 12.0)).looks == []
    (shown,) = told(write_replay(results, ["cd"], out=results.parent / "d.html")[0])["animations"]
    assert {rank for row in shown["models"]["ranks"] for rank in row} <= set(range(shown["models"]["colours"]))


def test_nothing_of_the_result_is_changed(results):
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    write_replay(results, out=results.parent / "f.html")
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before


def tampered(results, tmp_path, change):
    """A copy of the results with another trace of one run, signed as if it were its own."""
    copy = tmp_path / "watched"
    shutil.copytree(results, copy)
    (entry,) = chosen(copy, ["cd"])
    path = entry.folder / "trace.parquet"
    table = pd.read_parquet(path)
    change(table)
    store = Store(copy)
    result = store.load(entry.run)
    result.trace["value"] = table["value"]
    shutil.rmtree(entry.folder)
    store.save(entry.run, result)
    return copy, entry


def test_a_trace_that_was_changed_and_signed_anew_is_found_out(results, tmp_path, capsys):
    def flatter(table):
        table.loc[table.index[-1], "value"] += 1e-9

    copy, entry = tampered(results, tmp_path, flatter)
    assert read_manifest(entry.folder)[1]["trace.parquet"]  # the store finds nothing wrong with it
    with pytest.raises(AuditFailure, match="another trace"):
        write_replay(copy, ["cd"])
    assert main(["replay", str(copy), "--run", "cd"]) == 3
    said = capsys.readouterr().err
    assert "its files are not what this scenario, seed and code give" in said
    table = pd.read_parquet(entry.folder / "trace.parquet")
    last = table.iloc[-1]
    assert f"the first difference: row {len(table):,} of {len(table):,}, at time {float(last['time'])!r} after" in said
    assert f"({last['metric']}, {last['statistic']}): value {float(last['value'])!r} was saved and is " in said
    assert not (copy / "replay.html").exists()


def test_the_first_row_that_differs_is_told(results):
    (entry,) = chosen(results, ["cd"])
    trace = pd.read_parquet(entry.folder / "trace.parquet")
    assert first_difference(trace, trace.copy()) == ""
    other = trace.copy()
    other.loc[[7, 9], "value"] += 1.0
    other.loc[7, "messages"] = -1
    told = first_difference(trace, other)
    assert told.startswith(f"row 8 of {len(trace):,}, at time {float(trace['time'][7])!r} after ")
    assert f"messages {trace['messages'][7]} was saved and is -1" in told
    assert "value" in told
    missing = trace.copy()
    missing.loc[3, "value"] = np.nan
    assert first_difference(missing, missing.copy()) == ""
    assert first_difference(trace, missing).startswith("row 4 of")
    shorter = first_difference(trace, trace.iloc[:5])
    assert shorter.startswith("5 rows are equal, and then row 6, at time")
    assert "was saved and is missing in the other" in shorter
    assert "comes when made again" in first_difference(trace.iloc[:5], trace)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "12"], "0 <= from < to, and from < 12"),
        (["--from", "3", "--to", "2"], "0 <= from < to"),
        (["--agents", "1"], "must be at least 2"),
        (["--run", "nobody"], "no protocol or run 'nobody'"),
    ],
)
def test_what_is_not_admissible_is_said(arguments, said, results, capsys):
    assert main(["replay", str(results), *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_long_run_is_cut_and_the_page_says_so(results, monkeypatch):
    monkeypatch.setattr("hushnet.simulator.replay.replay_page.MOST_MESSAGES", 50)
    path, notes = write_replay(results, ["cd"], out=results.parent / "g.html")
    data = told(path)
    assert data["window"][1] < 12
    assert len(data["animations"][0]["messages"]["start"]) < 150
    assert notes[0] in path.read_text()
    path, _ = write_replay(results, ["cd"], out=results.parent / "h.html", first=10.0)
    assert told(path)["window"][0] == 10.0
    assert "What had ended before t = 10.0 is neither shown nor counted" in path.read_text()


def test_the_curve_of_epsilon_is_there_where_some_of_it_is_finite(results, both):
    path, _ = write_replay(results, ["cd"], out=results.parent / "i.html")
    for page, spent in ((both, "epsilon_verified"), (path, None)):
        assert told(page)["spent"] == spent
        assert ('id="spent"' in page.read_text()) == (spent is not None)


def test_some_agents_are_the_first_and_those_nearest_to_it(results):
    path, _ = write_replay(results, ["cd"], out=results.parent / "i.html", agents=5)
    (shown,) = told(path)["animations"]
    assert len(shown["agents"]) == len(shown["places"]) == 5
    assert set(shown["messages"]["from"]) <= set(range(5))
    assert len(shown["models"]["ranks"][0]) == 5


def test_a_large_graph_stands_where_it_stood_the_time_before():
    pairs = {tuple(sorted((agent, (agent * 7 + step) % 600))) for agent in range(600) for step in (1, 2, 3)}
    edges = tuple((tail, head, 1.0) for tail, head in sorted(pairs) if tail < head)
    once, again = (graph_layout.__wrapped__(600, edges) for _ in range(2))
    assert np.array_equal(once, again)
    assert len(np.unique(once.round(6), axis=0)) > 300


def test_a_sentence_about_code_names_the_file_in_the_results(tmp_path, capsys):
    assert main(["new", "protocol", "gossip", "--dir", str(tmp_path)]) == 0
    text = TEXT.replace("{kind: local}", "{kind: ./gossip.py:Gossip, step_size: 0.1}").partition("sweep:")[0]
    (tmp_path / "own.yaml").write_text(text)
    out = tmp_path / "out"
    assert main(["run", str(tmp_path / "own.yaml"), "--out", str(out), "--quiet", "--trust-code", "--seeds", "1"]) == 0
    capsys.readouterr()
    assert main(["replay", str(out)]) == 2
    sentence = capsys.readouterr().err.strip()
    assert sentence.endswith(f"the code in {out / 'origin' / 'gossip.py'} is run only with --trust-code")
    assert sentence.startswith(f"{out}: scenario of the run: protocols.local.kind = ")
    (out / "origin" / "gossip.py").unlink()
    assert main(["replay", str(out), "--trust-code"]) == 2
    assert f": {out / 'origin' / 'gossip.py'}: cannot be read" in capsys.readouterr().err


def test_a_run_with_a_metric_of_ones_own_is_made_again_as_verified_as_it_was(tmp_path, capsys):
    text = TEXT.partition("sweep:")[0].replace("[objective", "['./own.py:zero', objective")
    (tmp_path / "own.py").write_text("def zero(snapshot):\n    return 0.0\n")
    (tmp_path / "own.yaml").write_text(text)
    out = tmp_path / "out"
    assert main(["run", str(tmp_path / "own.yaml"), "--out", str(out), "--quiet", "--trust-code", "--seeds", "1"]) == 0
    assert main(["replay", str(out), "--trust-code"]) == 0, capsys.readouterr().err


def test_a_run_whose_observers_were_recorded_on_the_way_is_made_again(tmp_path, capsys):
    text = TEXT.partition("sweep:")[0].replace("epsilon,", "epsilon, epsilon_observers,")
    (tmp_path / "seen.yaml").write_text(f"{text}observers: [agents, neighbours]\n")
    out = tmp_path / "out"
    assert main(["run", str(tmp_path / "seen.yaml"), "--out", str(out), "--quiet", "--seeds", "1"]) == 0
    (entry,) = chosen(out, ["private"])
    made = rerun(out, entry, (2.0, 6.0), agents=4)  # refuses another trace
    learned = made.trace.query("metric == 'epsilon_observers' and statistic == 'worst'")["value"]
    assert 0 < learned.max() < math.inf
    assert made.shown is not None
    assert made.shown.sum() == 4
    assert made.events["end"].max() >= 2.0
    assert made.events["start"].max() <= 6.0
    names = {name for rank, name in enumerate(made.task.ids) if made.shown[rank]}
    assert set(made.events["agent"]) <= {str(name) for name in names}
    assert main(["replay", str(out), "--run", "rounds"]) == 0, capsys.readouterr().err


def test_runs_are_named_by_protocol_seed_and_swept_values(results, tmp_path):
    assert [entry.manifest["protocol"] for entry in chosen(results)] == ["cd", "pairs"]
    (one,) = chosen(results, ["private one, seed=1, network.latency.mean=2.0"])
    assert (one.manifest["protocol"], one.manifest["seed"], one.grid) == ("private", 1, {"network.latency.mean": 2.0})
    assert chosen(results, [one.run])[0].run == one.run
    text = TEXT.replace("label: private one", 'label: "private, one"').partition("sweep:")[0]
    (tmp_path / "swept.yaml").write_text(
        f'{text}sweep: {{"protocols.{{cd,rounds}}.mu": [0.1, 2.0], task.samples: [[9, 9], [9, 20]]}}'
    )
    assert (
        main(["run", str(tmp_path / "swept.yaml"), "--out", str(tmp_path / "swept"), "--quiet", "--set", "stop.time=1"])
        == 0
    )
    asked = "private, one, protocols.{cd,rounds}.mu=2, task.samples=[9,20], seed=1"
    (one,) = chosen(tmp_path / "swept", [asked])
    assert (one.manifest["protocol"], one.manifest["seed"]) == ("private", 1)
    assert one.grid == {"protocols.{cd,rounds}.mu": 2.0, "task.samples": "[9, 20]"}
    for text, said in {
        "cdd": "there is no protocol or run 'cdd'; did you mean 'cd'",
        "cd,seed=7": "no such run has seed = 7; there are 0, 1",
        "cd,network.loss=1": "nothing is called 'network.loss'",
        "": "names no run",
    }.items():
        if text:
            with pytest.raises(InputError, match=re.escape(said)):
                chosen(results, [text])
    with pytest.raises(InputError, match="at most 2 runs"):
        chosen(results, ["cd", "cd", "cd"])
