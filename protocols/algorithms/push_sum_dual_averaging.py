"""Push-sum dual averaging with running totals: a variant of `dual_averaging` that needs no rounds.

An agent has a mass (z_i, w_i), which starts at (0, 1). When its clock wakes it at time s, it

1. takes in what its neighbours have given to it since it last looked,
2. steps as its parent does, with z_i / w_i for the dual: x_i = -(z_i / w_i) / (mu A(s) + gamma(s)),
3. adds a g_i to z_i, where a = A(s) - A(s') and s' is the time of its step before,
4. gives 1 / (degree + 1) of its mass to each neighbour that it has heard something new from since it last gave to it,
   keeps the rest, and tells every neighbour the *total* of all that it has ever given to it.

If it has heard nothing new from anybody, it only tells the totals once more: so it does when all others are gone.

A neighbour subtracts the total that it took in last, so a message that was lost or overtaken is made up for by the next
one (running sums: Hadjicostis, Vaidya and Dominguez-Garcia 2016), and no mass disappears while everybody stays. The
matrix of shares need not be doubly stochastic: w_i corrects for what z_i has too much or too little of (push-sum).
As nothing more is given to a neighbour that does not answer, agents that wake rarely, are away, or have left take no
more than one share from each of their neighbours, and no w_i is drained towards 0, where z_i / w_i would blow up.

A(s) is the parent's, as a function of time in expected wake-ups of a rate-1 agent: s (s + 1) / 2 for ``linear``, s for
``constant`` step weights. By time s, all subgradients of an agent weigh A(its last step) together, which is A(s) up to
what it has yet to do: agents that wake rarely, were away or join late count no less in the optimum than others. That
takes a common time; with weights by an agent's own number of steps, the fast ones would pull the optimum to themselves.
On a regular graph with periodic clocks and delays below a period this *is* the parent, round by round.

What is proven: Tsianos, Lawlor and Rabbat (2012) prove the synchronous method, push-sum dual averaging with constant
step weights and proximal terms that grow like sqrt(t), on fixed graphs without loss. Not proven: steps of agents' own
clocks with weights by time, delays and losses, and linear weights.

What absence does: a share that is on its way to an agent which leaves for good, or falls silent with its last update,
never comes back, and neither does what that agent has. The others agree on a point that the share has shifted, and
whose optimum is weighted by what every agent has put in; see `PushSumDualAveraging.conserved`.

Noise is the parent's: what is sent is made of perturbed subgradients and of nothing else of the agent's data. A step
with nobody to give to would be a release that no message is charged for, so there is none.

Use it for convex tasks by agents' own clocks, without answers. What breaks it: agents that leave for good with a share
of the sum, after which the others agree on a shifted point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...agents.blocks import State
from ...agents.graph import Graph
from ..base import Layout, MessageKind, PublicStart
from ..invariants import Declared, Instant, Invariant, by_row, largest
from ..steps import Constants, affords, batched, per_edge, post_processed, segment_sum
from .dual_averaging import AveragingParameters, AveragingProtocol, gradient_at, total_weight
from .subgradient_noise import drawn_rows

Array = NDArray[np.float64]


class PushSumDualAveragingParameters(AveragingParameters):
    """Dual averaging with push-sum and running totals; an asynchronous variant of dual_averaging."""

    kind: Literal["push_sum_dual_averaging"]


class PushSumDualAveraging(AveragingProtocol):
    """Dual averaging by running totals; see the module's docstring."""

    Parameters = PushSumDualAveragingParameters
    parameters: PushSumDualAveragingParameters
    asks_for_budget = True

    def layout(self) -> Layout:
        """Mass, what was put in, running totals, each (z, w); average of models; time and number of the last step."""
        p = self.problem.task.dimension
        return Layout(
            agent={"mass": p + 1, "put_in": p + 1, "average": p, "progress": 2},
            edge={"given": p + 1, "taken": p + 1},
            messages={"given": MessageKind(p + 1, addressed=True)},
        )

    def public_start(self) -> PublicStart:
        """z_i = 0 and w_i = 1."""
        task = self.problem.task
        mass = np.broadcast_to(np.append(np.zeros(task.dimension), 1.0), (task.agents, task.dimension + 1))
        return PublicStart({"mass": mass, "put_in": mass})

    def constants(self) -> Constants:
        """Constants that a step reads beside the parameters, among them the most updates of an agent."""
        limit = math.inf if self.limit is None else float(self.limit)
        return Constants(run={"growth": self.growth, "limit": limit})

    @staticmethod
    @batched
    def step(me: Any) -> Any:
        """Take in, step, give, and tell."""
        rows = drawn_rows(me)
        answered = taken_in(me)
        giving = (segment_sum(me, answered) > 0.0) | (me.degree == 0)
        some = me.where(giving)
        if giving.any() and not affords(some):
            return True
        advance(some, rows)
        give(me, answered & (per_edge(me, giving) != 0))
        post_processed(me.where(~giving))
        me.message = me.given
        return me.progress[:, 1:] >= me.limit

    def invariants(self) -> Declared:
        """No mass disappears: see `conserved`, whose first two numbers these are."""
        source = "Hadjicostis et al. 2016: running sums keep the total mass"

        def lost(part: slice) -> Invariant:
            def distance(instant: Instant) -> float:
                return largest(_missing(instant.state, instant.graph)[part])

            def scale(instant: Instant) -> float:
                put_in, given = instant.agent("put_in")[:, part], instant.edge("given")[:, part]
                return float(by_row(put_in).sum()) + largest(given)

            return Invariant("mass w" if part.start else "mass z", distance, scale, source=source)

        return lost(slice(None, -1)), lost(slice(-1, None))

    def conserved(self, state: State) -> Mapping[str, float]:
        """Distances of the masses from what was put in, as shares of it.

        ``w``, ``z``
            Agents' masses, and what was given and not yet accumulated, against 1 for every agent that has begun, and
            against all weighted subgradients (largest coordinate, as a share of the sum of absolute values): 0 up to
            rounding whatever is late or lost.
        ``w under way``
            The part of w that was given and not yet accumulated, which is lost for good where the agent that it was
            given to has left, or takes no more steps.
        """
        under_way, apart = _under_way(state, self.problem.graph), np.abs(_missing(state, self.problem.graph))
        size = np.abs(state.agent["put_in"].rows).sum(axis=0)
        shares = apart / np.where(size > 0.0, size, 1.0)
        return {
            "w": float(shares[-1]),
            "z": float(shares[:-1].max(initial=0.0)),
            "w under way": float(under_way[-1] / max(size[-1], 1.0)),
        }


