"""The path of an experiment in commands, by relative paths from another folder, for every kind of task and file."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from hushnet.agents.tasks.datasets import DATASETS
from hushnet.simulator.cli import main
from hushnet.simulator.language.described import kinds_in

from .agents.test_images import WRITERS as IMAGES
from .results.test_bundle import FILES

NOISE = "{mechanism: laplace, target: {verified: 8.0, delta: 0.00001}, updates: 2, sensitivity: clip, clip: 0.5}"
DESCENT = f"{{kind: coordinate_descent, mu: 0.04, smoothness: data, privacy: {NOISE}}}"
COLUMNS = f"{{kind: feature_sharing, rho: 0.3, privacy: {NOISE.replace('laplace', 'gaussian')}}}"
SOFTMAX = "{kind: decentralised_sgd}"
LOCAL = {COLUMNS: "feature_sharing", SOFTMAX: "solitary"}
SMALL = "{kind: linear_classification, agents: 4, dimension: 2, samples: [6, 8], test_samples: 4}"
TASKS = {
    "linear_classification": (SMALL, "accuracy", DESCENT),
    "mean_estimation": ("{kind: mean_estimation, agents: 4}", "mse", DESCENT),
    "movielens": ("{kind: movielens, features: 4}", "rmse", DESCENT),
    "synthetic_ratings": ("{kind: synthetic_ratings, users: 6, items: 12, ratings: [4, 8]}", "rmse", DESCENT),
    "adult": ("{kind: adult, agents: 5}", "objective", DESCENT),
    "a9a": ("{kind: a9a, split: {by: columns, parts: [66, 57]}}", "test_loss", COLUMNS),
    "gisette": ("{kind: gisette, split: {by: columns, parts: [2500, 2500]}}", "test_loss", COLUMNS),
    "epsilon": ("{kind: epsilon, split: {by: rows, agents: 4}, loss: logistic}", "accuracy", DESCENT),
    "epsilon_like": ("{kind: epsilon_like, agents: 4, samples: 6, dimension: 3, loss: logistic}", "accuracy", DESCENT),
    "gisette_like": (
        "{kind: gisette_like, rows: 20, test_rows: 10, dimension: 6, split: {by: columns, parts: [3, 3]}}",
        "test_loss",
        COLUMNS,
    ),
    "csv": ("{kind: csv, path: rows.csv, label: label, agent: agent}", "accuracy", DESCENT),
    "digits": ("{kind: digits, split: {kind: even, agents: 4}}", "accuracy", SOFTMAX),
    "mnist": ("{kind: mnist, split: {kind: even, agents: 4}, classes: 3}", "accuracy", SOFTMAX),
    "femnist": ("{kind: femnist, agents: 4, classes: 3}", "accuracy", SOFTMAX),
}
"""A task, a metric of it, and a private protocol that learns it, by kind."""
FIELDS = {
    "files": {
        "task": "{kind: csv, path: rows.csv, label: label, agent: agent}",
        "topology": "{kind: edge_list, path: data/edges.csv}",
        "network": "{latency: {kind: matrix, path: ./data/delays.csv}}",
        "availability": "{kind: trace, path: data/up.csv}",
    },
    "outside": {"topology": "{kind: edge_list, path: ../shared/edges.csv}"},
}
"""Fields of a scenario that name a file, of every kind at once, or one outside of the scenario's folder."""
PUBLISHED = {"movielens": "ml-100k"} | {kind: kind for kind in ("adult", "a9a", "gisette", "epsilon", *IMAGES)}
"""Folders of published data sets by task."""
TINY = {"gisette": 5000, "epsilon": 2000}
"""Features of those of which a few rows do."""
LACKS = "Not in here: the published data set {}; `hushnet data` says where to get it."


def test_every_shipped_task_is_tried():
    assert set(TASKS) == set(kinds_in("task"))


