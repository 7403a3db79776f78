"""How long a report of 2,000 runs takes to write, and to load in Chromium until everything is drawn.

    python -m tests.benchmarks.report_load

On one processor, if the system lets a process choose; beside it a page of few runs, whose time is the script's own.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from hushnet.simulator.report.report_page import write_report
from playwright.sync_api import sync_playwright

from ..conftest import CHROMIUM
from ..report.test_answers import made

WANTED = 3.0
"""Seconds in which the page should be there."""


def loaded(path: Path) -> float:
    """Seconds from asking for a page until it says that all is drawn: the least of three times."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        found = []
        for _ in range(3):
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            began = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready=yes]")
            found.append(time.perf_counter() - began)
            page.close()
        browser.close()
    return min(found)


def main() -> None:
    """Measure, and print a line each."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        for runs, points in ((30, 2), (1995, 133)):
            losses = [round(0.005 * point, 3) for point in range(points)]
            results = made(Path(folder) / str(runs), seeds=5, losses=losses, gaps=[0.1] * points)
            began = time.perf_counter()
            path = write_report(results)
            written, seconds = time.perf_counter() - began, loaded(path)
            size = path.stat().st_size / 2**20
            said = "yes" if seconds < WANTED else "NO"
            sizes = f"{runs} runs: written in {written:.1f} s, {size:.1f} MiB"
            print(f"{sizes}, loaded in {seconds:.1f} s (< {WANTED:g} s: {said})")


if __name__ == "__main__":
    main()
