"""Parts of protocols in which agents of a round mix vectors by a doubly stochastic matrix and go along their gradients.

Agents minimise F(x) = (1/n) sum_i f_i(x), f_i(x) = (1/m_i) sum_k phi(x . x_ik, y_ik) + (mu/2) |x|^2. W has Metropolis's
weights, w_ij = 1 / (1 + max(degree i, degree j)), or half of them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.blocks import State
from ...agents.errors import FieldError
from ...agents.objectives.objectives import Objective
from ...agents.objectives.pooled_objective import PooledObjective
from ...agents.parameters import NotNegative, Positive, Size
from ..base import Layout, MessageKind, Protocol, ProtocolParameters, PublicStart, Traits
from ..noise import active
from ..privacy.budget import GradientPrivacy
from ..steps import Constants, draw_rows, loss_gradient, mixing_weights

Array = NDArray[np.float64]


class GradientRoundsParameters(ProtocolParameters):
    """Parameters of all protocols that mix and go along gradients."""

    step_size: Positive = 0.1
    """Step size alpha."""
    mu: NotNegative = 0.01
    """Strong convexity of the regulariser (mu/2) |x|^2."""
    batch: Size | None = None
    """Rows that are drawn for a gradient, without replacement; all of an agent's by default."""


class MixingParameters(GradientRoundsParameters):
    """Parameters of protocols that mix by a doubly stochastic matrix in rounds."""

    mixing: Literal["metropolis", "lazy"] = "metropolis"
    """Mixing weights: w_ij = 1 / (1 + max(degree i, degree j)), or half of them (lazy), so that no eigenvalue of the
    matrix is negative."""


class GradientProtocol(Protocol):
    """Protocol whose agents go along the gradients of F, from first parameters that all of them know."""

    parameters: GradientRoundsParameters
    from_first: ClassVar[tuple[str, ...]] = ("model",)
    """Blocks of an agent that begin with the first parameters, where these are not zero; others begin with zeros."""

    def public_start(self) -> PublicStart:
        """Nothing depends on data before the first step."""
        first, layout = self.problem.task.first, self.layout()
        if first is None:
            return PublicStart()
        blocks = {}
        for name in (one for one in self.from_first if one in layout.agent):
            row = np.zeros(np.max(layout.agent[name]))
            row[: len(first)] = first
            blocks[name] = np.broadcast_to(row, (self.problem.task.agents, len(row)))
        return PublicStart(blocks, sent={kind: kind for kind in layout.messages if kind in blocks})

    @override
    def models(self, state: State) -> Array:
        return state.agent["model"].rows

    def objective(self) -> Objective:
        """F at the average of the agents' models."""
        return PooledObjective.mean_of_agents(self.problem.task, self.parameters.mu)


class GradientRounds(GradientProtocol):
    """Protocol whose agents send one vector a round, and mix it by W."""

    from_first: ClassVar[tuple[str, ...]] = ("model", "sent", "before")

    traits = Traits(trigger="round", inbox="per_round", needs_both_ends=True)
    sent_vectors: ClassVar[int] = 1
    """Model-sized vectors of a message."""
    own: ClassVar[tuple[str, ...]] = ()
    """Blocks of an agent beside ``model`` and ``sent``, as wide as a model."""

    parameters: MixingParameters

    def prepare(self) -> None:
        """Compute the mixing weights."""
        self.weights = mixing_weights(self.problem.graph, self.parameters.mixing)

    def layout(self) -> Layout:
        """The model, the last message and what else the protocol keeps; one broadcast kind."""
        p = self.problem.task.dimension
        blocks = {"model": p, "sent": self.sent_vectors * p, **dict.fromkeys(self.own, p)}
        # Zeros are no parameters of a net: an agent that was never heard counts as the own.
        mirrors = None if self.problem.task.first is None else "sent"
        sent = MessageKind(self.sent_vectors * p, mirrors=mirrors, vectors=self.sent_vectors)
        return Layout(agent=blocks, messages={"sent": sent})

    def constants(self) -> Constants:
        """Mixing weights of edges."""
        return Constants(edge={"mixing_weight": self.weights})


def check_all_gradients_count(batch: int | None, privacy: GradientPrivacy | None) -> None:
    """Raise a `FieldError` if noise is not on gradients of all rows, one like the other."""
    if active(privacy) and batch is not None:
        raise FieldError("is for runs without privacy: noise is accounted for gradients of all rows", "batch")
    if privacy is not None and (privacy.allocation != "uniform" or privacy.oracle_schedule):
        raise FieldError("must be uniform, without oracle_schedule: all gradients count alike", "privacy")


def gradient(me: Any, model: Array) -> Array:
    """Gradient of f_i at a model, over all rows or those that are drawn; without rows the regulariser's."""
    rows = None if me.batch is None else draw_rows(me, me.batch)
    return loss_gradient(me, model, rows) + me.mu * model
