"""A browser, and pages opened in it under the eyes of the test."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hushnet.simulator.report.report_page import write_report

from .made import LABELS, make_experiment, make_run


@dataclass
class Opened:
    """A page in the browser, everything that it asked the network for, and everything that it complained about."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def data(self) -> dict[str, Any]:
        """The data embedded in the page."""
        return json.loads(self.page.text_content("#data"))

    def drawn(self, figure: str) -> list[dict[str, Any]]:
        """What Plotly draws in a figure: names, places and values of its lines and boxes, bands left out."""
        return self.page.eval_on_selector(
            f"#{figure} .chart",
            "chart => chart.data.filter(t => t.name !== undefined).map(({name, x, y}) => ({name, x, y}))",
        )

    def table(self, selector: str) -> list[list[str]]:
        """The texts of a table, row by row."""
        return self.page.eval_on_selector(
            selector,
            "t => [...t.rows].map(row => [...row.cells].map(cell => cell.textContent.replace(/\\s+/g, ' ').trim()))",
        )


def open_report(browser: Any, results: Path, **options: Any) -> Opened:
    """Open the report of a results folder, written if it is not there, and wait until everything is drawn."""
    path = results / "report.html"
    if not path.exists():
        write_report(results)
    page = browser.new_page(**{"viewport": {"width": 1200, "height": 900}, **options})
    found = Opened(page)
    page.on("request", lambda request: found.requests.append(request.url))
    page.on("console", lambda message: found.complaints.append(message.text))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    return found


@pytest.fixture
def opened(browser):
    """A function that opens the report of a results folder in a page of its own."""
    pages = []

    def show(results: Path, **options: Any) -> Opened:
        pages.append(open_report(browser, results, **options))
        return pages[-1]

    yield show
    for found in pages:
        found.page.close()


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    return make_experiment(
        tmp_path_factory.mktemp("made"), figures=[{"y": "accuracy", "x": "time", "statistic": "mean"}]
    )


@pytest.fixture(scope="session")
def swept(tmp_path_factory):
    points = [{"network.loss": loss, "network.latency.mean": mean} for loss in (0.0, 0.1, 0.3) for mean in (0.1, 1.0)]
    runs = [make_run(p, seed, grid=point) for point in points for seed in range(2) for p in LABELS]
    return make_experiment(tmp_path_factory.mktemp("swept"), runs)


@pytest.fixture(scope="session")
def still(browser, results):
    """One page for all tests that only look."""
    found = open_report(browser, results)
    yield found
    found.page.close()