@pytest.mark.parametrize("case", [*FIELDS, *(pytest.param(kind, marks=pytest.mark.slow) for kind in TASKS)])
def test_every_command_does_its_part_from_another_folder(case, tmp_path, monkeypatch, capsys):
    if case in TINY:
        for name in DATASETS[case].files:
            path = tmp_path / "published" / case / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{'+-'[k % 2]}1 {k % 7 + 1}:0.5 {TINY[case]}:{k / 40:.3f}\n" for k in range(24)))
        monkeypatch.setenv("HUSHNET_DATA", str(tmp_path / "published"))
    elif case in IMAGES:
        IMAGES[case](tmp_path / "published" / case)
        monkeypatch.setenv("HUSHNET_DATA", str(tmp_path / "published"))
    elif case in PUBLISHED and not (Path(os.environ.get("HUSHNET_DATA", "")) / PUBLISHED[case]).is_dir():
        pytest.skip(f"needs HUSHNET_DATA with the data set {case}")
    task, metric, protocol = TASKS.get(case, TASKS["linear_classification"])
    fields = {
        "task": task,
        "topology": "{kind: star}" if protocol == COLUMNS else "{kind: complete}",
        "protocols": f"{{local: {{kind: {LOCAL.get(protocol, 'local')}}}, mine: {protocol}}}",
        "stop": "{time: 3}",
        "record": f"{{every: 1, metrics: [{metric}, epsilon]}}",
        "seeds": "2",
        "figures": f"[{{y: {metric}, x: time, style: {{formats: [png]}}}}]",
        **FIELDS.get(case, {}),
    }
    author, reviewer, elsewhere = (tmp_path / name for name in ("author", "reviewer", "elsewhere"))
    for folder in (author / "data", tmp_path / "shared", elsewhere):
        folder.mkdir(parents=True)
    for name, text in FILES.items():
        if name.endswith(".csv"):
            for folder in (author, author / "data", tmp_path / "shared"):
                (folder / name).write_text(text)
    text = "".join(f"{name}: {value}\n" for name, value in fields.items())
    (author / "s.yaml").write_text(f"# A comment.\nschema: 1\nscenario: s\n{text}")

    def hushnet(*words, expected=0):
        code, said = main(list(words)), capsys.readouterr()
        assert code == expected, said.err
        return said.out + said.err

    monkeypatch.chdir(elsewhere)
    hushnet("run", "../author/s.yaml", "--out", "../r", "--quiet")
    assert f"{metric}-vs-time.png" in hushnet("plot", "../r")
    assert "mine" in hushnet("compare", "../r")
    assert hushnet("report", "../r") == "report: ../r/report.html\n"
    assert "replay: ../r/replay.html\n" in hushnet("replay", "../r", "--run", "mine,seed=0")
    assert ("shared/edges.csv` (SHA-256" in hushnet("bundle", "../r")) == (case == "outside")
    said = hushnet("bundle", "../r", "--out", "b.zip", "--with-data")
    assert said == "bundle: b.zip\n" + f"bundle: {LACKS.format(case)}\n" * (case in PUBLISHED)
    asked = ("audit", "../author/s.yaml", "--out", "../r", "--tier", "A,B", "--pairs", "1", "--quiet")
    assert ("no epsilon to audit" in hushnet(*asked, expected=2 * (protocol == SOFTMAX))) == (protocol == SOFTMAX)

    with zipfile.ZipFile("b.zip") as archive:
        archive.extractall(reviewer)
    for folder in (author, tmp_path / "shared"):
        folder.rename(tmp_path / f"old-{folder.name}")
    monkeypatch.chdir(reviewer)
    (scenario,) = reviewer.rglob("scenario.yaml")
    assert scenario.read_text().startswith("# A comment.\n")
    hushnet("run", str(scenario.relative_to(reviewer)), "--out", "results", "--quiet")
    said = hushnet("bundle", "results", "--check", "claims.csv")
    assert "claims hold" in said
    assert "12 of 12 tables are the same" in said
