"""The architecture page draws the house as it stands: its rooms are the import contract's, its files are there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "simulator/ARCHITECTURE.md").read_text()
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
FLOORS = {
    contract["containers"][0].removeprefix("hushnet."): contract["layers"]
    for contract in CONTRACTS
    if contract["type"] == "layers" and "containers" in contract
}
DRAWINGS = re.findall(r"^```\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
FILES = sorted(set(re.findall(r"`([\w./]+(?:/|\.py))`", PAGE)))


def floors_of(drawing: str) -> list[str]:
    """What stands before the gap of a row."""
    return [re.split(r" {2,}", line)[0] for line in drawing.splitlines()]


@pytest.mark.parametrize(("storey", "drawing"), list(zip(FLOORS, DRAWINGS, strict=True)))
def test_the_floors_that_are_drawn_are_those_that_imports_keep_to(storey, drawing):
    assert floors_of(drawing) == FLOORS[storey]


@pytest.mark.parametrize("storey", FLOORS)
def test_every_room_of_a_storey_is_on_a_floor(storey):
    """The contract says so of modules; of folders and files, too."""
    there = {path.stem for path in (ROOT / storey).iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    named = {room for floor in FLOORS[storey] for room in floor.split(" | ")}
    assert named == there - {"__init__"}


@pytest.mark.parametrize("file", FILES)
def test_files_that_the_page_names_are_there(file):
    assert any((ROOT / folder / file).exists() for folder in ("", "simulator"))


def test_few_modules_stand_beside_the_rooms():
    assert len(list((ROOT / "simulator").glob("*.py"))) <= 6


def test_the_page_is_short_and_contributors_are_sent_there():
    assert len(FILES) > 20
    assert len(PAGE.splitlines()) <= 130
    assert "(simulator/ARCHITECTURE.md)" in (ROOT / "CONTRIBUTING.md").read_text()


def test_files_of_smoke_tests_are_there():
    from .conftest import SMOKE

    assert {name for name in SMOKE if not (ROOT / "tests" / name).exists()} == set()


@pytest.mark.parametrize("room", ["agents", "protocols", "simulator/network", "simulator/tables", "simulator/rules"])
def test_what_happens_is_written_without_an_event_loop(room):
    looped = re.compile(r"^\s*(import|from) simpy", flags=re.MULTILINE)
    assert [path.name for path in (ROOT / room).rglob("*.py") if looped.search(path.read_text())] == []
