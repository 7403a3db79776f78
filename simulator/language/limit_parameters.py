"""Limits on the events, time and memory of a run: the ``limits`` of a scenario, which do not identify its runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...agents.parameters import Count, Parameters
from ..network.setting import Limits
from .names import Memory

UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
"""Bytes."""
DEFAULTS = Limits()


class LimitParameters(Parameters):
    """Limits on what a run may do and take; one that reaches a limit keeps what it recorded and counts as limited."""

    events: Count = DEFAULTS.events
    """Wake-ups of clocks, copies of messages and timers of one run; by default 10^9."""
    seconds: Annotated[float, Field(gt=0, le=1e9)] = DEFAULTS.seconds
    """Processor time of one run, and of reading a file of its data before; by default a day."""
    memory: Memory | None = None
    """Memory that the run takes beyond what its process held before, such as 2 GiB; by default the process may hold
    nine tenths of the machine's, or of the container's, in all."""

    def limits(self) -> Limits:
        """The same, for the engines."""
        return Limits(self.events, self.seconds, None if self.memory is None else _bytes(self.memory))


def _bytes(text: str) -> int:
    unit = next(unit for unit in sorted(UNITS, key=len, reverse=True) if text.endswith(unit))
    return int(float(text.removesuffix(unit)) * UNITS[unit])
