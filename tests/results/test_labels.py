"""Labels and units, of a style and of a user's own metrics, stand wherever names of swept fields and metrics do."""

from __future__ import annotations

import json

import pytest
from hushnet.simulator import Result, run
from hushnet.simulator.analysis.labels import column_name, named, swept_name, words_of
from hushnet.simulator.cli import main
from hushnet.simulator.metrics import more_is_better, own_metric
from hushnet.simulator.metrics.metric import OWN

OWN_FILE = """\
from hushnet.simulator.metrics import own_metric

@own_metric("spread of the models", unit="mm", better="less")
def spread(snapshot):
    return float(snapshot.models.std())

def plain(snapshot):
    return snapshot.now
"""
SCENARIO = """\
schema: 1
scenario: labelled
task: {kind: mean_estimation, agents: 4}
topology: {kind: complete}
network: {latency: {kind: constant, value: 0.1}}
protocols: {alone: {kind: local}, cd: {kind: model_propagation, alpha: 0.5}}
stop: {time: 3}
record: {every: 1, metrics: [./mine.py:spread, ./mine.py:plain, mse]}
seeds: 3
sweep: {network.loss: [0.0, 0.2]}
style: {labels: {network.loss: lost messages}, units: {network.loss: share}}
figures: [{y: ./mine.py:spread, x: time}]
"""


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "mine.py").write_text(OWN_FILE)
    (tmp_path / "labelled.yaml").write_text(SCENARIO)
    assert main(["run", "labelled.yaml", "--trust-code", "--quiet"]) == 0
    OWN.clear()  # as in a process that has only the files
    return tmp_path / "results" / "labelled"


def test_words_of_styles_and_of_own_metrics_are_in_every_output(results, capsys):
    Result.open(results)
    assert more_is_better("./mine.py:spread") is False
    assert more_is_better("./mine.py:plain") is None
    outputs = {}
    for name, words in {
        "summary": ("run", "labelled.yaml", "--trust-code", "--quiet"),
        "compare": ("compare", str(results), "--measure", "all"),
        "verbose": ("compare", str(results), "--verbose"),
        "report": ("report", str(results)),
        "replay": ("replay", str(results), "--run", "cd,network.loss=0.2", "--trust-code"),
    }.items():
        assert main([*words]) == 0
        outputs[name] = capsys.readouterr().out
    outputs["latex"] = (results / "compare" / "differences.tex").read_text()
    outputs |= {name: (results / f"{name}.html").read_text() for name in ("report", "replay")}
    for name, text in outputs.items():
        flat = " ".join(text.split())
        assert "./mine.py" not in flat.replace("kind: ./mine.py", "") or name == "report", name
        assert "spread of the models (mm)" in flat or name in ("summary", "replay"), name
        assert "lost messages" in flat or (name == "verbose" and "lost" in flat), name
    assert "seed 0, lost messages 0.2 share;" in outputs["replay"]
    about = json.loads((results / "dataset" / "dataset.json").read_text())["names"]
    assert about["network.loss"] == {"label": "lost messages", "unit": "share"}
    assert about["./mine.py:spread"] == {"label": "spread of the models", "unit": "mm", "better": "less"}
    assert set(about) == {"network.loss", "./mine.py:spread", "./mine.py:plain"}


def test_labels_come_from_style_and_functions(results):
    collection = Result.open(results).collection
    assert swept_name(collection, "network.loss") == "lost messages (share)"
    assert named(collection, "network.loss", "loss") == "lost messages (share)"
    assert column_name(collection, "./mine.py:spread") == words_of("./mine.py:spread") == "spread of the models (mm)"
    assert column_name(collection, "./mine.py:plain") == "plain"
    assert column_name(collection, "mse") == "mse"
    assert column_name(collection, "objective", "gap") == "objective gap"


def test_a_function_of_python_is_described_alike(tmp_path):
    @own_metric("largest coordinate", better="more")
    def largest(snapshot):
        return float(snapshot.models.max())

    given = {
        "schema": 1,
        "scenario": "little",
        "task": {"kind": "mean_estimation", "agents": 4},
        "topology": {"kind": "complete"},
        "protocols": {"alone": {"kind": "local"}},
        "stop": {"time": 2},
        "record": {"every": 1, "metrics": ["mse"]},
    }
    found = run(given, out=tmp_path, metrics={"largest": largest})
    assert found.manifests[0]["own_metrics"] == {
        "largest": {"label": "largest coordinate", "unit": "", "better": "more"}
    }
    assert words_of("largest") == "largest coordinate"
    with pytest.raises(ValueError, match="better = 'most': must be 'more', 'less' or None"):
        own_metric("x", better="most")  # pyright: ignore[reportArgumentType]
