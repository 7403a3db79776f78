"""Asynchronous decentralised parallel SGD (Lian, Zhang, Zhang, Liu 2018, algorithm 1).

=========  ==============================================================================================
line       here
=========  ==============================================================================================
3 to 5     ``request``: the caller's gradient at its present model, which is sent to a random neighbour
6          ``respond`` and ``complete``: both ends go to the mean of what they have sent each other
7          ``complete``: the caller goes along its gradient, which by then is as old as the exchange; with
           ``momentum`` beta along v = beta v + g, of its completed sessions in their order
=========  ==============================================================================================

The paper's averaging matrix W_k may average more than two agents, and its gradient may be as old as any model of the
agent; here W_k averages the two ends of an edge, as in the paper's experiments, and the gradient is that of the model
that was sent. A step of the callee's own gradient waits for its own call, and an agent goes on calling other neighbours
while a session is open. The averaging of the paper is atomic. Here a
caller may have changed by the time of the reply, so each end adds half of the difference of the two models that were
sent: what one gains the other loses, and the mean of all models moves by gradients alone, however late an answer is.
`push_sum_dual_averaging` needs no answers.

Use it where agents differ in speed and can answer each other. What breaks it: latencies of several wake-ups, in which
sessions stay open and models grow old; directed graphs, which cannot answer, are refused.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ..base import Layout, MessageKind, Traits
from ..invariants import Declared, of_edges
from ..steps import batched
from .gradient_rounds import Array, GradientProtocol, GradientRoundsParameters, gradient


class AdPsgdParameters(GradientRoundsParameters):
    """Asynchronous decentralised parallel SGD: average with a random neighbour, and go along the own gradient."""

    kind: Literal["ad_psgd"]
    momentum: float = Field(default=0.0, ge=0, lt=1)
    """Share of the last step's direction that is added to the gradient; 0 for none."""


class AdPsgd(GradientProtocol):
    """AD-PSGD, in pairs; see the module's docstring."""

    Parameters = AdPsgdParameters
    parameters: AdPsgdParameters
    traits = Traits(exchange="pairwise", unanswered="repeat")

    def layout(self) -> Layout:
        """The model and its velocity; of an edge a call's gradient and model, and what was gained over the edge."""
        p = self.problem.task.dimension
        edge = {"asked": p, "gradient": p, "gained": p}
        agent = {"model": p, "velocity": p} if self.parameters.momentum else {"model": p}
        return Layout(agent=agent, edge=edge, messages={"request": MessageKind(p), "reply": MessageKind(p)})

    @staticmethod
    @batched
    def request(me: Any) -> None:
        """Lines 3 to 5: the gradient at the model that is sent."""
        me.here.asked = me.model
        me.here.gradient = gradient(me, me.model)
        me.message = me.model

    @staticmethod
    @batched
    def respond(me: Any, heard: Array) -> None:
        """Line 6 at the callee."""
        half = (heard - me.model) / 2
        me.message = me.model
        me.here.gained = me.here.gained + half
        me.model = me.model + half

    @staticmethod
    @batched
    def complete(me: Any, heard: Array) -> None:
        """Lines 6 and 7 at the caller."""
        half = (heard - me.here.asked) / 2
        me.here.gained = me.here.gained + half
        direction = me.here.gradient
        if me.momentum:
            direction = me.velocity = me.momentum * me.velocity + direction
        me.model = me.model + half - me.step_size * direction

    def invariants(self) -> Declared:
        """Gains over an edge cancel between its two ends: the mean moves by gradients alone."""
        return (of_edges("gained over an edge", "gained", 1.0, "Lian et al. 2018, line 6: averaging keeps the mean"),)
