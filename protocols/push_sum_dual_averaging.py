"""Push-sum dual averaging with running totals: a variant of `hushnet.protocols.dual_averaging` that needs no rounds.

An agent has a mass (z_i, w_i), which starts at (0, 1). When its clock wakes it at time s, it

1. takes in what its neighbours have pushed to it since it last looked,
2. steps as its parent does, with z_i / w_i for the dual: x_i = -(z_i / w_i) / (mu A(s) + gamma(s)),
3. adds a g_i to z_i, where a = A(s) - A(s') and s' is the time of its step before,
4. splits its mass evenly over itself and its neighbours, and broadcasts the *total* of all that it has ever pushed to
   any one of them.

A neighbour subtracts the total that it took in last, so a message that was lost or overtaken is made up for by the next
one (running sums: Hadjicostis, Vaidya and Dominguez-Garcia 2016), and no mass disappears while everybody stays. The
matrix of splits need not be doubly stochastic: w_i corrects for what z_i has too much or too little of (push-sum).

A(s) is the parent's, as a function of time in expected wake-ups of a rate-1 agent: s (s + 1) / 2 for ``linear``, s for
``constant`` step weights. By time s, all subgradients of an agent weigh A(its last step) together, which is A(s) up to
what it has yet to do: agents that wake rarely, or were away, count no less in the optimum than others. That takes a
common time; with weights by an agent's own number of steps, the fast ones would pull the optimum towards themselves.
On a regular graph with periodic clocks and delays below a period this *is* the parent, round by round.

What is proven: Tsianos, Lawlor and Rabbat (2012) prove the synchronous method, push-sum dual averaging with constant
step weights and proximal terms that grow like sqrt(t), on fixed graphs without loss. Not proven: steps of agents' own
clocks with weights by time, delays and losses, and linear weights.

What absence does: mass that is pushed to an agent which has left for good, or has fallen silent with its last update,
never comes back. The others' w_i shrink towards 0, their ratios z_i / w_i are moved more and more by each new
subgradient, and what they agree on is no longer the optimum; see `PushSumDualAveraging.conserved`.

Noise is the parent's: what is sent is made of perturbed subgradients and of nothing else of the agent's data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from ..agents.blocks import State
from ..agents.objectives import Objective
from ..agents.pooled_objective import PooledObjective
from ..agents.tables import Shard
from .base import Layout, MessageKind, Out, Protocol, View
from .dual_averaging import Averaging, AveragingParameters

Array = NDArray[np.float64]


class PushSumDualAveragingParameters(AveragingParameters):
    """Dual averaging with push-sum and running totals; an asynchronous variant of dual_averaging."""

    kind: Literal["push_sum_dual_averaging"]


class PushSumDualAveraging(Protocol):
    """Dual averaging by broadcasts of running totals; see the module's docstring."""

    Parameters = PushSumDualAveragingParameters
    parameters: PushSumDualAveragingParameters

    def prepare(self) -> None:
        """Step weights, proximal weights and the noise."""
        self.averaging = Averaging(self.parameters, self.problem.task)

    def local_data(self, agent: int, shard: Shard) -> Shard:
        """Rows clipped to the radius, where there is one."""
        return self.averaging.clipped(shard)

    def layout(self) -> Layout:
        """Mass, running totals, and what was put in, each (z, w); the average of models; one broadcast kind."""
        p = self.problem.task.dimension
        return Layout(
            agent={"mass": p + 1, "pushed": p + 1, "put_in": p + 1, "average": p, "since": 1},
            edge={"taken": p + 1},
            messages={"pushed": MessageKind(p + 1)},
        )

    def start(self, view: View, out: Out) -> None:
        """z_i = 0 and w_i = 1."""
        self.averaging.noise.check_rows(view.data, self.problem.task.ids[view.agent])
        view.state["mass"][-1] = view.state["put_in"][-1] = 1.0

    def wake(self, view: View, out: Out) -> None:
        """Take in, step, split, and broadcast."""
        release = self.averaging.noise.release(view)
        if not out.reserve(release):
            out.fall_silent()
            return
        state, mass, taken = view.state, view.state["mass"], cast(Array, view.edge["taken"])
        pushed = view.received("pushed")
        mass += (pushed - taken).sum(axis=0)
        taken[:] = pushed
        gained = self.averaging.step(view, mass[:-1] / mass[-1], float(state["since"][0]), view.now, release)
        mass[:-1] += gained
        state["put_in"][:-1] += gained
        state["since"][0] = view.now
        mass /= 1 + len(view.neighbours)
        state["pushed"] += mass
        out.send("pushed", state["pushed"], release)
        if self.averaging.over(view.updates + 1):
            out.fall_silent()

    def models(self, state: State) -> Array:
        """Every agent's average of its models, with the weights of its steps."""
        return state.agent["average"].rows

    def objective(self) -> Objective:
        """F of the parent's problem (1), at the average of the agents' outputs."""
        return PooledObjective.mean_of_agents(self.problem.task, self.parameters.mu)

    def conserved(self, state: State) -> Mapping[str, float]:
        """How far masses are from what was put in, as shares of it.

        ``mass of w``, ``mass of z``
            Agents' masses, and what was pushed and not taken in yet, against 1 for every agent that has begun, and
            against all weighted subgradients (largest coordinate, as a share of the sum of absolute values): 0 up to
            rounding whatever is late or lost.
        ``w under way``
            The part of w that was pushed and not taken in yet. Late and lost messages raise it; what is under way to
            agents that have left, or take no more steps, is lost for good.
        """
        graph, put_in = self.problem.graph, state.agent["put_in"].rows
        under_way = (state.agent["pushed"].rows[graph.heads] - state.edge["taken"].rows).sum(axis=0)
        apart = np.abs(state.agent["mass"].rows.sum(axis=0) + under_way - put_in.sum(axis=0))
        size = np.abs(put_in).sum(axis=0)
        shares = apart / np.where(size > 0.0, size, 1.0)
        return {
            "mass of w": float(shares[-1]),
            "mass of z": float(shares[:-1].max(initial=0.0)),
            "w under way": float(under_way[-1] / max(size[-1], 1.0)),
        }
