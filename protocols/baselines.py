"""Baselines: what an agent reaches without talking to anybody."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..agents.objectives import local_models
from .base import Layout, Out, Protocol, ProtocolParameters, View


class LocalParameters(ProtocolParameters):
    """Purely local models: every agent minimises its own loss and says nothing (Bellet et al. 2018, equation 1)."""

    kind: Literal["local"]


class Local(Protocol):
    """The exact minimiser of each agent's own regularised loss, from the start; nothing is ever sent."""

    Parameters = LocalParameters

    def layout(self) -> Layout:
        """A model per agent and no messages."""
        return Layout(agent={"model": self.problem.task.dimension})

    def start(self, view: View, out: Out) -> None:
        """Solve equation (1) on the agent's own rows."""
        view.state["model"][:] = local_models(self.problem.task, np.array([view.agent]))[0]
        out.fall_silent()
