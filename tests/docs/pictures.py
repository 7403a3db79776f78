"""Pictures of the written pages, drawn by the commands that they show: ``python -m tests.docs.pictures [PAGE ...]``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hushnet.simulator.cli import main
from hushnet.simulator.docs.site import ROOT, WRITTEN

from ..snippets import execute

FIGURES = {
    "start-figure": "mine/figures/*.png",
    "start-protocol": "try/figures/*.png",
    "start-comparison": "slow/figures/*.png",
    "howto-own": "own/figures/*.png",
    "howto-pairs": "pairs/figures/*.png",
    "howto-latency": "stragglers-quick/figures/*.png",
    "howto-graphs": "ring/figures/*.png",
    "howto-kinds": "mine/figures/*.png",
    "howto-steps": "steps/figures/*.png",
    "first-protocol": "first/figures/*.png",
    "comparison-for-a-paper": "slow-messages/figures/reached.png",
}
"""The figure of a page's commands."""
SCENARIOS = {
    "howto-data": ("digits", "digits-quick", "--quick"),
    "howto-adversaries": ("byzantine", "byzantine-quick", "--quick"),
}
"""Scenarios of which pages show a figure and not the whole run."""
PAGES = {"howto-replay": "watched.html", "howto-artifact": "results/quickstart/report.html", "howto-view": ""}
"""Pages of HTML that are photographed."""
STYLE = "{resolution: 100}"


def page_of(name: str) -> Path:
    """The file of a page."""
    here = WRITTEN / f"{name}.md"
    return here if here.is_file() else ROOT / "scenarios" / "tutorials" / f"{name}.md"


def drawn(name: str) -> Path:
    """Make a page's figure in this folder."""
    if name in SCENARIOS:
        scenario, results, *more = SCENARIOS[name]
        assert main(["run", scenario, "--quiet", *more]) == 0
        pattern = f"{results}/figures/*.png"
    else:
        execute(page_of(name))
        if name == "howto-artifact":
            assert main(["report", "results/quickstart"]) == 0
        if name in PAGES:
            return photographed(name)
        pattern = FIGURES[name]
    results = Path("results", pattern.partition("/")[0])
    assert main(["plot", str(results), "--format", "png", "--style", STYLE]) == 0
    return sorted(Path("results").glob(pattern))[0]


def photographed(name: str) -> Path:
    """A picture of a page of HTML in a browser, in few colours."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    from ..conftest import CHROMIUM

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        shown = browser.new_page(viewport={"width": 1000, "height": 1000 if name == "howto-view" else 800})
        words = [sys.executable, "-m", "hushnet.simulator.cli", "view", "results"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            served = server.stdout.readline().strip().removeprefix("view: ")
            shown.goto(Path(PAGES[name]).resolve().as_uri() if PAGES[name] else served)
            shown.wait_for_selector("html[data-ready=yes]")
            for rank in (1, 4) if name == "howto-view" else ():
                shown.get_by_label("compare run").nth(rank).check()
                shown.wait_for_timeout(1000)
            shown.evaluate("window.scrollTo(0, 0)")
            shown.screenshot(path="page.png")
            server.terminate()
        browser.close()
    Image.open("page.png").convert("RGB").quantize(48, dither=Image.Dither.NONE).save("few.png", optimize=True)
    return Path("few.png")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or [*FIGURES, *SCENARIOS, *PAGES]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            sys.path.insert(0, folder)
            shutil.copyfile(drawn(wanted), WRITTEN / "pictures" / f"{wanted}.png")
            os.chdir(ROOT)
