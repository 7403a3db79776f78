"""The page over many experiments: for its owner alone, for reading alone, live, and right about what is there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlencode

import pytest
from hushnet.agents.errors import InputError
from hushnet.simulator.cli import main
from hushnet.simulator.storage.store import Store
from hushnet.simulator.view import serve
from hushnet.simulator.view.followed import FollowedRuns, details, experiments, listed
from hushnet.simulator.view.page_server import HEADERS, View, application
from tornado.testing import AsyncHTTPTestCase

from ..report.made import make_experiment, make_run

HOSTILE = "<img src=x onerror=alert(1)>"


def swept(root):
    """Two protocols at two points of a sweep; a run that failed; another experiment with a name that is no name."""
    runs = [make_run(p, seed, grid={"network.loss": x}) for x in (0.0, 0.3) for p in ("local", "cd") for seed in (0, 1)]
    make_experiment(root / "made", runs)
    make_experiment(root / HOSTILE, [make_run("cd", label=HOSTILE, status="diverged"), make_run("cd", 1)], name="x")
    (root / "elsewhere").symlink_to(root / "made")
    (root / "notes").mkdir()
    return root


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("results"))


def content(root):
    return {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in sorted(root.rglob("*"))}


def test_folders_of_results_are_found_and_nothing_else(results):
    assert list(experiments(results)) == [HOSTILE, "made"]
    assert list(experiments(results / "made")) == ["made"]
    assert listed("made", results / "made")["words"] == ["8 runs are there, and nobody is writing there"]
    with pytest.raises(InputError, match="notes: holds no results; give a folder of results"):
        serve(results / "notes", 0, print)


def test_runs_are_read_once_as_they_come_and_again_after_another_experiment(tmp_path):
    store, made = Store(tmp_path), [make_run("cd", seed) for seed in range(4)]
    names = [f"{rank:016x}" for rank in range(4)]
    runs, seen = FollowedRuns(tmp_path), []
    for name, run in zip(names[:3], made, strict=False):
        store.save(name, run)
        runs.follow(0.0)
        seen.append([row["seed"] for row in runs.rows])
    assert seen == [["0"], ["0", "1"], ["0", "1", "2"]]
    assert runs.rows[0]["finals"]["accuracy:mean"] == float(f"{made[0].trace['value'].iloc[-3]:.6g}")
    assert runs.metrics["objective:gap"] == {"name": "objective gap", "better": "less"}
    store.save(names[3], made[3])
    era = runs.era
    failed = [{"protocol": "cd", "seed": 9, "grid": {}, "error": "no luck"}]
    twice = [names[3], names[3]]
    store.write_index(
        scenario="s", runs=twice, figures=[], labels={"cd": "CD"}, grids=[{"a": 1}, {"a": 2}], failed=failed
    )
    runs.follow()
    assert runs.era != era
    assert [(row["seed"], row["status"], row["grid"]) for row in runs.rows] == [
        ("9", "failed", {}),
        ("3", "complete", {"a": 1}),
        ("3", "complete", {"a": 2}),
    ]


def test_a_run_that_was_made_again_is_read_again(tmp_path):
    store, runs, name = Store(tmp_path), FollowedRuns(tmp_path), f"{0:016x}"
    for status in ("limited", "complete"):
        store.save(name, make_run("cd", status=status))
        store.write_index(scenario=status, runs=[name], figures=[], labels={"cd": "CD"})
        runs.follow()
        assert [row["status"] for row in runs.rows] == [status]


def test_what_is_damaged_or_a_link_is_a_row_that_says_so(tmp_path):
    make_experiment(tmp_path / "made", [make_run("cd", seed) for seed in range(3)])
    (tmp_path / "made" / f"{0:016x}" / "trace.parquet").write_bytes(b"")
    (tmp_path / "made" / f"{1:016x}").rename(tmp_path / "away")
    (tmp_path / "made" / f"{1:016x}").symlink_to(tmp_path / "away")
    runs = FollowedRuns(tmp_path / "made")
    runs.follow()
    assert [row["status"] for row in runs.rows] == ["damaged", "damaged", "complete"]
    assert "trace.parquet" in runs.rows[0]["error"]
    assert "is a link" in runs.rows[1]["error"]
    with pytest.raises(InputError, match="is a link"):
        details(tmp_path / "made", f"{1:016x}")


@pytest.mark.usefixtures("_results_of_the_class")
class TestRequests(AsyncHTTPTestCase):
    """Requests by tornado's own client."""

    @pytest.fixture
    def _results_of_the_class(self, results):
        type(self).results = results

    def run(self, result=None):
        """In a thread of its own: a browser of other tests keeps an event loop in this one."""
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(super().run, result).result()

    def get_app(self):
        self.view = View(self.results)
        self.view.hosts = {f"127.0.0.1:{self.get_http_port()}"}
        return application(self.view)

    def ask(self, path, *, method="GET", token=True, **headers):
        if token:
            headers["Cookie"] = f"hushnet-{self.get_http_port()}={self.view.token if token is True else token}"
        body = "" if method in ("POST", "PUT") else None
        return self.fetch(path, method=method, headers=headers, follow_redirects=False, body=body)

    def test_only_who_has_the_token_and_names_this_machine_is_answered_and_by_get_alone(self):
        before, run = content(self.results), f"{0:016x}"
        made = {"experiment": "made"}
        cases = [
            ("/", {"token": False}, 403),
            ("/experiments", {"token": "x" * 43}, 403),
            ("/?token=" + "x" * 43, {"token": False}, 403),
            ("/?token=%C3%A9", {"token": False}, 403),
            ("/experiments", {"Host": "evil.example"}, 403),
            ("/experiments", {"method": "POST"}, 405),
            ("/experiments", {"method": "DELETE"}, 405),
            ("/", {}, 200),
            ("/view.js", {}, 200),
            ("/view.css", {}, 200),
            ("/page_server.py", {}, 404),
            ("/../../pyproject.toml", {}, 404),
            ("/experiments", {}, 200),
            ("/runs?" + urlencode(made), {}, 200),
            ("/runs?" + urlencode(made | {"from": "-1", "era": "?"}), {}, 200),
            ("/runs", {}, 400),
            ("/runs?experiment=notes", {}, 404),
            ("/runs?experiment=..", {}, 404),
            ("/runs?experiment=elsewhere", {}, 404),
            ("/run?" + urlencode(made | {"run": run}), {}, 200),
            ("/run?" + urlencode(made | {"run": "0" * 16 + "/../" + run}), {}, 404),
            ("/run?" + urlencode(made | {"run": "a" * 16}), {}, 400),
            ("/replay?" + urlencode(made | {"run": "--out=x"}), {}, 404),
            (f"/runs?experiment={quote(HOSTILE)}", {}, 200),
        ]
        for path, how, code in cases:
            answer = self.ask(path, **how)
            assert answer.code == code, (path, how, answer.body)
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
            if code >= 400:
                assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
                assert len(answer.body.splitlines()) == 1
        assert content(self.results) == before

    def test_the_address_that_is_printed_gives_a_cookie_that_scripts_and_other_pages_lack(self):
        answer = self.ask(f"/?token={self.view.token}", token=False)
        assert (answer.code, answer.headers["Location"]) == (302, "/")
        assert {"HttpOnly", "SameSite=Strict"} <= set(answer.headers["Set-Cookie"].split("; "))

    def test_rows_that_were_given_are_not_given_again(self):
        first = json.loads(self.ask("/runs?experiment=made").body)
        assert (len(first["rows"]), first["left"]) == (8, 0)
        more = json.loads(self.ask(f"/runs?experiment=made&from=8&era={first['era']}").body)
        assert (more["rows"], more["from"]) == ([], 8)


