"""A run that an experiment asks for: its place, its seeds, what it is called, and what it has in common with others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..language.points import FIRST_SEED, GridPoint
from ..language.sweeps import TRIAL
from ..storage.files import json_text
from ..storage.provenance import PRESENTATION


@dataclass(frozen=True)
class Run:
    """One run that an experiment asks for."""

    point: GridPoint
    protocol: str
    seed: int
    data_seed: int
    run_seed: int

    @cached_property
    def data_key(self) -> tuple[str, int]:
        """Runs with the same key have the same task and graph."""
        scenario = self.point.scenario
        return repr((scenario.task, scenario.topology, scenario.validation)), self.data_seed

    @property
    def at(self) -> str:
        """Grid point and seed, in words."""
        return ", ".join([*self._grid, self._repetition])

    @property
    def place(self) -> str:
        """Protocol, seed and grid point, in words."""
        return ", ".join([f"protocol {self.protocol}", self._repetition, *self._grid])

    @property
    def words(self) -> str:
        """Protocol's label, seed and grid point, in words, and that it is a trial of a tuning if it is one."""
        return ", ".join([self._label, self._repetition, *self._grid])

    @property
    def few_words(self) -> str:
        """The same in fewer words: fields of the grid by their last names."""
        grid = (f"{path.rpartition('.')[2]} {value}" for path, value in self._reported.items())
        return ", ".join([self._label, *grid, self._repetition])

    @property
    def _label(self) -> str:
        return f"{'tuning ' if self.point.trials else ''}{self.point.scenario.label(self.protocol)}"

    @property
    def _reported(self) -> dict[str, Any]:
        return {path: value for path, value in self.point.values.items() if path != TRIAL}

    @property
    def _grid(self) -> list[str]:
        return [f"{path} = {value}" for path, value in self._reported.items()]

    @property
    def _repetition(self) -> str:
        """The seed in words, after the number of a trial; of seeds that nobody has chosen their number."""
        seed = f"seed {self.seed}"
        if not self.point.trials:
            return seed
        if self.seed >= FIRST_SEED:
            labels = [label for label, _, _ in self.point.scenario.seed_pairs()]
            seed = f"seed {labels.index(self.seed) + 1} of {len(labels)}"
        return f"trial {self.point.values[TRIAL] + 1} of {self.point.trials}, {seed}"

    @cached_property
    def contract_key(self) -> str:
        """Runs with the same key have the same protocol with the same parameters."""
        return json_text(self.point.scenario.protocols[self.protocol].model_dump(exclude={"label"}), indent=None)

    @property
    def world_key(self) -> str:
        """Runs with the same key differ in nothing but their seeds: one proof of the contract is for all of them."""
        left_out = {*PRESENTATION, "protocols"}
        scenario = {key: value for key, value in self.point.scenario.resolved().items() if key not in left_out}
        return json_text([self.contract_key, scenario], indent=None)


@dataclass(frozen=True)
class PlannedRun:
    """A run that has to be there once, at whatever grid points it stands."""

    name: str
    """A hash of all that decides the run and is known before its data are made."""
    run: Run
    places: tuple[int, ...]
    """Where it stands in `Experiment.runs`."""

    @property
    def kind(self) -> str:
        """The kind of its protocol."""
        return self.run.point.scenario.protocols[self.run.protocol].kind
