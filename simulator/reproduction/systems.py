"""The systems of the papers, by letter and number, and where each is found: protocol or task, option, scenario."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ...agents.tasks import TASKS
from ...protocols.catalog import PROTOCOLS
from ..language.loading import shipped
from ..language.yaml_source import read_file


class System(NamedTuple):
    """One system of a paper: what it is, its protocols and tasks, what chooses it, and a scenario that runs it."""

    number: str
    what: str
    kinds: list[str]
    scenario: str
    option: str = ""

    @property
    def line(self) -> str:
        """What it is, and where it is found."""
        option = f" ({self.option})" if self.option else ""
        return f"{self.what}: {', '.join(self.kinds)}{option}; {self.scenario}"


@cache
def systems() -> tuple[System, ...]:
    """All systems of the papers, in order."""
    written = read_file(next(iter(shipped().values())).parent / "papers" / "systems.yaml").data
    return tuple(System(**entry) for entry in written["systems"])


def present() -> list[System]:
    """The systems whose protocols, tasks and scenario this installation has."""
    kinds, scenarios = {*PROTOCOLS, *TASKS}, shipped()
    return [system for system in systems() if kinds.issuperset(system.kinds) and system.scenario in scenarios]
