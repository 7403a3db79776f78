"""Baselines without any exchange: what an agent reaches alone, and what one model for everybody reaches.

``consensus`` is computed centrally, from all agents' rows: no protocol of peers, but the model that consensus
algorithms approach (Vanhaesebrouck, Bellet, Tommasi 2017, equation 2), at the cost of giving all data away.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.losses import Hinge
from ...agents.objectives.objectives import check_unique, local_models
from ...agents.objectives.pooled_objective import PooledObjective
from ...agents.parameters import Positive, Repeats
from ...agents.solitary import GradientSteps, solitary_model
from ...agents.tables import Table
from ..base import Context, Layout, Protocol, ProtocolParameters, Traits
from ..invariants import Declared, NoInvariant


class LocalParameters(ProtocolParameters):
    """Purely local models: every agent minimises its own loss and says nothing (Bellet et al. 2018, equation 1)."""

    kind: Literal["local"]


class Local(Protocol):
    """The exact minimiser of each agent's own regularised loss, from the start; nothing is ever sent."""

    Parameters = LocalParameters
    learns = "linear"
    traits = Traits(directed=True, changing=True)

    @classmethod
    @override
    def check_scenario(cls, parameters: LocalParameters, context: Context) -> None:
        check_unique(context.task.loss, regularised=context.task.regularised)

    def layout(self) -> Layout:
        """A model per agent and no messages."""
        return Layout(agent={"model": self.problem.task.dimension})

    def start(self, me: Any) -> None:
        """Solve equation (1) on the agent's own rows."""
        me.model = local_models(self.problem.task, np.array([me.agent]))[0]
        me.fall_silent()

    def invariants(self) -> Declared:
        """None."""
        return NoInvariant("every agent learns alone, and nothing is exchanged")


class SolitaryParameters(ProtocolParameters):
    """Solitary models: a few gradient steps of every agent on its own loss (Vanhaesebrouck et al. 2017)."""

    kind: Literal["solitary"]
    steps: Repeats = 10
    """Number of gradient steps from zero."""
    step_size: Positive = 1.0
    """Length of a step along the gradient of (m_i / max m) L_i."""


class Solitary(Protocol):
    """Gradient steps of each agent on its own rows, before the start; nothing is ever sent."""

    Parameters = SolitaryParameters
    parameters: SolitaryParameters
    traits = Traits(directed=True, changing=True)

    def layout(self) -> Layout:
        """A model per agent and no messages."""
        return Layout(agent={"model": self.problem.task.dimension})

    def start(self, me: Any) -> None:
        """Take the steps."""
        how = GradientSteps(steps=self.parameters.steps, step_size=self.parameters.step_size)
        me.model = solitary_model(me.data, self.problem.task, me.agent, how)
        me.fall_silent()

    def invariants(self) -> Declared:
        """None."""
        return NoInvariant("every agent learns alone, and nothing is exchanged")


class CentralModelParameters(ProtocolParameters):
    """One model for everybody, computed centrally from all agents' rows (Vanhaesebrouck et al. 2017, equation 2)."""

    kind: Literal["consensus"]


class Consensus(Protocol):
    """The minimiser of sum_i m_i L_i(theta) over one common theta, from the start; every agent gives its rows away."""

    Parameters = CentralModelParameters
    learns = "convex"
    traits = Traits(central=True, directed=True, changing=True)

    def layout(self) -> Layout:
        """A model per agent and no messages."""
        return Layout(agent={"model": self.problem.task.dimension})

    def start(self, me: Any) -> None:
        """Give the rows away and take the common model."""
        if len(me.data):
            me.disclose(me.plain("the agent's rows, to whoever computes the common model"))
        me.model = self._common
        me.fall_silent()

    def invariants(self) -> Declared:
        """None."""
        return NoInvariant("the model is computed centrally, and nothing is exchanged")

    @cached_property
    def _common(self) -> NDArray[np.float64]:
        """(p,) the pooled minimiser; an agent's penalty counts once for each of its rows, as its losses do."""
        task = self.problem.task
        ridge = 2.0 * float(task.train.counts @ task.regularisation)
        if isinstance(task.loss, Hinge) and ridge == 0:
            return _pooled_hinge(task.train)
        pooled = PooledObjective(task, np.ones(len(task.train.labels)), ridge, np.full(task.agents, 1 / task.agents))
        return pooled.minimise()[0][0]


def _pooled_hinge(table: Table) -> NDArray[np.float64]:
    """(p,) minimiser of sum_k max(0, 1 - y_k x_k . theta), as a linear program over theta and the losses."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    count, dimension = table.features.shape
    margins = csr_array(-table.labels[:, None] * table.features)
    cost = np.concatenate([np.zeros(dimension), np.ones(count)])
    bounds = [(None, None)] * dimension + [(0, None)] * count
    found = linprog(cost, A_ub=hstack([margins, -eye_array(count)]), b_ub=-np.ones(count), bounds=bounds)
    return found.x[:dimension]
