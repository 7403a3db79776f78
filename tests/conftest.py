"""Sizes of the test run: quick, smoke, and the default; what is collected only where it is asked for; a browser."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path
from typing import Any

import pytest

from .durations import listed

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUICK = frozenset(
    {
        "agents/test_csv.py",
        "agents/test_losses.py",
        "agents/test_packed.py",
        "engine/test_availability.py",
        "engine/test_clocks.py",
        "engine/test_network.py",
        "engine/test_randomness.py",
        "engine/test_topology.py",
        "privacy/test_ledger.py",
        "privacy/test_mechanisms.py",
        "scenario/test_figure_parameters.py",
        "scenario/test_scenario.py",
        "scenario/test_sweeps.py",
    }
)
"""Files of quick tests: nothing is compiled, no process is started, and no experiment is run."""
SMOKE = QUICK | {
    "agents/test_clipping.py",
    "agents/test_compilation.py",
    "engine/test_world.py",
    "experiment/test_measures.py",
    "privacy/test_budget.py",
    "scenario/test_invented_kinds.py",
    "scenario/test_mistakes.py",
    "test_architecture.py",
}
"""Files of smoke tests; slow ones in them are none."""
SIZES = {"quick": QUICK, "smoke": SMOKE}
ASKED_FOR = ("benchmarks", "campaigns", "oracles", "privacy/mutations", "privacy/planted")
"""Folders of tests that are collected only where a command names them, or a file in them (CI runs a slice)."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without tests of the size that is asked for, whose import takes longer, and `ASKED_FOR`."""
    if not collection_path.is_relative_to(HERE):
        return None
    name = collection_path.relative_to(HERE).as_posix()
    files = SIZES.get(config.option.markexpr)
    if files is not None and collection_path.name.startswith("test_"):
        return name not in files or None
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    apart = name in ASKED_FOR and not any(path.is_relative_to(collection_path) for path in named)
    return apart or None


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
        name = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
        for size, files in SIZES.items():
            if name in files and item.get_closest_marker("slow") is None:
                item.add_marker(size)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each file is one process's: what its tests share is made once, and two seldom wait for one kernel."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.option.dist == "load" else None


@pytest.fixture(scope="module", autouse=True)
def settled() -> None:
    """Collections pass over what earlier files left: looking at what compilers keep took half of the time of some."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """What was passed over is freed at the end, for libraries count what is left then and call it leaked."""
    gc.unfreeze()


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
