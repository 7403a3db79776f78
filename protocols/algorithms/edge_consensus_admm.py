"""Edge-activated consensus ADMM: a variant of `hushnet.protocols.algorithms.consensus_admm` that needs no rounds.

Two neighbours meet at a time. Both solve their own problem, with all that they know of their other edges as it is, tell
each other the solutions, and update the variables of their common edge and of no other. An edge e = (i, j) has a model
z_e, and each end of it a dual variable lambda_ij; at every instant at which no session is open on the edge, both ends
have the same z_e and lambda_ij = -lambda_ji, bit for bit.

===================  ==================================================================================
randomised ADMM      here
===================  ==================================================================================
local problem        f_i = argmin O(f, D_i) + sum_j (2 lambda_ij'(f - z_e) + eta |f - z_e|^2): `solve`
model of the edge    z_e = (f_i + f_j) / 2: `settle`
dual of the edge     lambda_ij += eta (f_i - z_e) = (eta/2) (f_i - f_j): `settle`
===================  ==================================================================================

O(f, D_i), C, rho and eta are those of Zhang, Khalili and Liu (2018), (2) and (8)-(9): if all edges met at once, this
would be their round with eta = theta and lambda_i = sum_j lambda_ij.

What is proven: edge by edge, with exact local problems, a constant penalty, and edges that are drawn independently,
this is the randomised ADMM of Iutzeler, Bianchi, Ciblat and Hachem (2013), whose models almost surely converge to the
optimum; Wei and Ozdaglar (2013) prove a rate for an asynchronous ADMM of the same kind. Poisson clocks with messages
that take no time draw edges so, one after the other. Not proven: anything with delays, where sessions overlap and a
caller's half of one is its solution as it was when it called; nor with absences, which make the draws dependent.

What loss does: nothing in the end, as a session is repeated until both ends have made it. If either end leaves in
between, the other's half stays, and the sum of the duals is no longer 0; see `EdgeConsensusAdmm.conserved`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from ...agents.blocks import State
from ...agents.objectives.objectives import Objective
from ...agents.parameters import Positive
from ..base import Layout, MessageKind, Protocol, Traits
from ..context import Context, check_newton
from ..invariants import Declared, of_edges
from ..privacy.mechanisms import Release
from ..steps import Constants, batched, minimised, segment_sum
from .consensus_admm import EXACT, LocalProblem, ProblemParameters, curvature_of, release_of_minimiser

Array = NDArray[np.float64]


class EdgeConsensusAdmmParameters(ProblemParameters):
    """ADMM for one common model, two neighbours at a time; an asynchronous variant of consensus_admm."""

    kind: Literal["edge_consensus_admm"]
    penalty: Positive = 0.5
    """eta, how much a model is held to those of its edges, and the step size of the dual variables."""


class EdgeConsensusAdmm(Protocol):
    """Consensus ADMM in pairs, without noise; see the module's docstring."""

    Parameters = EdgeConsensusAdmmParameters
    learns = "linear"
    parameters: EdgeConsensusAdmmParameters
    traits = Traits(exchange="pairwise")

    @classmethod
    @override
    def check_scenario(cls, parameters: EdgeConsensusAdmmParameters, context: Context) -> None:
        check_newton(context.task.loss, context.task.kind)

    def prepare(self) -> None:
        """The local problem O(f, D_i)."""
        self.local = LocalProblem(self.parameters, self.problem.task)

    def layout(self) -> Layout:
        """Model of an agent; z_e, lambda_ij, the last offer and the number of sessions made at each end of an edge."""
        p = self.problem.task.dimension
        return Layout(
            agent={"model": p},
            edge={"between": p, "dual": p, "offered": p, "met": 1},
            messages={"request": MessageKind(p), "reply": MessageKind(p)},
        )

    def start(self, me: Any) -> None:
        """Everything is 0; an agent without neighbours solves its own problem, and is done."""
        if not len(me.neighbours):
            self.steps.alone(me, solve)
            me.fall_silent()

    def constants(self) -> Constants:
        """The agents' share of the regulariser."""
        return Constants(run={"share": self.local.share})

    def release(self, me: Any) -> Release:
        """Minimisers without noise."""
        return release_of_minimiser(me)

    @staticmethod
    @batched
    def request(me: Any) -> None:
        """The caller's local problem; its solution is kept for `complete`."""
        solve(me)
        me.here.offered = me.message = me.model

    @staticmethod
    @batched
    def respond(me: Any, heard: Array) -> None:
        """The callee's local problem, and its end of the edge."""
        solve(me)
        me.here.offered = me.message = me.model
        settle(me, heard)

    @staticmethod
    @batched
    def complete(me: Any, heard: Array) -> None:
        """The caller's end of the edge, with its model as it was when it called."""
        settle(me, heard)

    def objective(self) -> Objective:
        """The sum of all O(f_i, D_i), whose minimum under consensus is that of problem (1)."""
        return self.local.objective

    def invariants(self) -> Declared:
        """Both ends of a quiet edge have made the same sessions, with one z_e and opposite duals."""
        return (
            of_edges("sessions of an edge", "met", -1.0, "every session is made once at each end"),
            of_edges("model of an edge", "between", -1.0, "Iutzeler et al. 2013: z_e is common to both ends"),
            of_edges("duals of an edge", "dual", 1.0, "Iutzeler et al. 2013: lambda_ij + lambda_ji = 0"),
        )

    def conserved(self, state: State) -> Mapping[str, float]:
        """Largest coordinates, in absolute value, of sums that are 0.

        ``edges``
            lambda_ij + lambda_ji, over edges whose ends have made equally many sessions: 0 whatever is late or lost.
        ``duals``
            sum_i lambda_i over all edges: apart from 0 by what sessions under way have changed at one end only, and
            for ever by those whose other end has left.
        """
        duals, met = state.edge["dual"].rows, state.edge["met"].rows[:, 0]
        back = self.problem.graph.reverse
        settled = met == met[back]
        gap = np.abs(duals + duals[back])[settled]
        return {
            "edges": float(gap.max(initial=0.0)),
            "duals": float(np.abs(duals.sum(axis=0)).max(initial=0.0)),
        }


def solve(me: Any) -> None:
    """the local problem, from z_e and lambda_ij of all edges."""
    linear = 2 * segment_sum(me, me.penalty * me.between - me.dual)
    curvature = curvature_of(me, me.penalty)
    me.model = minimised(me, me.loss_weight, curvature, linear, me.model, EXACT * me.loss_weight)


def settle(me: Any, theirs: Array) -> None:
    """z_e and lambda_ij from two models, sums and differences of the same two numbers at either end."""
    here = me.here
    here.between = 0.5 * (here.offered + theirs)
    here.dual = here.dual + 0.5 * me.penalty * (here.offered - theirs)
    here.met = here.met + 1.0
