"""A report in a browser: it draws, obeys its controls, is silent, and is for everybody, by keyboard and on paper."""

from __future__ import annotations

import http.server
import itertools
import threading
import urllib.request

import numpy as np
import pandas as pd
import pytest

from .made import LABELS, make_experiment, make_run

HOSTILE = """<script>alert(1)</script></script><!--<script>&amp;"'`<img src=x onerror=alert(2)>${7*7}%{x} ε\u2028雪"""


def test_the_page_loads_without_a_complaint_or_a_connection(still):
    assert still.complaints == []
    assert len(still.requests) == 1
    assert still.page.get_attribute("html", "lang") == "en"


class Listener(http.server.BaseHTTPRequestHandler):
    """A server that counts who comes."""

    def do_GET(self):
        self.server.visits.append(self.path)
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()

    def log_message(self, *given):
        """Say nothing."""


@pytest.fixture
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener) as running:
        running.visits = []
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


CONNECT = """async url => {
  const picture = new Image();
  const seen = new Promise(done => { picture.onload = () => done("loaded"); picture.onerror = () => done("refused") });
  picture.src = url + "picture.png";
  return [await fetch(url + "fetch").then(() => "connected", () => "refused"), await seen];
}"""


def test_the_page_cannot_connect_to_anything_and_needs_no_eval(opened, results, server):
    url = f"http://127.0.0.1:{server.server_port}/"
    assert urllib.request.urlopen(url + "there").status == 200
    found = opened(results)
    assert found.page.evaluate(CONNECT, url) == ["refused", "refused"]
    assert server.visits == ["/there"]
    # In a timer: what the driver itself evaluates is exempt from the page's policy.
    tried = """() => new Promise(done => setTimeout(() => {
        try { (0, eval)("1"); done("evaluated") } catch (error) { done(error.name) } }))"""
    assert found.page.evaluate(tried) == "EvalError"


def test_charts_and_paper_show_the_protocols_that_are_chosen_and_no_infinite_epsilon(opened, results):
    found = opened(results)
    toggle = found.page.get_by_label("coordinate descent", exact=True)
    everything = list(LABELS.values())
    assert [line["name"] for line in found.drawn("curve")] == everything
    toggle.uncheck()
    for figure in ("curve", "spread"):
        assert [line["name"] for line in found.drawn(figure)] == ["purely local", "private CD"]
    found.page.emulate_media(media="print")
    assert not found.page.is_visible("#curve-choices")
    assert not found.page.is_visible("#protocols input >> nth=0")
    labels = found.page.locator("#protocols label")
    assert [labels.nth(k).is_visible() for k in range(3)] == [True, False, True]
    assert found.page.is_visible("#curve .main-svg >> nth=0")
    found.page.emulate_media(media="screen")
    toggle.check()
    assert [line["name"] for line in found.drawn("curve")] == everything
    found.page.get_by_label("Horizontal axis").select_option("epsilon")
    assert [line["name"] for line in found.drawn("curve")] == ["purely local", "private CD"]
    assert "Not drawn (infinite, or not recorded): coordinate descent" in found.page.text_content("#curve figcaption")


def test_the_drawn_numbers_are_those_of_the_files(still, results):
    trace = pd.concat(pd.read_parquet(path) for path in sorted(results.glob("*/trace.parquet")))
    chosen = trace[(trace["metric"] == "accuracy") & (trace["statistic"] == "mean")]
    for line, protocol in zip(still.drawn("curve")[1:], list(LABELS)[1:], strict=True):
        means = chosen[chosen["protocol"] == protocol].groupby("time")["value"].mean()
        assert line["x"] == list(means.index)
        np.testing.assert_allclose(line["y"], means, rtol=1e-5)


def test_the_headline_table_is_that_of_the_files(still, results):
    trace = pd.concat(pd.read_parquet(path) for path in sorted(results.glob("*/trace.parquet")))
    heads, *rows = still.table("#headline")
    column = heads.index("accuracy")
    last = trace[(trace["metric"] == "accuracy") & (trace["statistic"] == "mean") & (trace["time"] == 10)]
    for row, (key, label) in zip(rows, LABELS.items(), strict=True):
        values = last.loc[last["protocol"] == key, "value"]
        half = 4.302652729911275 * values.std() / np.sqrt(3)  # t of 0.975 with 2 degrees of freedom
        mean, _, width = row[column].partition(" ± ")
        assert row[0] == label
        assert float(mean) == pytest.approx(values.mean(), abs=0.6 * 10 ** -len(mean.partition(".")[2]))
        assert float(width) == pytest.approx(half, abs=0.6 * 10 ** -len(width.partition(".")[2]))


def test_a_broken_claim_is_loud(still):
    assert "private CD: the claim does not hold: ε claimed 0.15, verified 37.2" in still.page.text_content(".alarms")
    assert "⚠ claimed below verified" in still.page.text_content("#claims tr.flagged")


