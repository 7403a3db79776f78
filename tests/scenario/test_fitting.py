"""What follows from a scenario's text is refused by ``check``, with its place; what needs data or a graph is not."""

from __future__ import annotations

import pytest
from hushnet.simulator.cli import main

BASE = {
    "schema": "1",
    "scenario": "fitting",
    "task": "{kind: linear_classification, agents: 6, dimension: 2, samples: [5, 5], test_samples: 2}",
    "topology": "{kind: complete}",
    "protocols": "{p: {kind: local}}",
    "stop": "{time: 1}",
    "record": "{every: 1.0, metrics: [accuracy]}",
}
EVERY = "{every: 1.0}"
COLUMNS = "{kind: gisette_like, rows: 20, dimension: 6, split: {by: columns, parts: [3, 3]}}"


FIT = [
    {"task": "{kind: csv, path: rows.csv, label: y, agent: who}", "clock": "{kind: poisson, rate: [1.0, 2.0]}"},
    {"task": COLUMNS, "topology": "{kind: star}", "protocols": "{p: {kind: feature_sharing}}"},
    {"task": COLUMNS, "topology": "{kind: edge_list, path: edges.csv}", "protocols": "{p: {kind: feature_sharing}}"},
    {"topology": "{kind: erdos_renyi, probability: 0.001}"},
    {"topology": "{kind: random_regular, degree: 1, allow_disconnected: true}"},
]


@pytest.mark.parametrize("fields", FIT, ids=range(len(FIT)))
def test_what_data_and_graph_decide_is_not_refused_by_check(tmp_path, capsys, fields):
    (tmp_path / "rows.csv").write_text("who,x,y\n" + "".join(f"{k % 2},{k},{k // 2 % 2}\n" for k in range(12)))
    (tmp_path / "edges.csv").write_text("source,target,weight\n0,1,1\n0,2,1\n")
    (tmp_path / "s.yaml").write_text("".join(f"{key}: {entry}\n" for key, entry in {**BASE, **fields}.items()))
    assert main(["check", str(tmp_path / "s.yaml")]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    "task",
    [
        "{kind: linear_classification, agents: 10000000, dimension: 10000000}",
        "{kind: mean_estimation, agents: 10000000, samples: 10000000}",
        "{kind: synthetic_ratings, users: 10000000, items: 10000000}",
        "{kind: epsilon_like, agents: 10000000, samples: 10000000}",
        "{kind: gisette_like, rows: 10000000, dimension: 10000000}",
    ],
)
def test_what_no_machine_holds_is_refused_by_check(tmp_path, capsys, task):
    (tmp_path / "s.yaml").write_text(
        "".join(f"{key}: {entry}\n" for key, entry in {**BASE, "task": task, "record": EVERY}.items())
    )
    assert main(["check", str(tmp_path / "s.yaml")]) == 5
    assert "GiB of memory, and this machine has" in capsys.readouterr().err
