"""Which tests are smoke tests, a part of every room in about a minute of processor time; which are long; a browser."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path

import pytest

from .durations import listed

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SMOKE = frozenset(
    {
        "agents/test_clipping.py",
        "agents/test_losses.py",
        "agents/test_compilation.py",
        "engine/test_clocks.py",
        "engine/test_network.py",
        "engine/test_topology.py",
        "engine/test_world.py",
        "experiment/test_measures.py",
        "experiment/test_recorder.py",
        "privacy/test_budget.py",
        "privacy/test_ledger.py",
        "privacy/test_mechanisms.py",
        "scenario/test_figure_parameters.py",
        "scenario/test_invented_kinds.py",
        "scenario/test_mistakes.py",
        "scenario/test_scenario.py",
        "test_architecture.py",
    }
)
"""Files of smoke tests; slow ones in them are none."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the smoke tests, those that are long, and as slow all of their cases but the one that CI makes."""
    long = listed()
    for item in items:
        name, bracket, case = item.nodeid.partition("[")
        if item.path.is_relative_to(HERE) and name in long:
            item.add_marker(pytest.mark.long)
            if long[name] != bracket + case:
                item.add_marker(pytest.mark.slow)
    for item in items:
        of_smoke = item.path.is_relative_to(HERE) and item.path.relative_to(HERE).as_posix() in SMOKE
        if of_smoke and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.smoke)


@pytest.fixture(scope="module", autouse=True)
def settled() -> None:
    """Collections pass over what earlier files left: looking at what compilers keep took half of the time of some."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium; tests that need it skip where it is not installed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra test)")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (apt install chromium)")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()
