"""Choco-SGD: decentralised SGD that sends compressed differences (Koloskova, Stich, Jaggi 2019, algorithm 2).

=======================================================  ==============================================================
equation                                                 here
=======================================================  ==============================================================
x_i(t+1/2) = x_i(t) - eta grad f_i(x_i(t))               ``half``, at the end of a step
q_i = Q(x_i(t+1/2) - xhat_i(t))                          ``message``: k values and their k indices
xhat_j(t+1) = xhat_j(t) + q_j, of neighbours and itself  ``hat`` of itself, ``copy`` of each neighbour
x_i(t+1) = x_i(t+1/2)                                    ``model``, at the beginning of the next step
    + gamma sum_j w_ij (xhat_j(t+1) - xhat_i(t+1))
=======================================================  ==============================================================

Q keeps k coordinates: the largest (top-k), or random ones. W has Metropolis's weights. Values and indices are sent as
float64 numbers, and counted so: 16 bytes for a coordinate that is kept.

Every difference has to be added once, so rounds repeat what is lost, and never go on without it.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from typing_extensions import override

from ...agents.errors import InputError
from ...agents.parameters import Factor, Size
from ..base import Layout, MessageKind, Problem, Traits
from ..invariants import Declared, told_is_kept
from ..steps import batched, choice, per_edge, received, segment_sum
from .gradient_rounds import Array, GradientRounds, MixingParameters, gradient


class ChocoParameters(MixingParameters):
    """Choco-SGD: send some coordinates of a difference, and mix the copies that neighbours have of each other."""

    kind: Literal["choco_sgd"]
    compression: Literal["top_k", "random_k"] = "top_k"
    """Coordinates that are kept: the largest, or random ones."""
    keep: Size = 1
    """Number k of coordinates that are sent, at most the model's."""
    consensus_step: Factor = 0.5
    """Step size gamma of the mixing; smaller for fewer coordinates."""


class ChocoSGD(GradientRounds):
    """Choco-SGD, in rounds; see the module's docstring."""

    Parameters = ChocoParameters
    parameters: ChocoParameters
    traits = Traits(trigger="round", inbox="per_round", needs_both_ends=True)

    @classmethod
    @override
    def check_problem(cls, parameters: ChocoParameters, problem: Problem) -> None:
        if parameters.keep > problem.task.dimension:
            raise InputError(
                f"{parameters.keep} coordinates cannot be kept of models of {problem.task.dimension}", field=("keep",)
            )

    @override
    def layout(self) -> Layout:
        """The model, half a step further, and its copy at the neighbours, of whom an edge has theirs; differences."""
        p, k = self.problem.task.dimension, 2 * self.parameters.keep
        agent = {"model": p, "half": p, "hat": p, "sent": k}
        return Layout(agent=agent, edge={"copy": p}, messages={"sent": MessageKind(k)})

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Add the neighbours' differences, mix, go along the gradient, and send the own difference."""
        me.copy = me.copy + expanded(received(me), me.model.shape[1])
        apart = me.copy - per_edge(me, me.hat)
        me.model = me.half + me.consensus_step * segment_sum(me, me.mixing_weight * apart)
        me.half = me.model - me.step_size * gradient(me, me.model)
        difference, p = me.half - me.hat, me.model.shape[1]
        kept: Any
        if me.compression == "random_k":
            kept = choice(me, p, me.keep)
        else:
            kept = np.argsort(-np.abs(difference), axis=1, kind="stable")[:, : me.keep]
        me.sent = np.concatenate((np.take_along_axis(difference, kept, axis=1), kept), axis=1)
        me.hat = me.hat + expanded(me.sent, p)
        me.message = me.sent

    def invariants(self) -> Declared:
        """Agents go on from what they have sent."""
        return (told_is_kept("sent", "sent", "Koloskova et al. 2019, algorithm 2: q is added at both ends"),)


def expanded(messages: Array, dimension: int) -> Array:
    """(B, p) vectors of (B, 2k) values and their different indices; zeros elsewhere."""
    keep = messages.shape[1] // 2
    out = np.zeros((len(messages), dimension))
    np.put_along_axis(out, messages[:, keep:].astype(np.int64), messages[:, :keep], axis=1)
    return out
