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

With ``privacy`` a step adds noise to its gradient (Cyffers, Bellet, Upadhyay 2024, arXiv 2402.07471, algorithm 1), and
every visit is a release. The route follows from draws and from what arrives, never from numbers, so that ``observers``
have the releases made before the token came to them. Between two tokens that an observer has seen, noise of all visits
hides each (`hushnet.simulator.observers.walk_bound`), if steps are short: alpha (L + mu) <= 2, for a public bound on
rows.

A message may be lost. Whoever has passed the token on says so again at each of its wake-ups, until the other has
answered by ``taken``: k. An agent reads what has arrived when its clock wakes it, takes each k once, and answers every
time, so there is one token, however many copies are under way; it is gone only with an agent that has left for good.

Use it where messages are dear and time is not: one vector is under way at a time. What breaks it: many agents, each of
whom waits for its turn, and a holder that leaves for good, with whom the token is gone.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import model_validator
from typing_extensions import override

from ...agents.losses import public_smoothness
from ..base import Layout, MessageKind, Problem, PublicStart, Traits
from ..context import Context, check_slope
from ..invariants import Declared, Instant, Invariant
from ..noise import GradientNoise, active, check_all_rows
from ..privacy.budget import GradientPrivacy
from ..steps import Constants, uniform
from ..steps.declarations import POST_PROCESSING
from .gradient_rounds import (
    GradientProtocol,
    GradientRoundsParameters,
    check_all_gradients_count,
    gradient,
)

HOLDS, TAKEN, PASSED, TO = range(4)
"""Places in ``walk``: 1 for who holds the token; number k of the last that was taken; k of the one that was passed on
and not answered, 0 if there is none; and the neighbour that it went to."""


class RandomWalkSGDParameters(GradientRoundsParameters):
    """Random-walk SGD: one model walks over the graph, and every agent that holds it goes along its gradient."""

    kind: Literal["random_walk_sgd"]
    walk_weights: Literal["metropolis", "simple"] = "metropolis"
    """Weights of the walk: of Metropolis and Hastings, uniform over agents in the long run, or any neighbour alike."""
    privacy: GradientPrivacy | None = None
    """Noise on the gradient of every visit, of all rows; after ``updates`` visits an agent hands the
    token on as it is."""

    @model_validator(mode="after")
    def _all_rows(self) -> RandomWalkSGDParameters:
        check_all_gradients_count(self.batch, self.privacy)
        return self


class RandomWalkSGD(GradientProtocol):
    """Random-walk SGD, by agents' clocks; see the module's docstring."""

    Parameters = RandomWalkSGDParameters
    parameters: RandomWalkSGDParameters
    traits = Traits(inbox="every")
    decides = True
    decides_by_draws = True
    asks_for_budget = True

    @classmethod
    @override
    def check_problem(cls, parameters: RandomWalkSGDParameters, problem: Problem) -> None:
        check_all_rows(parameters.privacy, problem.task)

    @classmethod
    @override
    def check_scenario(cls, parameters: RandomWalkSGDParameters, context: Context) -> None:
        check_slope(parameters.privacy, context.task.loss)

    @override
    def prepare(self) -> None:
        privacy = self.parameters.privacy
        if privacy is not None:
            updates = privacy.updates or 1
            self.step_noise = GradientNoise(privacy, self.problem.task, weights=np.full(updates, 1 / updates))

    def layout(self) -> Layout:
        """The last model held, and where the token is; a token, and its answer."""
        p = self.problem.task.dimension
        messages = {"token": MessageKind(p + 1), "taken": MessageKind(1, vectors=0, public=True)}
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
        """Take what has come; whoever holds the token makes a step and passes it on, and else repeats it."""
        walk = me.walk
        for message in me.messages:
            self._take(me, message)
        if walk[HOLDS]:
            self._visit(me)
            walk[TAKEN] += 1
            if me.degree > 0:
                rank = min(int(uniform(me) * me.degree), me.degree - 1)
                if uniform(me) < np.ravel(me.accepted)[rank]:
                    walk[[HOLDS, PASSED, TO]] = 0.0, walk[TAKEN], me.neighbours[rank]
        if walk[PASSED]:
            under = me.public(POST_PROCESSING) if active(self.parameters.privacy) else None
            me.send("token", np.append(me.model, walk[PASSED]), under, to=int(walk[TO]))

    def _visit(self, me: Any) -> None:
        """Go along the gradient, with noise if there is any, as far as the budget goes."""
        if not active(self.parameters.privacy):
            me.model -= me.step_size * gradient(me, me.model)
            return
        release = self.release(me)
        if me.reserve(release):
            noisy = release.perturb(gradient(me, me.model), rng=me.stream("noise"))
            me.disclose(release)
            me.model -= me.step_size * noisy

    def _take(self, me: Any, message: Any) -> None:
        """Take a token, and answer; or know that it was taken."""
        number, walk = message.vector[-1], me.walk
        if message.kind == "taken":
            if number == walk[PASSED]:
                walk[PASSED] = 0.0
            return
        if number > walk[TAKEN]:
            me.model = message.vector[:-1]
            walk[[HOLDS, TAKEN, PASSED]] = 1.0, number, 0.0
        me.send("taken", [number], me.public("the number of a step"), to=message.sender)

    @override
    def chain_of_updates(self) -> bool:
        """True if a step on any data moves two tokens no further apart, which a bound on rows and the step size say."""
        privacy, task = self.parameters.privacy, self.problem.task
        if privacy is None or privacy.noiseless or privacy.norm != "l2" or privacy.unit != "record":
            return False
        if task.model is not None:  # clipping of rows keeps such a step from expansion for linear models alone
            return False
        bounds = [task.bounds.get("l2", np.inf), np.inf if privacy.radius is None else privacy.radius]
        smoothness = public_smoothness(min(bounds), task.loss, 0.0)
        return self.parameters.step_size * (smoothness + self.parameters.mu) <= 2.0

    def invariants(self) -> Declared:
        """The token is held by one agent at most."""

        def distance(instant: Instant) -> float:
            return max(float(instant.agent("walk")[:, HOLDS].sum()) - 1.0, 0.0)

        return (Invariant("one token", distance, lambda _: 1.0, source="every number k is taken once"),)
