"""Declarations of when a protocol sends, so that its steps can be planned before any number is computed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.authors import place_of
from ...agents.errors import InputError
from ...agents.suggestions import suggestion


@dataclass(frozen=True)
class Every:
    """An agent sends at its steps phase, phase + period, phase + 2 period, ..., counted from 0.

    Parameters
    ----------
    period : int or (n,) int64
        Of all agents, or of each; 0 for one that never sends.
    phase : int or (n,) int64
        From 0, below the period.
    """

    period: int | NDArray[np.int64] = 1
    phase: int | NDArray[np.int64] = 0

    def of(self, agent: int) -> Every:
        """Return the schedule of one agent."""
        return Every(*(int(one if np.ndim(one) == 0 else one[agent]) for one in (self.period, self.phase)))  # type: ignore[index]

    def is_due(self, agent: int, updates: int) -> bool:
        """True if an agent sends at its next step after this many others."""
        own = self.of(agent)
        return bool(own.period > 0 and updates % own.period == own.phase)


def check_declared(protocol: Any, kinds: Collection[str], agents: int) -> None:
    """Refuse a declaration of steps that no agent could keep.

    Parameters
    ----------
    protocol : Protocol
    kinds : collection of str
        Of its messages.
    agents : int

    Raises
    ------
    InputError
        With the line where it is declared, and what is admissible.
    """

    def refused(declares: Any, what: str) -> InputError:
        return InputError(f"{place_of(declares)}: {what}")

    for kind, every in protocol.sends().items():
        if kind not in kinds:
            raise refused(
                type(protocol).sends,
                f"sends names the kind {kind!r}{suggestion(kind, kinds)} admissible: {', '.join(kinds) or 'none'}",
            )
        period, phase = np.asarray(every.period), np.asarray(every.phase)
        whole = all(one.dtype.kind in "iu" and one.shape in ((), (agents,)) for one in (period, phase))
        if not whole or not ((phase >= 0) & (phase < np.maximum(period, 1))).all():
            raise refused(
                type(protocol).sends,
                f"sends has {every!r} for {kind!r}; admissible: whole numbers, one or one for each agent, and phases "
                "from 0 that are below their period",
            )
    most = protocol.most_steps()
    if most is not None and (np.shape(most) not in ((), (agents,)) or not (np.asarray(most) >= 1).all()):
        raise refused(
            type(protocol).most_steps,
            f"most_steps is {most!r}; admissible: None, or numbers from 1, one or one for each agent",
        )
