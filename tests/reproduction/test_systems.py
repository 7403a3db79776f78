"""Every system of the papers is named where users look for it: `hushnet list`, a page of the site, and a scenario."""

from __future__ import annotations

from pathlib import Path

import pytest
from hushnet.agents.tasks import TASKS
from hushnet.protocols.catalog import PROTOCOLS
from hushnet.simulator.cli import main
from hushnet.simulator.language.loading import shipped
from hushnet.simulator.reproduction.systems import present, systems

COUNTS = {"B": 8, "V": 8, "Z": 5, "L": 4, "H": 4}
SYSTEMS = systems()
EXPECTED = [f"{letter}{k}" for letter, count in COUNTS.items() for k in range(1, count + 1)]
PAGE = (Path(__file__).resolve().parents[2] / "simulator/docs/pages/systems.md").read_text(encoding="utf-8")


def test_all_systems_of_the_papers_are_declared():
    assert [system.number for system in SYSTEMS] == EXPECTED


def test_list_names_every_system(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for system in SYSTEMS:
        assert f"  {system.number:<22} {system.line}" in lines


@pytest.mark.parametrize("system", SYSTEMS, ids=EXPECTED)
def test_a_page_says_where_a_system_is(system):
    kinds, option = ", ".join(f"`{kind}`" for kind in system.kinds), f" ({system.option})" if system.option else ""
    row = f"| {system.number} | {system.what} | {kinds}{option} | `{system.scenario}` |"
    assert row in PAGE.splitlines()


@pytest.mark.parametrize("system", SYSTEMS, ids=EXPECTED)
def test_a_system_is_made_of_what_there_is_and_a_scenario_runs_it(system):
    """Of tasks that are alternatives (a data set and its stand-in), one is in the scenario."""
    assert set(system.kinds) <= {*PROTOCOLS, *TASKS}
    text = shipped()[system.scenario].read_text(encoding="utf-8")
    named = [f"kind: {kind}" in text for kind in system.kinds]
    assert any(named) if set(system.kinds) <= set(TASKS) else all(named)
    assert system in present()