def taken_in(me: Any) -> NDArray[np.bool_]:
    """Add what neighbours have given since the last step; (degree, 1) whom to give to in turn.

    Whoever gives anything gives some of w, so a total of w that is the same says that the whole total is.
    """
    totals = me.heard
    more = totals[:, -1:] > me.taken[:, -1:]
    me.mass = me.mass + segment_sum(me, np.where(more, totals - me.taken, 0.0))
    me.taken = np.where(more, totals, me.taken)
    return more | (me.given[:, -1:] == 0.0)


def advance(me: Any, rows: Any) -> None:
    """The model, and the weighted subgradient there, which is added to the mass.

    A step at the time of the step before (at time 0) weighs nothing: what is given then was in the mass before.
    """
    moves = me.now != me.progress[:, :1]
    post_processed(me.where(~moves))
    me = me.where(moves)
    total = total_weight(me, me.now)
    dual = me.mass[:, :-1] / me.mass[:, -1:]
    weight = total - total_weight(me, me.progress[:, :1])
    gradient = weight * gradient_at(me, dual, weight, total, me.now, rows)
    more = np.concatenate((gradient, np.zeros_like(weight)), axis=1)
    me.mass, me.put_in = me.mass + more, me.put_in + more
    me.progress = np.concatenate((me.now, me.progress[:, 1:] + 1.0), axis=1)


def give(me: Any, answered: NDArray[np.bool_]) -> None:
    """A share of the mass to each of those that have answered."""
    share = me.mass / (1 + me.degree)
    me.given = me.given + np.where(answered, per_edge(me, share), 0.0)
    me.mass = me.mass - segment_sum(me, answered) * share


def _under_way(state: State, graph: Graph) -> Array:
    """(p + 1,) what was given and not taken in yet."""
    return (state.edge["given"].rows[graph.reverse] - state.edge["taken"].rows).sum(axis=0)


def _missing(state: State, graph: Graph) -> Array:
    """(p + 1,) agents' masses and what is under way, less what was put in."""
    held, put_in = state.agent["mass"].rows.sum(axis=0), state.agent["put_in"].rows.sum(axis=0)
    return held + _under_way(state, graph) - put_in
