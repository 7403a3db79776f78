"""Schedules of steps that a scenario may ask for: asynchronous, exchanges in pairs, or neighbour-barrier rounds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..agents.errors import FieldError
from ..agents.parameters import Interval, Parameters


class AsyncSchedule(Parameters):
    """Every agent steps when its own clock wakes it, with the newest of what it has heard."""

    kind: Literal["async"] = "async"


class RoundsSchedule(Parameters):
    """A round begins with all neighbours' messages of the one before, and lasts an interval of the agent's clock."""

    kind: Literal["rounds"] = "rounds"
    resend_after: Interval | Literal["never"] | None = None
    """Time units until a message that was not acknowledged is repeated; where messages can be lost or agents absent,
    by default 1 + twice the mean delay, unless ``patience`` is given."""
    patience: Interval | None = None
    """Time units after its own step that an agent waits for its neighbours before it goes on with the newest that it
    knows of them; by default without end. Protocols that need values of the same round at both ends of an edge
    refuse it (`Traits.needs_both_ends`)."""

    @model_validator(mode="after")
    def _one_remedy(self) -> RoundsSchedule:
        if self.patience is not None and isinstance(self.resend_after, float | int):
            raise FieldError("give one of resend_after and patience, not both", "patience")
        return self

    def repeats(self, *, unfailing: bool) -> bool:
        """True if messages are acknowledged, and repeated until they are; unfailing if none is ever missed."""
        if self.resend_after == "never" or self.patience is not None:
            return False
        return self.resend_after is not None or not unfailing


class ExchangeSchedule(Parameters):
    """An agent's clock opens a session with one neighbour: how long its caller waits for the answer."""

    kind: Literal["exchange"] = "exchange"
    resend_after: Interval | None = None
    """Time units until an unanswered request is repeated, in protocols whose sessions must be completed; by default 1 +
    the mean delay there and back."""
    timeout: Interval | None = None
    """Time units until an unanswered request is given up, in protocols that tolerate it; by default five times as
    long."""


ScheduleParameters = (
    Literal["async", "rounds", "exchange"]
    | Annotated[AsyncSchedule | RoundsSchedule | ExchangeSchedule, Field(discriminator="kind")]
)
"""A name stands for the schedule of that kind with its defaults."""


def expanded(schedule: ScheduleParameters | None) -> AsyncSchedule | RoundsSchedule | ExchangeSchedule | None:
    """The schedule that a name stands for."""
    if schedule == "async":
        return AsyncSchedule()
    if schedule == "rounds":
        return RoundsSchedule()
    if schedule == "exchange":
        return ExchangeSchedule()
    return schedule  # type: ignore[return-value]  # pyright does not narrow a union by its literals
