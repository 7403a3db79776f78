"""A report answers first: who wins where, in a sentence and on a map that leads to the runs behind each point."""

from __future__ import annotations

import base64
import re

import numpy as np
import pytest
from hushnet.simulator.analysis.results import load_all
from hushnet.simulator.report.report_page import page, write_report
from hushnet.simulator.storage.store import Store

from .made import LABELS, make_run


def made(folder, *, seeds=6, losses=(0.0, 0.3), gaps=(0.3, -0.3), figures=()):
    """Coordinate descent is ahead of local agents by a gap at each point; private ones are level with it."""
    rng, store = np.random.default_rng(3), Store(folder).claimed()
    names, points = [], []
    for loss, gap in zip(losses, gaps, strict=True):
        for seed in range(seeds):
            for protocol in LABELS:
                run = make_run(protocol, seed, grid={"network.loss": loss})
                last = (run.trace["metric"] == "accuracy") & (run.trace["time"] == run.trace["time"].max())
                run.trace.loc[last, "value"] = 0.5 + gap * (protocol != "local") + rng.normal(0, 0.01)
                names.append(f"{len(names):016x}")
                points.append({"network.loss": loss})
                store.save(names[-1], run)
    store.write_index(scenario="made", runs=names, grids=points, figures=list(figures), labels=dict(LABELS))
    return folder


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    return made(tmp_path_factory.mktemp("answers") / "made")


def test_the_page_begins_with_who_wins_and_where_it_is_open(answered):
    text = page(load_all(answered), answered)
    (answer,) = re.findall(r'<p class="answer" id="answer">(.*?)</p>', text)
    assert answer == ("By final accuracy (more is better), purely local wins at 1 of 2 points, and at 1 it is open.")
    cells = re.findall(r'<td class="(won|open)".*?data-at="([\d,]*)">(.*?)</a>', text)
    assert cells[:2] == [("open", "0", "open: coordinate descent; private CD"), ("won", "1", "purely local")] or cells[
        :2
    ] == [("open", "0", "open: private CD; coordinate descent"), ("won", "1", "purely local")]
    assert text.index('id="answer"') < text.index('id="winners"') < text.index('id="results"')


@pytest.mark.parametrize("values", [(0.1, {"kind": "exponential", "mean": 0.2}), (0.5, None), (1, None), ("a", True)])
def test_a_sweep_may_mix_numbers_with_other_things(values, tmp_path):
    folder = made(tmp_path / "made", losses=values)
    text = page(load_all(folder), folder)
    cells = re.findall(r'<td class="(?:won|open)".*?data-at="([\d,]*)">(.*?)</a>', text)
    assert [at for at, _ in cells[:2]] == ["0", "1"]
    assert [said.startswith("open") for _, said in cells[:2]] == [True, False]


def test_a_point_of_the_map_leads_to_its_runs(opened, answered):
    found = opened(answered)
    view = found.page
    rows = "table => [...table.tBodies[0].rows].filter(row => !row.hidden).length"
    assert view.eval_on_selector("#runs-table", rows) == 36
    view.click(".map td.won >> nth=0")
    assert view.eval_on_selector("#runs-table", rows) == 18
    assert view.text_content("#run-count") == "18 of 36 runs"
    assert view.input_value("#slice select") == "1"
    view.fill("#run-filter", "private 0.3")
    assert view.eval_on_selector("#runs-table", rows) == 6
    assert found.complaints == []


def test_few_runs_are_lines_of_their_own_and_have_no_band(opened, tmp_path):
    few = opened(made(tmp_path / "few", seeds=3))
    lines = few.page.eval_on_selector("#curve .chart", "chart => chart.data.map(t => [t.line.width < 1, t.fill])")
    assert sum(thin for thin, _ in lines) == 9
    assert not any(fill for _, fill in lines)
    assert "thin lines of their own" in few.page.text_content("#curve figcaption")
    enough = opened(made(tmp_path / "enough", seeds=5))
    lines = enough.page.eval_on_selector("#curve .chart", "chart => chart.data.map(t => [t.line.width, t.fill])")
    assert sum(fill == "toself" for _, fill in lines) == 3


def test_the_scenarios_own_figures_are_on_the_page(tmp_path, opened):
    results = made(tmp_path / "drawn", seeds=2, figures=[{"name": "own", "y": "accuracy", "x": "time"}])
    (results / "figures").mkdir()
    dot = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    )
    (results / "figures" / "own.png").write_bytes(dot)
    found = opened(results)
    assert found.page.eval_on_selector(".picture img", "image => image.complete && image.naturalWidth") == 1
    assert all(url.startswith(("file:", "data:")) for url in found.requests)


def test_in_the_dark_page_and_charts_are_dark_and_paper_is_light(opened, answered):
    view = opened(answered, color_scheme="dark").page
    ground = "getComputedStyle(document.body).backgroundColor"
    assert view.evaluate(ground) == "rgb(20, 25, 29)"
    assert view.eval_on_selector("#curve .chart", "chart => chart.layout.paper_bgcolor") == "#14191d"
    view.emulate_media(media="print", color_scheme="dark")
    assert view.evaluate(ground) == "rgb(255, 255, 255)"


@pytest.mark.slow
def test_two_thousand_runs_are_drawn_within_bounds_that_do_not_depend_on_the_machine(tmp_path, opened):
    losses = [round(0.005 * k, 3) for k in range(133)]
    results = made(tmp_path / "large", seeds=5, losses=losses, gaps=[0.1] * 133)
    path = write_report(results)
    assert path.stat().st_size < 12 * 2**20
    found = opened(results)
    assert found.complaints == []
    assert found.page.locator("#runs-table tbody tr").count() == 133 * 5 * 3
