"""Window of messages that a run keeps one by one, and the outcomes that a message may have."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from ...agents.parameters import MOST, Id, Instant, Parameters

FATES = DELIVERED, OVERTAKEN, LOST, DROPPED, UNDER_WAY = "delivered", "overtaken", "lost", "dropped", "in flight"
"""What becomes of a message: taken in, taken in after a newer one, lost on its way, dropped because the receiver was
down, or still under way at the end of the run."""


class MessageWindow(Parameters):
    """Window of agents and time in which a run keeps messages one by one, on either engine."""

    agents: Annotated[int, Field(ge=2, le=MOST)] | Annotated[list[Id], Field(min_length=2)] = 4
    """Names of agents, or how many: the first one and those nearest to it in the graph. Messages between them count."""
    between: list[Instant] = Field(default=[0.0, 5.0], min_length=2, max_length=2)
    """First and last time unit; whatever is under way between them counts."""

    draws: bool = False
    """Whether the noise and the rows that steps of these agents draw are kept as well, each number a row."""

    @field_validator("between")
    @classmethod
    def _in_order(cls, between: list[float]) -> list[float]:
        if between[0] >= between[1]:
            raise ValueError("must be two times, the smaller one first")
        return between
