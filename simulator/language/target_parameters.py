"""Target of a scenario: the level or share of a metric that counts as reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pydantic import ConfigDict, Field, model_validator

from ...agents.errors import FieldError
from ...agents.parameters import Parameters, given
from ...agents.suggestions import require
from ..metrics import METRICS
from ..metrics.metric import names_of
from .names import Key


class TargetParameters(Parameters):
    """Target of a metric, for times to target and the cost of getting there; the first record that meets it counts."""

    model_config: ClassVar[ConfigDict] = ConfigDict(**given("share", "level", how="oneOf"))

    metric: str = "objective"
    """A recorded metric."""
    share: float | None = Field(default=None, gt=0, lt=1)
    """The share by which the objective's gap to its optimum has shrunk, counted from its start. With the accuracy: this
    share of the accuracy that a run ends with has been met."""
    of: Key | dict[Key, Key] | None = None
    """Whose accuracy the share is of: one protocol's, or by protocol another's; by default everybody's own."""
    level: float | None = None
    """The metric has met this level, from whichever side it comes."""

    @model_validator(mode="after")
    def _one_condition(self) -> TargetParameters:
        if (self.share is None) == (self.level is None):
            raise ValueError("give exactly one of share and level")
        if self.share is not None and not share_of(self.metric):
            shared = " or ".join(names_of(lambda metric: metric.share))
            raise FieldError(f"is admissible only with metric: {shared}; give a level", "share")
        if self.of is not None and (self.share is None or share_of(self.metric) != "end"):
            shared = " or ".join(names_of(lambda metric: metric.share == "end"))
            raise FieldError(f"is admissible only with a share of metric: {shared}", "of")
        return self


def share_of(metric: str) -> str:
    """Basis of a target's share of a metric: the ``gap`` or the ``end``; empty if no share may be asked for."""
    return METRICS[metric].share if metric in METRICS else ""


def check_target(target: TargetParameters, *, metrics: Sequence[str], protocols: Sequence[str]) -> None:
    """Raise an `InputError` with its place if a target asks for metrics or protocols that there will not be."""
    require(target.metric, metrics, "metric is not recorded", ("target", "metric"))
    if isinstance(target.of, str):
        require(target.of, protocols, "unknown protocol", ("target", "of"))
    for key, other in (target.of if isinstance(target.of, dict) else {}).items():
        require(key, protocols, f"unknown protocol {key!r}", ("target", "of", key))
        require(other, protocols, "unknown protocol", ("target", "of", key))
