"""Stochastic gradient push (Assran, Loizou, Ballas, Rabbat 2019, algorithm 1) with running totals.

An agent has a mass (x_i, w_i), which starts at (0, 1); z_i = x_i / w_i is its model. At a step it

=========================  ============================================================================================
equation                   here
=========================  ============================================================================================
receive and sum            (x_i, w_i) += what its in-neighbours have given to it since its last step
z_i = x_i / w_i            the model at which the gradient is taken
x_i -= alpha grad f_i      x_i changes, w_i does not
p_ji = 1 / (1 + out_i)     an equal share of (x_i, w_i) goes over each of its out_i edges that are open; one share stays
=========================  ============================================================================================

An agent owns its out-edges and need not hear those that it sends to, so any strongly connected directed graph will do:
the matrix of shares is column-stochastic, and w_i corrects for what is not doubly stochastic (push-sum). The graph may
change: on ``exponential`` with ``changes: {kind: in_turn}`` it is the paper's 1-peer graph, with shares of a half.

A message has the *total* of all shares that the agent has ever given over an edge; the receiver subtracts the total
that it has accumulated before. So a message that was lost or overtaken is made up for by the next one, and by their own
clocks agents make the robust asynchronous gradient push of Spiridonoff, Olshevsky, Paschalidis (2020), without its
weights for agents that step rarely: who steps more often weighs more. In lossless rounds it is Assran et al.'s
iteration. Agents that leave keep their mass for good, and what was given to them.

Use it where edges have a direction, or change. What breaks it: a gradient moves z_i by alpha / w_i, and w_i falls by
1 / (1 + out_i) at every wake-up before which nothing has come. By clocks, with messages that are lost, or late by
several wake-ups, it falls below alpha times the smoothness of f_i, and steps overshoot, however well totals keep the
weight: a loop without this package diverges alike (``tests/protocols/test_gradient_push_by_clocks.py``: on a ring of 8
agents with latency 5 at alpha = .005, and not at .001). It is the method's: Spiridonoff et al. bound w_i from below by
bounded delays and losses, and let alpha fall. Take a small alpha there, or rounds.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from typing_extensions import override

from ...agents.blocks import State
from ..base import Layout, MessageKind, PublicStart, Traits
from ..invariants import Declared, Instant, Invariant
from ..steps import batched, per_edge, received, segment_sum
from .gradient_rounds import GradientProtocol, GradientRoundsParameters, gradient


class StochasticGradientPushParameters(GradientRoundsParameters):
    """Stochastic gradient push: give shares of model and weight to out-neighbours, and go along the own gradient."""

    kind: Literal["stochastic_gradient_push"]


class StochasticGradientPush(GradientProtocol):
    """Stochastic gradient push on directed graphs; see the module's docstring."""

    Parameters = StochasticGradientPushParameters
    parameters: StochasticGradientPushParameters
    traits = Traits(directed=True, changing=True)

    def layout(self) -> Layout:
        """The model, and mass (x, w); of an edge the totals that were given and accumulated over it."""
        p = self.problem.task.dimension
        edge = {"given": p + 1, "taken": p + 1}
        return Layout(
            agent={"model": p, "mass": p + 1}, edge=edge, messages={"given": MessageKind(p + 1, addressed=True)}
        )

    def public_start(self) -> PublicStart:
        """Weight 1 for everybody, and the first parameters where these are not zero."""
        task = self.problem.task
        first = np.zeros(task.dimension) if task.first is None else task.first
        mass = np.tile(np.append(first, 1.0), (task.agents, 1))
        return PublicStart({"model": mass[:, :-1], "mass": mass})

    @staticmethod
    @batched
    def step(me: Any) -> None:
        """Accumulate, go along the gradient, and give."""
        more = received(me) - me.taken
        me.taken = me.taken + more
        mass = me.mass + segment_sum(me, more)
        me.model = mass[:, :-1] / mass[:, -1:]
        moved = mass[:, :-1] - me.step_size * gradient(me, me.model)
        share = 1.0 / (1.0 + segment_sum(me, 1.0 * me.is_open))
        me.mass = np.concatenate((moved, mass[:, -1:]), axis=1) * share
        me.given = me.given + me.is_open * per_edge(me, me.mass)
        me.message = me.given

    def invariants(self) -> Declared:
        """The weights of agents and what is under way sum to the number of agents that have begun."""

        def distance(instant: Instant) -> float:
            held = float(instant.agent("mass")[instant.started, -1].sum()) + self._under_way(instant.state)
            return abs(held - float(instant.started.sum()))

        def scale(instant: Instant) -> float:
            return float(instant.started.sum()) + float(instant.edge("given")[:, -1].sum())

        return (Invariant("weight w", distance, scale, source="Hadjicostis et al. 2016: running sums keep the mass"),)

    @override
    def conserved(self, state: State) -> dict[str, float]:
        """Weight under way, as a share of all; it is lost for good where its receiver has left."""
        return {"w under way": self._under_way(state) / self.problem.task.agents}

    def _under_way(self, state: State) -> float:
        """Weight that was given and not accumulated yet."""
        graph = self.problem.graph
        return float((state.edge["given"].rows[:, -1] - state.edge["taken"].rows[graph.reverse, -1]).sum())
