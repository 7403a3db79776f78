"""Federated averaging (McMahan, Moore, Ramage, Hampson, Agueera y Arcas 2017, algorithm 1): the baseline with a server.

Agent 0 is the server and has rows of its own, as every client; the graph is a star around it. An iteration takes two
rounds:

==========================================  ===========================================================================
line                                        here
==========================================  ===========================================================================
w_t is sent to clients S_t                  round 2t + 1: the server's message ``common``, over the edges that are open
w_k = w - eta grad f_k(w), several times    round 2t + 2: who was sent it, and the server itself, `local_steps` times,
                                            on all rows or `batch` of them; message ``local``: (c_k w_k, c_k)
w_{t+1} = sum_k c_k w_k / sum_k c_k         round 2t + 3: the server, over k in S_t; c_k is the number of rows n_k, or
                                            1 (`weighting`)
==========================================  ===========================================================================

All clients take part in every iteration (C = 1), unless ``topology: {kind: star, changes: {kind: sample, peers: m}}``
lets the server draw m of them anew for each (C K = m). The paper's server has no rows: here it weighs nothing if it has
none and weights are by rows, and else is one client more. A local step is on `batch` rows drawn anew, where the paper
goes through all rows in batches, E times. With as many rows each, or equal weights, and one local step on all rows,
it is gradient descent on the mean of the f_k; with more, clients of unlike data end around its minimum.

Use it as the baseline with a server. What breaks it: a server that is away, or shares one link with all, and many local
steps on unlike data, after which clients have drifted apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from ...agents.blocks import State
from ...agents.objectives.objectives import Objective
from ...agents.objectives.pooled_objective import PooledObjective
from ...agents.parameters import Size
from ..base import Layout, MessageKind, PublicStart, Traits
from ..context import Context, check_star
from ..invariants import Declared, NoInvariant
from ..steps import Every
from .gradient_rounds import Array, GradientProtocol, GradientRoundsParameters, gradient
from .split_features import CENTRE, widths


class FederatedAveragingParameters(GradientRoundsParameters):
    """Federated averaging: clients descend from the server's model, and the server averages theirs."""

    kind: Literal["federated_averaging"]
    local_steps: Size = 1
    """Gradient steps of a client in an iteration (E)."""
    weighting: Literal["rows", "equal"] = "rows"
    """Weights of clients in the average: their numbers of rows, or the same for all."""


class FederatedAveraging(GradientProtocol):
    """Federated averaging in a star; see the module's docstring."""

    Parameters = FederatedAveragingParameters
    parameters: FederatedAveragingParameters
    from_first: ClassVar[tuple[str, ...]] = ("model", "average")
    traits = Traits(trigger="round", inbox="per_round", needs_both_ends=True, changing=True)
    asks_what_is_new = True

    @classmethod
    @override
    def check_scenario(cls, parameters: FederatedAveragingParameters, context: Context) -> None:
        check_star(context.may_be_star)

    def layout(self) -> Layout:
        """The model, and the server's last average; it sends that, clients theirs times their weight, and that."""
        p, n = self.problem.task.dimension, self.problem.graph.agents
        common, local = widths(n, centre=p, party=0), widths(n, centre=0, party=p + 1)
        messages = {"common": MessageKind(common), "local": MessageKind(local)}
        return Layout(agent={"model": p, "average": p}, messages=messages, roles=["centre"] + ["client"] * (n - 1))

    def public_start(self) -> PublicStart:
        """The first parameters, which nobody sends before the first round."""
        return replace(super().public_start(), sent={})

    def sends(self) -> dict[str, Every]:
        """The server in odd rounds, its clients in even ones."""
        period = np.zeros(self.problem.graph.agents, dtype=np.int64)
        period[self.problem.graph.neighbours(CENTRE)] = 2
        return {"common": Every(2), "local": Every(period, period // 2)}

    @staticmethod
    def step(me: Any) -> None:
        """Average and send in odd rounds, descend in even ones, where the server has sent its model."""
        server, second = me.role == "centre", me.updates % 2 == 1
        weight = 1.0 if me.weighting == "equal" else float(len(me.labels))
        if server and not second:
            if me.updates > 0:
                local = me.is_new_local @ me.heard_local
                total, weights = weight * me.model + local[:-1], weight + local[-1]
                me.model = total / weights if weights > 0 else me.model
            me.average = me.message_common = me.model
        elif second and (server or (CENTRE in me.neighbours and me.is_new_common[0])):
            model = me.model if server else me.heard_common[0]
            for _ in range(int(me.local_steps)):
                model = model - me.step_size * gradient(me, model)
            me.model = model
            if not server:
                me.message_local = np.append(weight * model, weight)

    def invariants(self) -> Declared:
        """None."""
        return NoInvariant("nothing is kept from one iteration to the next but the server's model")

    @override
    def models(self, state: State) -> Array:
        """The server's last average, which is everybody's."""
        return np.tile(state.agent["average"].rows[CENTRE], (self.problem.graph.agents, 1))

    @override
    def objective(self) -> Objective:
        """The mean of the f_k at the server's model, over agents or rows."""
        task = self.problem.task
        made, rows = PooledObjective.mean_of_agents(task, self.parameters.mu), len(task.train.labels)
        if self.parameters.weighting == "equal":
            return made
        return replace(made, row_weights=np.full(rows, 1.0 / max(rows, 1)), scale="unknown")
