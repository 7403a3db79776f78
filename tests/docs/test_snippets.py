"""Commands and snippets of the written pages do what is said: all are executed, page by page, in an empty folder."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hushnet.agents.availability import AVAILABILITIES
from hushnet.agents.kinds import KindOf
from hushnet.agents.losses import LOSSES
from hushnet.agents.models import MODELS
from hushnet.agents.tasks.task_registry import TASKS
from hushnet.protocols.attacks import ATTACKS
from hushnet.protocols.privacy.mechanisms import mechanism_registry
from hushnet.simulator.cli import main
from hushnet.simulator.docs.site import ROOT, WRITTEN
from hushnet.simulator.language.figure_kinds import FIGURE_KINDS
from hushnet.simulator.language.loading import load
from hushnet.simulator.language.yaml_source import read_text
from hushnet.simulator.metrics import METRICS
from hushnet.simulator.network.clocks import CLOCKS
from hushnet.simulator.network.compute import COMPUTE_TIMES
from hushnet.simulator.network.graph_changes import GRAPH_CHANGES
from hushnet.simulator.network.graphs import TOPOLOGIES
from hushnet.simulator.network.latency import LATENCIES
from hushnet.simulator.network.network import LOSS_MODELS
from hushnet.simulator.shell.new_scenario import scenario_text

from ..snippets import FILE, PRINTED, blocks, execute

SLOW = {"howto-latency", "howto-budget"}
"""Pages whose commands take more than some seconds."""
NETWORK = (CLOCKS, TOPOLOGIES, LATENCIES, LOSS_MODELS)
REGISTRIES = (
    *NETWORK,
    GRAPH_CHANGES,
    COMPUTE_TIMES,
    AVAILABILITIES,
    ATTACKS,
    MODELS,
    TASKS,
    LOSSES,
    METRICS,
    FIGURE_KINDS,
)
PAGES = sorted(path.stem for path in WRITTEN.glob("*.md"))
SHOWING = [
    *(page for page in sorted(WRITTEN.glob("*.md")) if page.stem.startswith(("index", "start-", "howto-"))),
    *sorted((ROOT / "scenarios" / "tutorials").glob("*.md")),
]
"""Home, starts, how-tos and tutorials."""
WITH_CODE = [name for name in PAGES if blocks(WRITTEN / f"{name}.md")]


def admissible(fragment: str) -> None:
    """Part of a scenario, put into one that runs."""
    base = dict(read_text(scenario_text("base", among=["coordinate_descent"], kinds={"topology": "ring"}), "base").data)
    base["protocols"] = {"cd": base["protocols"]["coordinate_descent"], "local": {"kind": "local"}}
    given = read_text(fragment, "fragment").data
    if "record" in given:
        del base["figures"]  # of what is recorded else
    if given.get("task", {}).get("kind") == "digits":  # ten classes, which no linear model tells
        base["protocols"] = {"cd": {"kind": "decentralised_sgd"}, "local": {"kind": "solitary"}}
    if "protocols" in given and "topology" not in given:  # those on a page are for its graph
        given = {**given, "protocols": {**base["protocols"], **given["protocols"]}}
    load({**base, **given})


@pytest.fixture
def forgetful(monkeypatch):
    """Kinds that a page registers are forgotten after it."""
    monkeypatch.setattr(mechanism_registry, "_known", dict(mechanism_registry._known))
    before = [(registry, set(registry)) for registry in REGISTRIES]
    yield
    for registry, names in before:
        for name in set(registry) - names:
            registry.remove(name)


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in WITH_CODE])
def test_what_a_page_says_can_be_done(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert {language for language, _ in blocks(WRITTEN / f"{name}.md")} <= {"bash", "python", "yaml", "text"}
    execute(WRITTEN / f"{name}.md", admissible)


@pytest.mark.parametrize("page", SHOWING, ids=lambda page: page.stem)
def test_a_page_that_shows_how_has_a_figure_its_command_and_its_output(page):
    assert {"bash", "python"} & {language for language, text in blocks(page) if not FILE.match(text)}
    assert "](pictures/" in page.read_text() or "/pages/pictures/" in page.read_text()
    assert PRINTED.search(page.read_text())


@pytest.mark.parametrize("name", WITH_CODE)
def test_parts_of_scenarios_on_a_page_are_admissible(name):
    """Which is quick, where CI executes one page alone."""
    for language, text in blocks(WRITTEN / f"{name}.md"):
        if language == "yaml" and not FILE.match(text):
            admissible(text)


def test_every_registry_has_an_example_of_ones_own():
    text = "".join((WRITTEN / f"howto-{name}.md").read_text() for name in ("kinds", "own"))
    examples = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    registries = [registry for registry in REGISTRIES if isinstance(registry, KindOf)]
    rooms = [WRITTEN.resolve().parents[2] / room for room in ("agents", "protocols", "simulator")]
    declared = [path for room in rooms for path in room.rglob("*.py") if "= KindOf(" in path.read_text("utf-8")]
    assert len(registries) == len(declared), "every registry of kinds is one whose pages may register"
    for base in (registry.base for registry in registries):
        assert re.search(rf"class \w+\({base.__name__}\):", examples), base
    for name in ("Loss", "Noise", "Objective"):
        assert f"({name}):" in examples
    assert {"FigureKind(", "@own_metric("} <= set(re.findall(r"FigureKind\(|@own_metric\(", examples))


def test_a_snippet_that_is_not_admissible_would_be_found():
    with pytest.raises(Exception, match="unknown kind"):
        admissible("clock: {kind: quartz}")


def test_the_shown_step_is_that_of_the_skeleton(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "protocol", "mine"]) == 0
    shown = next(text for language, text in blocks(WRITTEN / "start-protocol.md") if language == "text")
    skeleton = re.sub(r": Any|\s*-> None|^ +\"\"\".*\n", "", Path("mine.py").read_text(), flags=re.MULTILINE)
    assert " ".join(shown.split()) in " ".join(skeleton.split())
