"""Options of an experiment beside its scenario, in one place for shell and Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...protocols.base import Protocol
from ..language.loading import LoadedScenario, load
from ..metrics.own_metrics import show_function
from ..recording.snapshot import OwnMetric
from .plan import CONTRACT_POINTS, Experiment
from .workers import Jobs


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of a run; `hushnet.simulator.run` documents each."""

    protocols: Mapping[str, type[Protocol]] | None = None
    metrics: Mapping[str, OwnMetric] = field(default_factory=dict)
    """`protocols` and `metrics`: A user's own, by name."""
    out: Path | None = None
    data_dir: Path | None = None
    seeds: int | None = None
    overrides: tuple[str, ...] = ()
    trust_code: bool = False
    quick: bool = False
    """`trust_code` and `quick`: What is read of a scenario and how, as the ones before."""
    jobs: Jobs = 1
    scheduler: str | None = None
    """Who executes the runs."""
    contract: bool = True
    contract_points: int = CONTRACT_POINTS

    def load(self, source: Path | str | Mapping[str, Any]) -> LoadedScenario:
        """Read a scenario as these options say; raises like `hushnet.simulator.language.loading.load`."""
        for name, metric in self.metrics.items():
            show_function(name, metric)
        return load(
            source,
            overrides=self.overrides,
            trust_code=self.trust_code,
            extra=self.protocols,
            seeds=self.seeds,
            quick=self.quick,
            metrics=self.metrics,
        )

    def experiment(self, loaded: LoadedScenario) -> Experiment:
        """All runs of a scenario that was read."""
        return Experiment(loaded, self.out, self.data_dir, self.metrics, self.contract, self.contract_points)
