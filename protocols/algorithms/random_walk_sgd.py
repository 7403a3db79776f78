"""Random-walk SGD: a token carries the model from agent to agent (Lopes, Sayed 2007; Johansson, Rabi, Johansson 2009).

=====================================  ================================================================================
equation                               here
=====================================  ================================================================================
x(k+1) = x(k) - alpha grad f_i(x(k))   a step of the agent i that holds the token, when its clock wakes it
i(k+1) = j with probability P_ij       ``token``: (x, k), to a neighbour j that is drawn uniformly; by Metropolis and
                                       Hastings, P_ij = min(1 / d_i, 1 / d_j), and the token stays with what is left
=====================================  ================================================================================

With Metropolis's weights the walk visits all agents alike in the long run, so that it minimises the mean of the f_i;
the simple walk visits those with more neighbours more often. Agent 0 holds the token at the start. An agent's model is
the last that it has held, so what is measured of the others is old.

A message may be lost. Whoever has passed the token on says so again at each of its wake-ups, until the other has
answered by ``taken``: k. An agent takes each k once, and answers every time, so there is one token, however many copies
are under way; it is gone only with an agent that has left for good.

Use it where messages are dear and time is not: one vector is under way at a time. What breaks it: many agents, each of
whom waits for its turn, and a holder that leaves for good, with whom the token is gone.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..base import Layout, MessageKind, PublicStart, Traits
from ..invariants import Declared, Instant, Invariant
from ..steps import Constants, uniform
from .gradient_rounds import GradientProtocol, GradientRoundsParameters, gradient

HOLDS, TAKEN, PASSED, TO = range(4)
"""Places in ``walk``: 1 for who holds the token; number k of the last that was taken; k of the one that was passed on
and not answered, 0 if there is none; and the neighbour that it went to."""


class RandomWalkSGDParameters(GradientRoundsParameters):
    """Random-walk SGD: one model walks over the graph, and every agent that holds it goes along its gradient."""

    kind: Literal["random_walk_sgd"]
    walk_weights: Literal["metropolis", "simple"] = "metropolis"
    """Weights of the walk: of Metropolis and Hastings, uniform over agents in the long run, or any neighbour alike."""


class RandomWalkSGD(GradientProtocol):
    """Random-walk SGD, by agents' clocks; see the module's docstring."""

    Parameters = RandomWalkSGDParameters
    parameters: RandomWalkSGDParameters
    traits = Traits(trigger="message")
    decides = True

    def layout(self) -> Layout:
        """The last model held, and where the token is; a token, and its answer."""
        p = self.problem.task.dimension
        messages = {"token": MessageKind(p + 1), "taken": MessageKind(1, vectors=0)}
        return Layout(agent={"model": p, "walk": 4}, messages=messages)

    def public_start(self) -> PublicStart:
        """Agent 0 holds the token, k = 0."""
        start = super().public_start()
        walk = np.zeros((self.problem.graph.agents, 4))
        walk[0, HOLDS] = 1.0
        return PublicStart({**start.blocks, "walk": walk})

    def constants(self) -> Constants:
        """Probability with which a proposed neighbour is accepted."""
        graph, degrees = self.problem.graph, np.maximum(self.problem.graph.degrees, 1)
        ratio = np.minimum(1.0, degrees[graph.tails] / degrees[graph.heads])
        simple = self.parameters.walk_weights == "simple"
        return Constants(edge={"accepted": np.ones(len(ratio)) if simple else ratio})

    def step(self, me: Any) -> None:
        """Whoever holds the token makes a step and passes it on, and else repeats what was not answered."""
        walk = me.walk
        if walk[HOLDS]:
            me.model -= me.step_size * gradient(me, me.model)
            walk[TAKEN] += 1
            if me.degree > 0:
                rank = min(int(uniform(me) * me.degree), me.degree - 1)
                if uniform(me) < np.ravel(me.accepted)[rank]:
                    walk[[HOLDS, PASSED, TO]] = 0.0, walk[TAKEN], me.neighbours[rank]
        if walk[PASSED]:
            me.send("token", np.append(me.model, walk[PASSED]), to=int(walk[TO]))

    def react(self, me: Any, message: Any) -> None:
        """Take the token, and answer; or know that it was taken."""
        number, walk = message.vector[-1], me.walk
        if message.kind == "taken":
            if number == walk[PASSED]:
                walk[PASSED] = 0.0
            return
        if number > walk[TAKEN]:
            me.model = message.vector[:-1]
            walk[[HOLDS, TAKEN, PASSED]] = 1.0, number, 0.0
        me.send("taken", [number], me.public("the number of a step"), to=message.sender)

    def invariants(self) -> Declared:
        """The token is held by one agent at most."""

        def distance(instant: Instant) -> float:
            return max(float(instant.agent("walk")[:, HOLDS].sum()) - 1.0, 0.0)

        return (Invariant("one token", distance, lambda _: 1.0, source="every number k is taken once"),)
