"""Solitary models: what an agent learns from its own data before it talks to anybody.

Vanhaesebrouck et al. (2017), equation (1), take any minimiser of the agent's own loss. Where that is not unique (the
hinge loss without regularisation), it matters which; a few gradient steps from zero then say precisely what is meant.
"""

from __future__ import annotations

from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from .losses import local_gradient
from .objectives.objectives import Models, local_models
from .parameters import Parameters, Positive, Repeats
from .tables import Shard
from .tasks.task import Task


@final
class GradientSteps(Parameters):
    """Gradient steps from zero on the agent's summed loss over the largest number of rows of any agent."""

    steps: Repeats = 10
    """Number of steps."""
    step_size: Positive = 1.0
    """Length of a step along the gradient of (m_i / max m) L_i."""


Solitary = Literal["exact"] | GradientSteps
"""The exact minimiser of L_i, or steps towards it."""


def solitary_model(shard: Shard, task: Task, agent: int, how: Solitary) -> NDArray[np.float64]:
    """One agent's solitary (p,) model of its own rows; 0 without any.

    The largest number of rows of the task is treated as public. Raises `InputError` if an exact minimiser is asked for
    that is not unique.
    """
    if isinstance(how, GradientSteps):
        model, share = np.zeros(task.dimension), len(shard) / max(1, int(task.train.counts.max()))
        if task.first is not None:
            model = task.first.copy()
        for _ in range(how.steps):
            model -= how.step_size * share * _gradient(model, shard, task, agent)
        return model
    return local_models(task, np.array([agent]))[0]


def solitary_models(task: Task, how: Solitary) -> Models:
    """(n, p) solitary models of all agents; see `solitary_model`."""
    return np.array([solitary_model(task.shard(agent), task, agent, how) for agent in range(task.agents)])


def _gradient(model: NDArray[np.float64], shard: Shard, task: Task, agent: int) -> NDArray[np.float64]:
    """(p,) gradient of an agent's own regularised loss."""
    decay = float(task.regularisation[agent])
    if task.model is None:
        return local_gradient(model, shard, task.loss, decay)
    rows = shard.features, shard.labels, np.array([0, len(shard)])
    return task.model.mean_gradients(model[None], *rows, task.loss)[0] + 2.0 * decay * model * (len(shard) > 0)
