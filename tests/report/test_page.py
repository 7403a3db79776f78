"""What a page says, without a browser: where it goes, what it is made from, and what is missing."""

from __future__ import annotations

import html
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.analysis.aggregate import mean_interval
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.cli import main
from hushnet.simulator.figures import plots
from hushnet.simulator.figures.intervals import interval
from hushnet.simulator.language.loading import load
from hushnet.simulator.report import charts
from hushnet.simulator.report.grid import Grid
from hushnet.simulator.report.privacy import privacy_rows
from hushnet.simulator.report.recording import RunRecord
from hushnet.simulator.report.report_page import content, page, write_report

from ..results.synthetic import TIMES
from .made import CLAIM, LABELS, make_experiment, make_run

REAL = {
    "schema": 1,
    "scenario": "real",
    "task": {"kind": "linear_classification", "agents": 6, "dimension": 3, "samples": [10, 20], "points": "ball"},
    "topology": {"kind": "complete"},
    "engine": "event",
    "protocols": {
        "local": {"kind": "local"},
        "cd": {"kind": "coordinate_descent", "mu": 0.1},
        "private": {
            "like": "cd",
            "privacy": {
                "mechanism": "gaussian",
                "target": {"verified": 2.0, "delta": 0.001},
                "updates": 5,
                "sensitivity": "clip",
                "clip": 0.2,
            },
        },
    },
    "stop": {"time": 4},
    "record": {"every": 1, "metrics": ["objective", "accuracy", "epsilon", "traffic"]},
    "seeds": 2,
    "sweep": {"network.loss": [0.0, 0.3]},
    "figures": [{"y": "objective", "statistic": "gap", "x": "vectors", "log": "y"}],
    "style": {"formats": ["png"]},
}


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A small experiment that was really run."""
    folder = tmp_path_factory.mktemp("real")
    scenario = folder / "real.yaml"
    scenario.write_text(json.dumps(REAL))
    assert main(["run", str(scenario), "--quiet", "--out", str(folder / "results")]) == 0
    return folder / "results"


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_the_command_writes_the_page_beside_the_runs(tmp_path, capsys):
    root = make_experiment(tmp_path)
    assert main(["report", str(root)]) == 0
    assert capsys.readouterr().out == f"report: {root / 'report.html'}\n"
    assert (root / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert main(["report", str(root), "--out", str(tmp_path / "elsewhere" / "page.html")]) == 0
    there, here = (
        (path / name).read_text() for path, name in ((tmp_path / "elsewhere", "page.html"), (root, "report.html"))
    )
    links = re.findall(r'<a href="((\w+)/manifest\.json)">\2</a>', here)
    assert links
    assert all((root / target).is_file() for target, _ in links)
    assert there == re.sub(r'<a href="\w+/manifest\.json">(\w+)</a>', r"\1", here)  # whoever has moved it has no runs
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["page.html"]


def test_a_missing_extra_is_said_with_its_command(tmp_path, monkeypatch):
    root = make_experiment(tmp_path)
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(InputError, match="pip install plotly"):
        write_report(root)


def test_the_page_names_no_address_outside_it(tmp_path):
    root = make_experiment(tmp_path)
    text = re.sub(r"<script>.*?</script>", "", page(load_all(root), root), flags=re.DOTALL)
    assert re.findall(r"(?:src|href)=\"(?!#|data:)[^\"]*", text) == []
    assert "default-src 'none'" in html.unescape(text)


def test_the_page_of_real_runs_has_their_numbers(real):
    collection = load_all(real)
    data = data_of(page(collection, real))
    assert data["start"] | {"agents": ""} == {
        "metric": "objective:gap", "axis": "vectors", "logx": False, "logy": True, "agents": ""
    }  # fmt: skip
    trace = collection.trace
    for rank, series in enumerate(data["series"]):
        protocol, loss = list(collection.labels)[series["protocol"]], [0.0, 0.3][series["at"][0]]
        rows = trace[(trace["protocol"] == protocol) & (trace["network.loss"] == loss)]
        chosen = rows[(rows["metric"] == "accuracy") & (rows["statistic"] == "mean")]
        last = chosen.drop_duplicates("run", keep="last")["value"]
        final = data["finals"]["values"][rank]["accuracy"]
        assert final[0] == pytest.approx(last.mean(), rel=1e-5)
        assert final[1] == pytest.approx(12.706204736432095 * last.std() / math.sqrt(2), rel=1e-5)
        assert final[2:4] == [2, 0]
        assert final[4] == pytest.approx(list(last), rel=1e-5)
        curve = next(c for c in data["curves"]["curves"]["time"] if c["s"] == rank)
        np.testing.assert_allclose(curve["x"], TIMES[:5])
        means = chosen.groupby("time")["value"].mean()
        np.testing.assert_allclose(curve["m"]["accuracy:mean"]["y"], means, rtol=1e-5)


def test_the_scenario_of_the_page_gives_the_same_runs_again(real, tmp_path):
    collection = load_all(real)
    text = page(collection, real)
    written = unquote(re.search(r'href="data:text/yaml;charset=utf-8,([^"]*)"', text)[1])
    (tmp_path / "written.yaml").write_text(written)
    again = load(tmp_path / "written.yaml")
    assert [point.values for point in again.points] == [{"network.loss": 0.0}, {"network.loss": 0.3}]
    shown = html.unescape(re.search(r'id="resolved".*?<code>(.*?)</code>', text, re.DOTALL)[1])
    (tmp_path / "resolved.yaml").write_text(shown)
    assert load(tmp_path / "resolved.yaml").scenario.resolved() == again.scenario.resolved()
    assert "hushnet run real.yaml" in text


def test_every_run_that_broke_off_failed_or_is_missing_is_named(tmp_path):
    runs = [
        make_run(p, seed, status="diverged" if (p, seed) == ("cd", 1) else "complete")
        for p in LABELS
        for seed in range(2)
    ]
    root = make_experiment(tmp_path, runs)
    index = json.loads((root / "index.json").read_text())
    index["failed"] = [{"protocol": "cd", "seed": 7, "grid": {}, "error": "ZeroDivisionError: by zero"}]
    index["runs"].append("f" * 16)
    index["grids"] = None
    (root / "index.json").write_text(json.dumps(index))
    text = html.unescape(page(load_all(root), root))
    table = re.search(r'id="failures">.*?</table>', text, re.DOTALL)[0]
    assert "ZeroDivisionError: by zero" in table
    assert "the objective exploded at agent 3" in table
    assert "coordinate descent: 2 runs did not reach the end (failed, diverged)" in text
    assert "1 of 7 runs have not been finished." in text


@pytest.mark.parametrize(
    ("claimed", "verified", "flagged", "shown"),
    [
        (1.0, 0.5, False, ("1", "0.5")),
        (1.0, 1.0000004, True, ("1", "1.0000004")),
        (0.15, math.inf, True, ("0.15", "∞")),
        (None, None, False, ("not stated", "not verified")),
    ],
)
def test_claims_stand_beside_what_was_verified_with_enough_digits(tmp_path, claimed, verified, flagged, shown):
    claim = {**CLAIM, "claimed": claimed, "verified": verified, "flagged": flagged, "because": ["nothing is proved"]}
    collection = load_all(make_experiment(tmp_path, [make_run("cd_eps", privacy=claim), make_run("cd")]))
    (row,) = privacy_rows(collection, Grid(collection))
    assert (row["claimed"], row["verified"]) == shown
    assert row["protected"] == "record / replace-one"
    assert row["because"] == ["nothing is proved"]
    assert bool(row["flagged"]) == flagged


@pytest.mark.parametrize(
    ("claimed", "verified", "flagged", "verdict"),
    [
        (math.inf, 2.0, False, "claim holds"),
        (0.15, math.inf, True, "claimed below verified"),
        (math.inf, math.inf, False, "no finite \N{GREEK SMALL LETTER EPSILON}"),
    ],
)
def test_an_infinite_epsilon_is_no_claim_that_holds(tmp_path, claimed, verified, flagged, verdict):
    claim = {**CLAIM, "claimed": claimed, "verified": verified, "flagged": flagged}
    folder = make_experiment(tmp_path, [make_run("cd_eps", privacy=claim), make_run("cd")])
    table = re.search(r'id="claims">.*?</table>', html.unescape(page(load_all(folder), folder)), re.DOTALL)[0]
    assert verdict in table
    assert ("claim holds" in table) == (verdict == "claim holds")


def test_what_agents_end_with_is_told_by_quantiles_and_infinities_by_number(tmp_path):
    collection = load_all(make_experiment(tmp_path))
    found = charts.spreads(collection, Grid(collection))["values"]
    agents = pd.concat([make_run("cd", seed).agents for seed in range(3)])
    quantiles = np.quantile(agents["accuracy"], charts.QUANTILES)
    np.testing.assert_allclose(found[1]["accuracy"], [*quantiles, agents["accuracy"].mean(), 90, 0], rtol=1e-5)
    assert found[1]["epsilon_verified"] == [None] * 8 + [0, 90]


def test_what_was_tuned_is_shown_with_everything_that_was_tried(tmp_path):
    root = make_experiment(tmp_path)
    index = json.loads((root / "index.json").read_text())
    index["tuning"] = {
        "decided_by": "validation accuracy",
        "trials": 2,
        "seeds": [900, 901],
        "table": "tuning.parquet",
        "note": "tuned on other data drawn alike",
        "warnings": ["cd.mu = 0.1 is the smallest value that was tried"],
        "chosen": [],
    }
    (root / "index.json").write_text(json.dumps(index))
    rows = [("cd", trial, f'{{"mu": {mu}}}', str(seed), score + seed / 1e4, trial == 1)
            for trial, mu, score in ((0, 0.1, 0.5), (1, 0.2, 0.7)) for seed in (0, 1)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["protocol", "trial", "values", "seed", "score", "chosen"])
    table.to_parquet(root / "tuning.parquet")
    text = html.unescape(page(load_all(root), root))
    trials = re.search(r'id="trials">.*?</table>', text, re.DOTALL)[0]
    assert trials.count('class="chosen"') == 1
    assert '{"mu": 0.2}' in trials[trials.index('class="chosen"') :]
    assert re.search(r"0\.50005 ± 0\.00064", trials)
    assert "cd.mu = 0.1 is the smallest value that was tried" in text


def test_pairs_of_runs_are_compared_with_the_first_protocol(tmp_path):
    runs = [make_run(p, seed) for p in LABELS for seed in range(3)]
    for run in runs:
        run.manifest |= {"run_seed": run.manifest["seed"], "data_seed": run.manifest["seed"]}
    root = make_experiment(tmp_path, runs)
    text = html.unescape(page(load_all(root), root))
    table = re.search(r'id="differences">.*?</table>', text, re.DOTALL)[0]
    row = next(row for row in table.split("<tr>") if "final accuracy" in row and "coordinate descent" in row)
    assert f"{0.2 * (1 - math.exp(-10 / 3)):.4f}" in row


def test_bands_of_the_page_know_what_a_metric_can_be_and_stand_ins_are_named(tmp_path):
    runs = [make_run(p, seed) for seed in range(2) for p in LABELS]
    for run in runs:
        run.manifest["task"] = {"name": "synthetic stand-in for gisette"}
    found = content(load_all(make_experiment(tmp_path, runs)), tmp_path)
    ranges = {metric["id"]: metric["range"] for metric in found["data"]["curves"]["metrics"]}
    assert (ranges["accuracy:mean"], ranges["objective:gap"]) == ([0, 1], [0, None])
    assert ranges["objective:value"] == [None, None]
    finals = {metric["id"]: metric["range"] for metric in found["data"]["finals"]["metrics"]}
    assert (finals["accuracy"], finals["area of objective gap"]) == ([0, 1], [0, None])
    assert found["lead"].endswith("; synthetic stand-in for gisette")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_pages_intervals_are_those_of_the_figures():
    """The script computes them from means and half-widths; Python from the values."""
    script = (Path(charts.__file__).parent / "script.js").read_text()
    function = re.search(r"^function interval\(.*?^}", script, flags=re.DOTALL | re.MULTILINE)
    assert function is not None
    cases = [([0.2, 0.5, 0.97], (0, 1)), ([1e-3, 0.5, 2.0], (0, math.inf)), ([-1.0, 3.0], (-math.inf, math.inf))]
    asked, expected = [], []
    for values, within in cases:
        mean, half, _ = mean_interval(values)
        asked.append([mean, half, [charts.number(end) for end in within]])
        expected += [float(end) for end in interval(values, within)[1:3]]
    code = f"{function[0]}\nconsole.log(JSON.stringify({json.dumps(asked)}.flatMap((case_) => interval(...case_))));"
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == pytest.approx(expected)


PAIRS = [("accuracy", "mean"), ("objective", "gap"), ("traffic", "lost")]


def runs_of(collection, protocol):
    return [rank for rank, manifest in enumerate(collection.manifests) if manifest["protocol"] == protocol]


@pytest.mark.parametrize("axis", ["time", "vectors"])
def test_a_curve_is_that_of_the_figure(tmp_path, axis):
    runs = [make_run(p, seed, status="diverged" if seed == 2 else "complete") for seed in range(4) for p in LABELS]
    for run in runs:
        if run.manifest["status"] == "diverged":
            run.trace = run.trace[run.trace["time"] <= 6]
    collection = load_all(make_experiment(tmp_path, runs, time_unit="30 s"))
    recording = RunRecord(collection, PAIRS)
    for metric, (name, statistic) in enumerate(PAIRS):
        points = plots(collection, {"y": name, "statistic": statistic, "x": axis})[0].points
        for protocol in LABELS:
            drawn = points[points["protocol"] == protocol]
            curves = recording.curves(runs_of(collection, protocol), axis, 1000)
            np.testing.assert_array_equal(curves.x, drawn["x"])
            np.testing.assert_allclose(curves.mean[:, metric], drawn["mean"], rtol=1e-14)
            np.testing.assert_array_equal(curves.n[:, metric], drawn["n"])


def test_a_thinned_curve_has_its_ends_and_points_of_the_whole(tmp_path):
    collection = load_all(make_experiment(tmp_path))
    recording = RunRecord(collection, PAIRS)
    whole, thin = (recording.curves(runs_of(collection, "cd"), "vectors", places) for places in (1000, 5))
    assert len(thin.x) == 5
    assert (thin.x[0], thin.x[-1]) == (whole.x[0], whole.x[-1])
    kept = np.searchsorted(whole.x, thin.x)
    np.testing.assert_array_equal(thin.mean, whole.mean[kept])


def test_epsilon_is_an_axis_and_an_infinite_one_has_no_curve(tmp_path):
    runs = [make_run("cd_eps"), make_run("cd")]
    collection = load_all(make_experiment(tmp_path, runs))
    recording = RunRecord(collection, [*PAIRS, ("epsilon_verified", "worst")])
    private = recording.curves(runs_of(collection, "cd_eps"), "epsilon", 100)
    np.testing.assert_allclose(private.x, 3.72 * np.arange(11))
    np.testing.assert_array_equal(private.mean[:, 3], private.x)
    assert len(recording.curves(runs_of(collection, "cd"), "epsilon", 100).x) == 0
