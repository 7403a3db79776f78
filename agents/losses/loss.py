"""A loss of a linear prediction: value and slopes row by row, bounds, labels, and its form for compiled code."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kinds import NameOf
from ..registry import Registry

Labels = Literal["classes", "real"]

MANY = 1e100
"""A product of factors between 1 and 2 that can take some more without overflow."""


class RowForms(NamedTuple):
    """A loss row by row, as plain functions that numba compiles."""

    slope: Callable[..., Any]
    bend: Callable[..., Any]
    """`slope` and `bend`: ``slope(score, label)`` and ``bend(score, label)``: first and second derivative with respect
    to the score."""
    add: Callable[..., Any]
    """``add(score, label, total, factor)``: both with the loss of one more row; the sum is total + log(factor)."""


@dataclass(frozen=True)
class Loss(ABC):
    """l(theta; x, y) = phi(x . theta, y), convex in the score x . theta."""

    name: str
    lipschitz: float
    """Bound on |phi'(score)|; infinite where there is none."""
    curvature: float
    """Bound on phi''(score); infinite where phi' jumps."""
    labels: Labels
    """``classes``: labels are -1 and +1, and a score's sign predicts one; ``real``: a score predicts a number."""

    @abstractmethod
    def value(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """phi, elementwise."""

    @abstractmethod
    def slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """phi' with respect to the score, elementwise; at a kink of phi the subgradient that the class names."""

    @abstractmethod
    def second_slope(self, scores: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """phi'' with respect to the score, elementwise; at a kink of phi' either side's value."""

    @property
    def smooth(self) -> bool:
        """True if phi' is Lipschitz, so that gradient steps and Newton's method apply."""
        return math.isfinite(self.curvature)

    @property
    def rows(self) -> RowForms | None:
        """Its rows for compiled code; by default there are none, and operators read rows agent by agent."""
        return None


LOSSES: Registry[Loss] = Registry("loss")
"""Losses by name, as tasks name them."""


LossName = Annotated[str, NameOf(LOSSES)]
"""A field that names a loss,"""
ClassLossName = Annotated[str, NameOf(LOSSES, lambda loss: loss.labels == "classes")]
"""or one of classes."""


def register(loss: Loss) -> Loss:
    """Make a loss known by its name; see `hushnet.agents.registry.Registry.add`."""
    return LOSSES.add(loss.name, loss)
