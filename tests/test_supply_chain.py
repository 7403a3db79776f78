"""What hushnet is made of: bounds for every dependency, exact versions with hashes for development, known licences."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hushnet.simulator.bundle.lock import needed
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .licences import allowed, licence

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
UNLOCKED = ("torch", "mlflow", "wandb")
"""Extras that continuous integration does not install, for their size; their bounds stand in pyproject.toml."""
ASKED = [
    Requirement(text)
    for group in (
        PYPROJECT["build-system"]["requires"],
        PROJECT["dependencies"],
        *(wanted for extra, wanted in PROJECT["optional-dependencies"].items() if extra not in UNLOCKED),
    )
    for text in group
    if not text.startswith("hushnet[")
]
LOCKED = re.split(r"\n(?=\S)", (ROOT / ".ci" / "requirements.txt").read_text().split("\n", 1)[1].strip())
PINS = [Requirement(entry.split(" \\\n")[0]) for entry in LOCKED]
LICENCES = (ROOT / ".ci" / "licences.md").read_text().split("| --- |\n")[-1]
ROWS = dict(re.findall(r"^\| ([a-z0-9-]+) \| ([^|]+) \|", LICENCES, re.MULTILINE))


def name_of(requirement):
    return canonicalize_name(requirement.name)


@pytest.mark.parametrize("wanted", ASKED, ids=str)
def test_every_dependency_has_a_lower_and_an_upper_bound(wanted):
    assert sorted(bound.operator for bound in wanted.specifier) == ["<", ">="]


@pytest.mark.parametrize("wanted", ASKED, ids=str)
def test_every_dependency_is_locked_within_its_bounds(wanted):
    pins = [pin for pin in PINS if name_of(pin) == name_of(wanted)]
    assert pins
    for pin in pins:
        [exact] = pin.specifier
        assert exact.operator == "=="
        assert wanted.specifier.contains(exact.version)


def test_everything_that_is_locked_has_hashes():
    assert len(LOCKED) > len(ASKED)
    for entry in LOCKED:
        first, *hashes = entry.split(" \\\n")
        assert hashes, first
        assert all(re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}", line) for line in hashes), first


def test_everything_that_is_locked_for_this_machine_has_a_licence_that_is_known_and_allowed():
    here = {name_of(pin) for pin in PINS if pin.marker is None or pin.marker.evaluate()}
    built_with = {name_of(Requirement(text)) for text in PYPROJECT["build-system"]["requires"]}
    assert here - built_with - set(ROWS) == set()
    assert {name: said for name, said in ROWS.items() if not allowed(said)} == {}


def test_what_is_installed_says_of_itself_that_it_is_allowed():
    assert {name: licence(name) for name in needed("report", "test") if not allowed(licence(name))} == {}


@pytest.mark.parametrize(
    "expression", ["GPL-3.0-only", "MIT AND GPL-2.0-or-later", "(MIT OR LGPL-2.1)", "", "not stated"]
)
def test_a_licence_that_nobody_has_thought_of_is_not_allowed(expression):
    assert not allowed(expression)
