"""Properties of a task that follow from its scenario alone, before data are drawn or read."""

from __future__ import annotations

from dataclasses import dataclass

from ..losses import LOSSES, Loss


@dataclass(frozen=True)
class Outline:
    """A task as far as its parameters tell."""

    kind: str
    """The task's."""
    loss_name: str
    metric: str = "accuracy"
    """How test predictions are judged."""
    agents: int | None = None
    """Number of agents, if it does not depend on data; their ids are then 0 to n - 1."""
    columns: bool = False
    """Whether agents hold columns of the same rows, around a centre."""
    profiles: bool = False
    """Whether similarity graphs have something to compare."""
    regularised: bool = True
    """Whether the loss of every agent that has rows is."""
    tested: bool = True
    """Whether there are test rows."""
    bounded: tuple[str, ...] = ()
    """tuple of {"l1", "l2"}: Norms of rows that the definition of the data bounds, see
    `hushnet.agents.tasks.task.Task.bounds`."""

    def bounds(self, norm: str, radius: float | None = None) -> bool:
        """True if feature rows are bounded in a norm, by definition of the data or by clipping to an l2 radius."""
        return norm in self.bounded or "l2" in self.bounded or radius is not None

    @property
    def loss(self) -> Loss:
        """Loss of a score."""
        return LOSSES[self.loss_name]