@pytest.fixture
def served(results):
    """The address that the command prints."""
    words = [sys.executable, "-m", "hushnet.simulator.cli", "view", str(results)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.fullmatch(r"view: (http://127\.0\.0\.1:\d+/\?token=\S{43})\n", process.stdout.readline())
        assert found
        yield found[1]
        process.terminate()


def test_in_a_browser_it_filters_compares_and_follows(browser, served, tmp_path_factory, results):
    page, asked, complaints = browser.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))

    def count(text):
        page.wait_for_selector(f"#count:text-is('{text} runs')")

    page.goto(served)
    page.get_by_role("link", name=HOSTILE).click()
    count("2 of 2")
    assert page.text_content("h1") == HOSTILE
    assert page.locator("img").count() == 0
    assert page.locator("td.bad").get_attribute("title") == "the objective exploded at agent 3"
    page.route("**/experiments?", lambda route: None)  # a server that takes its time: links drawn before stay
    page.get_by_label("compare run").first.check()
    page.get_by_role("link", name="made").click()
    page.unroute("**/experiments?")
    count("8 of 8")
    page.locator("select[name='grid.network.loss']").select_option("0.3")
    count("4 of 8")
    axis = page.get_by_role("slider", name="range of accuracy")
    axis.focus()
    for _ in range(5):
        page.keyboard.press("ArrowUp")
    count("2 of 8")
    page.locator("#chosen").click()
    page.get_by_role("checkbox", name="objective gap").uncheck()
    metrics = len(_rows(results / "made")[0]["finals"])
    page.wait_for_selector(f"#chosen:text-is('Metrics: {metrics - 1} of {metrics}')")
    assert page.get_by_role("slider", name="range of objective gap").count() == 0
    assert "objective gap" not in page.text_content("#runs thead")
    page.get_by_label("compare run").first.check()
    page.wait_for_selector("#two-content svg >> nth=3")
    assert "network.loss" in page.text_content("#two-content table")
    late = []
    page.route("**/run?*", lambda route: late.append(route))  # for answers that nobody waits for
    page.get_by_label("compare run").nth(1).check()
    page.get_by_label("compare run").first.uncheck()
    page.wait_for_selector("#two-content >> text=Mark a second run")
    with page.expect_response("**/run?*"):
        late[0].fulfill(body="none")
    page.unroute("**/run?*")
    assert "Mark a second run" in page.text_content("#two-content")
    page.get_by_label("compare run").first.check()
    page.wait_for_selector("#two-content svg >> nth=3")
    address = page.url
    assert "token" not in address
    page.reload()
    count("2 of 8")
    assert page.url == address
    assert page.get_by_label("compare run").first.is_checked()
    assert not page.locator("input[data-metric='objective:gap']").is_checked()
    page.get_by_role("button", name="Forget all filters").click()
    count("8 of 8")
    page.get_by_role("button", name=re.compile("accuracy")).click()
    values = page.eval_on_selector_all("#runs tbody tr", "rows => rows.map(row => Number(row.cells[7].textContent))")
    assert values == sorted(values)
    Store(results / "made").save("f" * 16, make_run("cd", 7))
    names = [row["run"] for row in _rows(results / "made")] + ["f" * 16]
    Store(results / "made").write_index(scenario="made", runs=names, figures=[], labels={})
    count("9 of 9")
    page.locator("input[name=find]").focus()
    page.go_back()
    count("2 of 2")
    assert page.locator("select[name='grid.network.loss']").count() == 0
    assert page.evaluate("document.activeElement.name") == "find"
    page.go_forward()
    count("9 of 9")
    for options in ({"width": 500, "height": 800}, {"width": 1280, "height": 800}):
        page.set_viewport_size(options)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert {url.split("/")[2] for url in asked if not url.startswith("data:")} == {served.split("/")[2]}
    assert complaints == []
    page.close()


