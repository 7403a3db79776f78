"""Epidemic learning (de Vos, Farhadkhani, Guerraoui, Kermarrec, Pires, Sharma 2023, algorithm 1).

=======================================================  ==============================================================
line                                                     here
=======================================================  ==============================================================
x_i(t+1/2) = x_i(t) - eta grad f_i(x_i(t))               ``half``, after ``local_steps`` of these, at the end of a step
send x_i(t+1/2) to s agents drawn at random              ``message``, over the edges that are open (`topology.changes`)
x_i(t+1) = (x_i(t+1/2) + sum of what was received)       ``model``, at the beginning of the next step: the mean of its
    / (1 + number of those)                              own and of what is new since the last one
=======================================================  ==============================================================

Whom an agent sends to is the graph's to say: on a complete graph, ``changes: {kind: sample, peers: s}`` is EL-Local,
where all draw for themselves, and ``{kind: regular, peers: s}`` EL-Oracle, where all hear as many as they send to. On
matchings or a one-peer exponential graph it is decentralised SGD on them, for then equal weights are doubly stochastic.

In rounds it is the paper's iteration. By clocks an agent takes the newest of each neighbour that it has heard since its
last step. Averages over different numbers of agents do not keep the mean: with s small, agents end around it.

Use it where anybody may be sent to, with few messages. What breaks it: few peers on a graph that stays as it is, and
losses, after which averages are over those that came.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from ...agents.parameters import Size
from ..base import Layout, MessageKind, Traits
from ..invariants import Declared, last_sent_is_kept
from ..steps import batched, received, segment_sum
from .gradient_rounds import GradientProtocol, GradientRoundsParameters, gradient


class EpidemicLearningParameters(GradientRoundsParameters):
    """Epidemic learning: send models to random peers, and average with those that were received."""

    kind: Literal["epidemic_learning"]
    local_steps: Size = 1
    """Gradient steps between two averages."""


class EpidemicLearning(GradientProtocol):
    """Epidemic learning; see the module's docstring."""

    Parameters = EpidemicLearningParameters
    parameters: EpidemicLearningParameters
    from_first: ClassVar[tuple[str, ...]] = ("model", "half")
    traits = Traits(directed=True, changing=True)
    asks_what_is_new = True

    def layout(self) -> Layout:
        """The model, and what it was sent as."""
        p = self.problem.task.dimension
        mirrors = None if self.problem.task.first is None else "half"
        return Layout(agent={"model": p, "half": p}, messages={"half": MessageKind(p, mirrors=mirrors)})

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Average with what is new, and go along the gradient."""
        total = me.half + segment_sum(me, me.is_new * received(me))
        half = me.model = total / (1.0 + segment_sum(me, 1.0 * me.is_new))
        for _ in range(me.local_steps):
            half = half - me.step_size * gradient(me, half)
        me.half = me.message = half

    def invariants(self) -> Declared:
        """Agents go on from what they have sent."""
        return (
            last_sent_is_kept("half", "half", "de Vos et al. 2023, algorithm 1: what is averaged is what was sent"),
        )
