"""Runs whose plan has gone beyond the step at which they end: they are made once more, exactly up to there."""

from __future__ import annotations

from ...agents.errors import HushnetError


class Rewind(HushnetError):
    """A run is to be made again from its start, because its plan went on beyond a step that ended otherwise.

    Parameters
    ----------
    number : int
        Which of all steps that were planned has failed, from 1 on, and ends the run; 0 if none has.
    why : str
        Why steps cannot be planned, but have to be made one by one; empty if they can.
    """

    def __init__(self, number: int, why: str = "") -> None:
        super().__init__(number, why)
        self.number, self.why = number, why