def _rows(folder):
    runs = FollowedRuns(folder)
    runs.follow()
    return runs.rows


SCENARIO = """\
schema: 1
scenario: tiny
task: {kind: linear_classification, agents: 4, dimension: 2, samples: [6, 8], test_samples: 4}
topology: {kind: ring}
protocols: {cd: {kind: coordinate_descent}}
stop: {time: 3}
record: {every: 1.0, metrics: [accuracy]}
seeds: 1
engine: event
"""


def test_a_report_and_a_replay_are_a_click_away_and_leave_the_results_as_they_are(browser, tmp_path):
    (tmp_path / "tiny.yaml").write_text(SCENARIO)
    assert main(["run", str(tmp_path / "tiny.yaml"), "--out", str(tmp_path / "results" / "tiny"), "--quiet"]) == 0
    before = content(tmp_path / "results")
    words = [sys.executable, "-m", "hushnet.simulator.cli", "view", str(tmp_path / "results")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        page = browser.new_page()
        page.goto(process.stdout.readline().strip().removeprefix("view: "))
        for name, selector in (("Report of this experiment", "#answer, #results"), ("replay", ".stage")):
            with page.expect_popup() as opened:
                page.get_by_role("link", name=name).first.click()
            opened.value.wait_for_selector("html[data-ready=yes]", timeout=120_000)
            assert opened.value.locator(selector).count()
            opened.value.close()
        page.close()
        process.terminate()
    assert content(tmp_path / "results") == before
