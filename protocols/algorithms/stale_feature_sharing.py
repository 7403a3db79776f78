"""ADMM sharing with bounded staleness: a variant of `feature_sharing` that needs no rounds.

Parties and the centre step when their own clocks wake them, each with the newest that it has heard of the other side.
The centre numbers its steps; a party's scores carry the number of the step that they answer. The centre steps only if
all scores that it has answer one of its last ``staleness`` steps, and waits otherwise.

=================  ==================================================================================
step               here
=================  ==================================================================================
centre             z and y by (7) and (8) of Hu, Liu, Niu and Zhang (2019) from the newest scores s_m, then to each
                   party its target t_m = s_m - (sum_k s_k - z + y / rho) / (1 + damping)
party              x_m = argmin (lambda/2) |x|^2 + (rho/2) (1 + damping) |D_m x - t_m|^2, then s_m = D_m x_m
=================  ==================================================================================

Without damping the party's step is (6), with what the centre knew of the party's own scores. Who wakes without news, or
waits, sends its last message again: a lost message is made up for by the next wake-up of its sender.

``staleness: 1`` is the parent's Jacobi order step by step on every network, late, lossy or with absences, because
every step of the centre then takes scores that all answer the one before. ``unbounded`` never waits.

What is proven: nothing for staleness above 1. With all parties stepping at once, ``damping`` is the proximal term
damping (rho/2) |D_m (x - x_m)|^2 of parallel ADMM, for which Deng, Lai, Peng and Yin (2017) prove convergence if there
is enough of it, in the order of the number of parties; Zhang and Kwok (2014) have the same rule of waiting, for ADMM on
consensus problems. Stale scores act like more parties at once: if a run diverges or swings, take more damping, which
costs speed, or a larger rho.

A party that has left, or spent its budget, stops the centre after ``staleness`` more steps; with ``unbounded`` its last
scores stay in the sum.

Where it departs from the parent otherwise: t_m is one vector of N numbers instead of two, and one for each party.
Noise is the parent's ``privacy``: a repeat is not a new release.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from ...agents.blocks import State
from ...agents.parameters import NotNegative, Size
from ..base import Layout, MessageKind
from ..invariants import Declared
from ..privacy.budget import Privacy
from ..steps import Constants, affords, heard_of, heard_sum, post_processed, scores_of
from .feature_noise import ClippedScores, ScoreNoise, check_isotropic
from .feature_sharing import (
    SharingParameters,
    dual_step,
    factorised,
    fitted,
    noisy_scores,
    slopes_are_duals,
)
from .split_features import CENTRE, PARTY, SplitProtocol, roles, widths

Array = NDArray[np.float64]


class StaleFeatureSharingParameters(SharingParameters):
    """ADMM sharing with bounded staleness; an asynchronous variant of feature_sharing."""

    kind: Literal["stale_feature_sharing"]
    staleness: Size | Literal["unbounded"] = 4
    """The centre waits for scores that answer none of its last so many steps; 1 is synchronous."""
    damping: NotNegative = 0.0
    """Weight, relative to rho, of what holds a party to its last scores; changes the speed, not the optimum."""
    privacy: Privacy | None = None
    """Gaussian noise in all N directions, on scores clipped to an l2 norm of ``clip``."""

    @model_validator(mode="after")
    def _consistent(self) -> StaleFeatureSharingParameters:
        check_isotropic(self.privacy)
        return self


class StaleFeatureSharing(SplitProtocol):
    """ADMM sharing in a star whose parties and centre wake on their own; see the module's docstring."""

    Parameters = StaleFeatureSharingParameters
    parameters: StaleFeatureSharingParameters
    protects = PARTY
    asks_for_budget = True
    decides = True
    observer = "the centre"
    model_released = False

    def prepare(self) -> None:
        """Columns and noise."""
        super().prepare()
        self.scores = ClippedScores(self.parameters.privacy)
        self.step_noise = ScoreNoise(self.scores, len(self.columns))

    def layout(self) -> Layout:
        """Parties: x_m, its factor, and scores with the number that they answer; centre: z, y, its step, its targets.

        Every message has N numbers, and the number of a step of the centre.
        """
        task, graph, agents = self.problem.task, self.problem.graph, len(self.columns)
        rows = len(task.train.labels)
        return Layout(
            agent={
                "model": [len(held) for held in self.columns],
                "sent": widths(agents, centre=0, party=rows + 1),
                "z": widths(agents, centre=rows, party=0),
                "y": widths(agents, centre=rows, party=0),
                "total": widths(agents, centre=rows, party=0),
                "step": widths(agents, centre=1, party=0),
                "factor": [len(held) ** 2 for held in self.columns],
            },
            edge={"targets": np.where(graph.tails == CENTRE, rows + 1, 0)},
            messages={
                "scores": MessageKind(widths(agents, centre=0, party=rows + 1)),
                "target": MessageKind(widths(agents, centre=rows + 1, party=0), addressed=True),
            },
            roles=roles(agents),
        )

    def start(self, me: Any) -> None:
        """Everything is zero; a party factorises its own quadratic, once."""
        if me.role == PARTY:
            ratio = self.parameters.ridge / (self.parameters.rho * (1 + self.parameters.damping))
            me.factor = factorised(me, ratio, self.parameters.privacy).ravel()

    def constants(self) -> Constants:
        """The norm that scores are clipped to, and how far behind the centre they may be."""
        staleness = self.parameters.staleness
        limit = np.inf if staleness == "unbounded" else float(staleness)
        return Constants(run={"clip": self.scores.bound, "limit": limit})

    @staticmethod
    def step(me: Any) -> bool:
        """A step of the centre or of a party, or its last message again; true if a party's budget is spent."""
        if me.agent == CENTRE:
            if me.step[0] - oldest(me) < me.limit:
                aim(me)
            else:
                post_processed(me)
            me.message_target = me.targets
            return False
        target = me.heard_target[0]
        if target[-1] > me.sent[-1]:
            if not affords(me):
                return True
            answer(me, target)
        else:
            post_processed(me)
        me.message_scores = me.sent
        return False

    def invariants(self) -> Declared:
        """y is the slope of the loss at z from the centre's first step on, however old its scores are."""
        stepped = lambda at: bool(at.state.agent["step"][CENTRE][0] > 0.0)  # noqa: E731
        return (slopes_are_duals(self.problem.task, self.parameters.rho, stepped),)

    def conserved(self, state: State) -> Mapping[str, float]:
        """Largest coordinates, in absolute value, of what the centre holds against what it should hold.

        ``slopes``
            y - l'(z) after the centre's first step: 0 up to 1e-8, whatever is late or lost.
        ``scores``
            The sum of all parties' last scores against the one that the centre stepped with: apart by what parties
            have changed since, and by what is late or lost; 0 once nothing changes any more.
        """
        task, z, y = self.problem.task, state.agent["z"][CENTRE], state.agent["y"][CENTRE]
        stepped = state.agent["step"][CENTRE][0] > 0.0
        slope = np.abs(y - task.loss.slope(z, task.train.labels)).max(initial=0.0) if stepped else 0.0
        scores = np.sum([state.agent["sent"][party][:-1] for party in range(1, len(self.columns))], axis=0)
        return {
            "slopes": float(slope),
            "scores": float(np.abs(scores - state.agent["total"][CENTRE]).max(initial=0.0)),
        }


def oldest(me: Any) -> float:
    """Return the number of the step that the oldest scores answer."""
    number = me.step[0]
    for rank in range(me.degree):
        number = min(number, heard_of(me, rank)[-1])
    return number


def aim(me: Any) -> None:
    """Compute (7) and (8) at the centre, and the next target t_m of each party."""
    me.total = heard_sum(me)[:-1]
    dual_step(me, me.total)
    me.step[0] += 1.0
    move = (me.total - me.z + me.y / me.rho) / (1 + me.damping)
    for rank in range(me.degree):
        me.targets[rank, :-1] = heard_of(me, rank)[:-1] - move
        me.targets[rank, -1] = me.step[0]


def answer(me: Any, target: Array) -> None:
    """Compute a party's x_m and s_m for a target, whose last number is that of the centre's step."""
    me.model = fitted(me, target[:-1])
    me.sent[:-1] = noisy_scores(me, scores_of(me, me.model))
    me.sent[-1] = target[-1]
