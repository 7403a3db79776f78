"""From a point to its runs, and from a run to its own curve, its agents, its files and its replay."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.simulator import run
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.report import single
from hushnet.simulator.report.page import content

SCENARIO = """
schema: 1
scenario: few
task: {kind: linear_classification, agents: 8, dimension: 3, samples: [4, 9]}
topology: {kind: ring}
network: {latency: 0.4}
stop: {updates: 6}
record: {every: 1.0, metrics: [objective, accuracy, traffic]}
seeds: 3
protocols:
  cd: {kind: coordinate_descent, mu: 0.5}
  local: {kind: local}
sweep: {network.loss: [0.0, 0.3]}
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("single")
    (folder / "few.yaml").write_text(SCENARIO)
    return run(folder / "few.yaml", out=folder / "results").folder


def test_every_run_has_its_own_curve_and_agents_at_its_graph(swept):
    collection = load_all(swept)
    found = content(collection, swept)["data"]["single"]
    assert set(found["runs"]) == set(collection.runs)
    for name, own in found["runs"].items():
        trace = collection.trace[collection.trace["run"] == name]
        for metric, curve in own["m"].items():
            part = trace[
                (trace["metric"] == metric.partition(":")[0]) & (trace["statistic"] == metric.partition(":")[2])
            ]
            assert curve[-1] == pytest.approx(part["value"].iloc[-1], rel=1e-3), (name, metric)
            assert len(curve) == len(own["x"])
        agents = collection.agents[collection.agents["run"] == name]
        np.testing.assert_allclose(own["a"], agents[found["agents"]], rtol=1e-3)
        assert len(found["graphs"][own["g"]]["at"]) == 8
    edges = next(iter(found["graphs"].values()))["edges"]
    assert sorted(map(tuple, edges)) == sorted([*((k, k + 1) for k in range(7)), (0, 7)])


def test_many_runs_keep_one_metric_and_then_no_agents(swept, monkeypatch):
    collection = load_all(swept)
    start = content(collection, swept)["data"]["start"]
    monkeypatch.setattr(single, "NUMBERS", 40)
    found = content(collection, swept)["data"]["single"]
    assert found["metrics"] == [start["metric"]]
    assert found["agents"] == ""
    assert found["graphs"] == {}
    assert all(len(own["x"]) <= single.PLACES[0] and "a" not in own for own in found["runs"].values())


def test_a_run_of_the_table_opens_with_the_keyboard_and_shows_its_curve_agents_and_files(opened, swept):
    found = opened(swept)
    view = found.page
    assert view.is_hidden("#one")
    link = view.locator("#runs-table a.one").nth(4)
    link.focus()
    view.keyboard.press("Enter")
    assert view.is_visible("#one")
    assert view.evaluate("document.activeElement.id") == "one"
    said = view.text_content("#one-name")
    assert said is not None
    assert said.startswith("One run: ")
    assert "network.loss" in said
    assert "seed" in said
    name = link.get_attribute("data-id")
    assert view.text_content("#one-id") == name
    files = view.eval_on_selector_all("#one-files a", "links => links.map(link => link.getAttribute('href'))")
    assert all((swept / file).is_file() for file in files)
    own = found.data["single"]["runs"][link.get_attribute("data-run")]
    drawn = view.eval_on_selector("#one-curve .chart", "chart => chart.data.at(-1).y")
    assert drawn == own["m"][view.input_value("#one-metric")]
    portrait = view.eval_on_selector("#one-agents .chart", "chart => chart.data[1].marker.color")
    assert portrait == own["a"]
    metrics = view.eval_on_selector_all("#one-metric option", "options => options.map(option => option.value)")
    view.select_option("#one-metric", metrics[-1])
    assert view.eval_on_selector("#one-curve .chart", "chart => chart.data.at(-1).y") == own["m"][metrics[-1]]
    view.emulate_media(media="print")
    view.evaluate("window.dispatchEvent(new Event('beforeprint')); window.dispatchEvent(new Event('afterprint'))")
    assert found.complaints == []
    assert all(address.startswith("file:") for address in found.requests)


def test_a_run_fits_on_a_phone_in_the_dark(opened, swept):
    found = opened(swept, viewport={"width": 390, "height": 800}, color_scheme="dark")
    view = found.page
    view.locator("#runs-table a.one").first.click()
    assert view.is_visible("#one")
    assert view.evaluate("document.documentElement.scrollWidth") <= 390
    assert found.complaints == []


def test_every_run_has_a_timeline_whose_rates_add_up_to_its_totals(swept):
    collection = load_all(swept)
    found = content(collection, swept)["data"]["single"]
    for name, manifest in zip(collection.runs, collection.manifests, strict=True):
        own = dict(found["runs"][name]["t"])
        times = np.array(own.pop("x"))
        totals = manifest["totals"]
        if totals["time"] == 0:
            assert own == {}
            continue
        assert {"steps", "messages sent"} <= set(own)
        for rate, total in (("steps", "activations"), ("messages sent", "messages")):
            assert np.diff(times) @ own[rate] == pytest.approx(totals[total], rel=1e-2)
        assert ("lost" in own) == (totals["lost"] > 0)


def test_timelines_are_left_out_where_runs_are_too_many(swept, monkeypatch):
    monkeypatch.setattr(single, "TIMELINE_NUMBERS", 40)
    found = content(load_all(swept), swept)["data"]["single"]
    assert all("t" not in own for own in found["runs"].values())


def test_the_timeline_is_drawn_beside_its_numbers(opened, swept):
    view = opened(swept).page
    view.locator("#runs-table a.one").nth(0).click()
    view.wait_for_selector("#one-timeline .chart .main-svg")
    assert "per time unit" in (view.text_content("#one-timeline figcaption") or "")
    assert view.locator("#one-timeline .numbers tr").count() > 3
