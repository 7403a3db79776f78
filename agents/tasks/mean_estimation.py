"""Estimating means with help from similar agents: two moons (Vanhaesebrouck et al. 2017, section 5.1).

Each agent has a point in the plane, on one of two intertwined moons, and normal samples whose mean is +1 on the upper
moon and -1 on the lower one. Agents that are near each other in the plane are similar. As a model, a mean is
the weight of the constant feature 1 under the squared loss; an agent's one test row holds its true mean, so that the
squared error there is the squared error of its model.

The paper leaves the moons' size open; they have radius 1 here, the lower one moved by (1, 1/2), and normal noise.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ..losses import LOSSES
from ..parameters import NotNegative, Positive, Size
from ..tables import Table
from .extent import Extent, Files
from .outline import Outline
from .task import Task
from .task_registry import TASKS, TaskKind


@final
@TASKS.register
class MeanEstimation(TaskKind):
    """Mean estimation: agents on two moons, whose samples have mean +1 on the upper and -1 on the lower moon."""

    kind: Literal["mean_estimation"]
    draws_data: ClassVar[bool] = True
    target: ClassVar[str] = "personal"
    agents: Size = 300
    """Number of agents n; those of even index are on the upper moon."""
    spread: float = Field(default=1.0, ge=0, le=1)
    """Width of the range around 1/2 of an agent's share c_i of the most samples; at 0 all have equally many."""
    samples: Size = 100
    """Most samples: agent i has m_i = max(1, ceil(c_i samples))."""
    variance: Positive = 40.0
    """Variance of every agent's samples."""
    point_noise: NotNegative = 0.05
    """Standard deviation of a point around its moon."""

    def outline(self) -> Outline:
        """Return the outline of the task, which the parameters alone determine."""
        return Outline(self.kind, "squared", "mse", self.agents, profiles=True, regularised=False, bounded=("l1", "l2"))

    def extent(self, files: Files | None) -> Extent:
        """Estimate the size of the task from its parameters."""
        return Extent(self.agents, 1, 2 * 8 * self.agents * (self.samples / 2 + 2), profile=2, known=True)

    def build(self, *, rng: np.random.Generator, data_dir: Path | None, base: Path | None = None) -> Task:
        """Draw the data, without regularisation, and with the (n, 2) points as profiles and places.

        Agent i's data depend on the generator's state, i and the fields above, but not on the number of agents.
        """
        points, parts = np.empty((self.agents, 2)), []
        means = np.where(np.arange(self.agents) % 2 == 0, 1.0, -1.0)
        for agent, seed in enumerate(rng.integers(2**63, size=self.agents).tolist()):
            own = np.random.default_rng(seed)
            points[agent] = _moon(own, upper=agent % 2 == 0) + self.point_noise * own.standard_normal(2)
            share = 0.5 + self.spread * (own.random() - 0.5)
            count = max(1, int(np.ceil(share * self.samples)))
            parts.append(own.normal(means[agent], np.sqrt(self.variance), count))
        owners = np.repeat(np.arange(self.agents), [len(part) for part in parts])
        return Task(
            name="mean estimation",
            ids=list(range(self.agents)),
            train=_constant_feature(np.concatenate(parts), owners, self.agents),
            test=_constant_feature(means, np.arange(self.agents), self.agents),
            loss=LOSSES["squared"],
            regularisation=np.zeros(self.agents),
            metric="mse",
            bounds={"l1": 1.0, "l2": 1.0},
            profiles=points,
            profiles_are="places on the moons",
            places=points,
            notes={"source": "synthetic, Vanhaesebrouck et al. 2017, section 5.1"},
        )


def _moon(rng: np.random.Generator, *, upper: bool) -> NDArray[np.float64]:
    """A point, uniform on the half circle of radius 1 that is the upper moon, or on its mirror image, the lower one."""
    angle = rng.uniform(0.0, np.pi)
    place = np.array([np.cos(angle), np.sin(angle)])
    return place if upper else np.array([1.0, 0.5]) - place


def _constant_feature(values: NDArray[np.float64], owners: NDArray[np.int64], agents: int) -> Table:
    return Table.from_owners(np.ones((len(values), 1)), values, owners, agents)
