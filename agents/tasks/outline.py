"""Properties of a task that follow from its scenario alone, before data are drawn or read."""

from __future__ import annotations

from dataclasses import dataclass

from ..losses import LOSSES, Loss


@dataclass(frozen=True)
class Outline:
    """A task as far as its parameters tell.

    Parameters
    ----------
    kind : str
        The task's.
    metric : str
        How test predictions are judged.
    agents : int, optional
        Number of agents, if it does not depend on data; their ids are then 0 to n - 1.
    columns : bool
        Whether agents hold columns of the same rows, around a centre.
    profiles : bool
        Whether similarity graphs have something to compare.
    regularised : bool
        Whether the loss of every agent that has rows is.
    tested : bool
        Whether there are test rows.
    bounded : tuple of {"l1", "l2"}
        Norms of rows that the definition of the data bounds, see `hushnet.agents.tasks.task.Task.bounds`.
    """

    kind: str
    loss_name: str
    metric: str = "accuracy"
    agents: int | None = None
    columns: bool = False
    profiles: bool = False
    regularised: bool = True
    tested: bool = True
    bounded: tuple[str, ...] = ()

    def bounds(self, norm: str, radius: float | None = None) -> bool:
        """True if feature rows are bounded in a norm, by definition of the data or by clipping to an l2 radius."""
        return norm in self.bounded or "l2" in self.bounded or radius is not None

    @property
    def loss(self) -> Loss:
        """Loss of a score."""
        return LOSSES[self.loss_name]
