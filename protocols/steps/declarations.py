"""Declarations of a protocol's steps: when they send, and the noise that `perturbed` draws for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agents.authors import place_of
from ...agents.errors import InputError
from ...agents.suggestions import suggestion
from ..linear_map import SharedNoise
from ..privacy.mechanisms import Norm, Release


@dataclass(frozen=True)
class Every:
    """An agent sends at its steps phase, phase + period, phase + 2 period, ..., counted from 0."""

    period: int | NDArray[np.int64] = 1
    """int or (n,) int64: Of all agents, or of each; 0 for one that never sends."""
    phase: int | NDArray[np.int64] = 0
    """int or (n,) int64: From 0, below the period."""

    def of(self, agent: int) -> Every:
        """Return the schedule of one agent."""
        return Every(*(int(one if np.ndim(one) == 0 else one[agent]) for one in (self.period, self.phase)))  # type: ignore[index]

    def is_due(self, agent: int, updates: int) -> bool:
        """True if an agent sends at its next step after this many others."""
        own = self.of(agent)
        return bool(own.period > 0 and updates % own.period == own.phase)


def check_declared(protocol: Any, kinds: Collection[str], agents: int) -> None:
    """Refuse a declaration of steps that no agent could keep, or of a kind that is none of its messages' `kinds`.

    Raises `InputError` with the line where it is declared, and what is admissible.
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


NO_NOISE, NO_DATA = "no noise", "the agent has no data"
"""Why a message is plain or public, by the default release and by noise that is switched off."""
POST_PROCESSING = "it follows from what was released and heard"
"""Why a message without noise of its own is public."""
UNPERTURBED = "it left without noise, though the step's release has some"
"""Why a message is charged as plain: its step drew no noise for it."""


class StepNoise(ABC):
    """The noise of one release per step, whose amount depends on the agent and on how many steps it has made.

    Steps that agree in both are at one *stage*: an agent's k-th step is at stage k, and all later ones at the last.
    Noise that neighbours share, which `hushnet.protocols.steps.perturbed` adds to a vector before its own, is in
    ``shared``.
    """

    shared: SharedNoise | None = None

    @property
    @abstractmethod
    def mechanism(self) -> str | None:
        """Name of the mechanism; None if nothing is drawn, and releases are plain."""

    @property
    def clip(self) -> tuple[Norm, float] | None:
        """The norm and the bound to which the gradient of every example is clipped; None if it is not."""
        return None

    @property
    def clip_mean(self) -> tuple[Norm, float] | None:
        """The norm and the bound to which the mean gradient of an agent's examples is clipped; None if it is not."""
        return None

    @property
    def releases_rows_plainly(self) -> bool:
        """True if no noise is drawn, and a release is plain for agents that have samples and public for others."""
        return False

    @property
    def alike(self) -> NDArray[np.int64] | None:
        """(n,) groups of agents whose releases differ by agent, time and recipients alone; None if there are none.

        It is asked for where agents have the task's own samples.
        """
        return None

    @property
    def dimension(self) -> int:
        """Number of coordinates that its releases declare as their `Release.dimension`; 0 for none."""
        return 0

    @property
    def every(self) -> int:
        """Steps of an agent from one release to the next, >= 1; it releases at its first, and others are public."""
        return 1

    @property
    def growth(self) -> NDArray[np.float64] | None:
        """(n,) factors > 0 by which scales grow from a stage to the next, without end; None where they do not.

        Then every step is at a stage of its own, every step draws, and `scales` gives the first stage.
        """
        return None

    @abstractmethod
    def release(self, me: Any) -> Release:
        """The release of an agent's next step."""

    @abstractmethod
    def scales(self) -> NDArray[np.float64]:
        """(n, K) noise scale of every agent's releases by stage; K >= 1, rows of agents without data are not read."""


def grown(first: NDArray[np.float64], growth: NDArray[np.float64], updates: NDArray[np.int64]) -> NDArray[np.float64]:
    """(B,) noise scales of agents' steps after so many others, with the same bits for one agent and for many.

    They grow from those of the first steps, see `StepNoise.growth`.
    """
    return first * growth**updates