def test_the_numbers_of_a_chart_are_a_table_for_those_who_cannot_see_it(still):
    heads, *rows = still.table("#curve .numbers table")
    assert heads == ["protocol", "time (expected wake-ups)", "accuracy, mean over agents", "95 % half-width", "runs"]
    drawn = still.drawn("curve")[1]
    mine = [row for row in rows if row[0] == "coordinate descent"]
    assert [float(row[2]) for row in mine] == pytest.approx(
        [drawn["y"][drawn["x"].index(float(row[1]))] for row in mine], rel=1e-4
    )


def test_a_place_in_the_sweep_can_be_chosen_and_all_be_opened(opened, swept):
    found = opened(swept)
    assert len(found.drawn("curve")) == 3
    found.page.get_by_label("network.loss").first.select_option(label="0.3")
    assert "network.loss" not in found.page.text_content("#curve .legend")
    found.page.get_by_label("network.loss").first.select_option(label="every value")
    assert len(found.drawn("curve")) == 9
    assert "coordinate descent, network.loss 0.3" in found.page.text_content("#curve .legend")


def test_hostile_names_are_texts_and_nothing_else(opened, tmp_path):
    runs = [
        make_run(p, seed, grid={HOSTILE: HOSTILE + str(k)}, label=p + HOSTILE, warnings=[HOSTILE])
        for p in LABELS
        for seed in range(2)
        for k in range(2)
    ]
    for run in runs:
        run.manifest["scenario"] |= {"title": HOSTILE, "description": HOSTILE, "scenario": HOSTILE}
        run.manifest |= {"status": "diverged", "error": HOSTILE} if run.manifest["seed"] else {}
    found = opened(make_experiment(tmp_path, runs))
    assert found.complaints == []
    assert found.page.text_content("h1") == HOSTILE
    assert found.page.title() == HOSTILE + " – hushnet report"
    assert found.page.evaluate("document.querySelectorAll('img, body script:not(#data)').length") == 3
    assert found.data["protocols"][0]["label"] == "local" + HOSTILE
    labels = found.page.eval_on_selector_all("#protocols label", "all => all.map(label => label.textContent)")
    assert labels == [p + HOSTILE for p in LABELS]
    texts = found.page.eval_on_selector_all("#spread .chart text", "all => all.map(text => text.textContent)")
    assert "local" + HOSTILE.replace("\u2028", "") in [text.replace("\u2028", "") for text in texts]
    assert found.complaints == []


FOCUSED = """() => {
  const e = document.activeElement;
  e.dataset.seen ??= Math.random();
  return e.matches("a[href], input, select, summary") ? e.dataset.seen : "";
}"""


def test_every_control_has_a_label_and_is_reached_and_worked_by_the_keyboard(opened, swept):
    found = opened(swept)
    page = found.page
    unlabelled = "all => all.filter(e => !e.labels?.length || !e.labels[0].textContent.trim()).length"
    assert page.eval_on_selector_all("input, select", unlabelled) == 0
    levels = page.eval_on_selector_all("h1, h2, h3, h4", "all => all.map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    named = "all => all.every(e => e.getAttribute('aria-label'))"
    assert page.eval_on_selector_all("[role=img], [role=region]", named)
    assert page.eval_on_selector_all("[id]", "all => all.length - new Set(all.map(e => e.id)).size") == 0
    wanted = page.eval_on_selector_all(
        "a[href], input, select, summary",
        "all => all.filter(e => e.checkVisibility({checkVisibilityCSS: true})).length",
    )
    seen = set()
    for _ in range(wanted + 30):
        page.keyboard.press("Tab")
        seen.add(page.evaluate(FOCUSED))
    assert len(seen - {""}) >= wanted
    page.get_by_label("coordinate descent", exact=True).focus()
    page.keyboard.press("Space")
    assert len(found.drawn("curve")) == 2
    page.get_by_label("Horizontal axis").focus()
    page.keyboard.press("ArrowDown")
    assert found.page.input_value("#curve-axis") == "activations"


CONTRASTS = """() => {
  const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = text => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map(channel);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = e => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const written = e => e.offsetParent && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  return [...document.querySelectorAll("body *")].filter(written).map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  });
}"""


def test_every_text_stands_out_from_its_ground(still):
    contrasts = still.page.evaluate(CONTRASTS)
    assert len(contrasts) > 50
    assert min(contrasts) >= 4.5


def test_nothing_sticks_out_of_a_narrow_screen(opened, swept):
    found = opened(swept, viewport={"width": 380, "height": 800})
    assert found.page.evaluate("document.documentElement.scrollWidth") <= 380


def test_without_a_script_the_tables_are_there(opened, results):
    found = opened(results)
    context = found.page.context.browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(found.page.url)
    assert page.locator("#headline tbody tr").count() == 3
    assert page.is_visible("noscript p")
    context.close()
