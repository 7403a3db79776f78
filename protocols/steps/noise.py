"""Noise of a protocol's steps, as the operator `perturbed` draws it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.mechanisms import Norm, Release

NO_NOISE, NO_DATA = "no noise", "the agent has no data"
"""Why a message is plain or public, by the default release and by noise that is switched off."""
POST_PROCESSING = "it follows from what was released and heard"
"""Why a message without noise of its own is public."""
UNPERTURBED = "it left without noise, though the step's release has some"
"""Why a message is charged as plain: its step drew no noise for it."""


class StepNoise(ABC):
    """The noise of one release per step, whose amount depends on the agent and on how many steps it has made.

    Steps that agree in both are at one *stage*: an agent's k-th step is at stage k, and all later ones at the last.
    """

    @property
    @abstractmethod
    def mechanism(self) -> str | None:
        """Name of the mechanism; None if nothing is drawn, and releases are plain."""

    @property
    def clip(self) -> tuple[Norm, float] | None:
        """The norm and the bound to which the gradient of every example is clipped; None if it is not."""
        return None

    @property
    def releases_rows_plainly(self) -> bool:
        """True if no noise is drawn, and a release is plain for agents that have samples and public for others."""
        return False

    @property
    def dimension(self) -> int:
        """Number of coordinates that its releases declare as their `Release.dimension`; 0 for none."""
        return 0

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

    Parameters
    ----------
    first : (B,) float64
        Of their first steps.
    growth : (B,) float64
        See `StepNoise.growth`.
    updates : (B,) int64
    """
    return first * growth**updates
