"""ADMM sharing over features that are split between parties (Hu, Liu, Kong, Niu 2019).

Party m holds columns D_m of the same N rows and its part x_m of the model; the centre holds labels, z and y:

    min F(x) = sum_k l(sum_m D_m x_m)_k + (lambda / 2) |x|^2.

=================  ==================================================================================
equation           here
=================  ==================================================================================
(6), party         x_m = argmin (lambda/2) |x|^2 + y'D_m x + (rho/2) |D_m x + (sum_k D_k x_k - z) - D_m x_m(old)|^2
(7), centre        z = argmin l(z) - y'z + (rho/2) |sum_m D_m x_m - z|^2: N scalar problems
(8), centre        y = y + rho (sum_m D_m x_m - z), which then equals l'(z)
algorithm 1        parties send D_m x_m, the centre sends sum_m D_m x_m - z and y
(16)               ``noise``: x_m + xi, xi normal with covariance scale^2 (D_m' D_m)^-1
lemma 1, (17)      what a release claims; see `hushnet.protocols.algorithms.feature_noise`
=================  ==================================================================================

The parties step in odd rounds and the centre in even ones, so an epoch is two rounds, each with the newest of the other
side. ``order: gauss_seidel`` takes the parties one after the other, as Hong, Luo and Razaviyayn (2016) do: 2 rounds a
party, in which the centre only passes the new sum on, until the last party has stepped.

Where we depart: nowhere in the printed version. The privacy statement fails (see
`hushnet.protocols.algorithms.feature_noise`), so ``noise`` keeps it with a verified epsilon of infinity, and
``privacy`` is the version that holds: messages clipped to a norm, with noise in every direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator
from typing_extensions import override

from ...agents.errors import FieldError, InputError
from ...agents.losses import Loss
from ...agents.parameters import Positive, Size
from ...agents.tasks.task import Task
from ..base import Layout, MessageKind, ProtocolParameters, Traits
from ..invariants import Declared, Instant, Invariant
from ..noise import active
from ..privacy.budget import Privacy
from ..steps import (
    Constants,
    Every,
    add_scaled,
    affords,
    clipped,
    heard_sum,
    perturbed,
    rows_minimised,
    scores_of,
    solved_by,
    sum_of_rows,
)
from .feature_noise import ClippedScores, RangeNoise, ScoreNoise, check_isotropic, range_root
from .split_features import CENTRE, PARTY, SplitProtocol, roles, widths

Array = NDArray[np.float64]

RESIDUAL = 1e-8
"""Largest |y - l'(z)| of a row after an epoch, beside the rounding of large numbers."""


class SharingParameters(ProtocolParameters):
    """Parameters shared by all forms of ADMM sharing."""

    rho: Positive = 0.3
    """Penalty of the augmented Lagrangian."""
    ridge: Positive = 1.0
    """lambda of the regulariser (lambda/2) |x|^2."""


class FeatureSharingParameters(SharingParameters):
    """ADMM sharing over vertically split features, plain or private (Hu et al. 2019)."""

    kind: Literal["feature_sharing"]
    order: Literal["jacobi", "gauss_seidel"] = "jacobi"
    """Parties step all at once, or one after the other."""
    parties: Size | None = None
    """Only so many parties, in their order, take part; 1 learns from the first party's columns alone."""
    noise: RangeNoise | None = None
    """Noise (16) as printed, within the range of a party's columns; its verified epsilon is infinite."""
    privacy: Privacy | None = None
    """Gaussian noise in all N directions, on scores clipped to an l2 norm of ``clip``."""

    @model_validator(mode="after")
    def _consistent(self) -> FeatureSharingParameters:
        check_isotropic(self.privacy)
        if self.noise is not None and active(self.privacy):
            raise FieldError("give one of noise (as printed) and privacy (isotropic), not both", "noise")
        return self


class FeatureSharing(SplitProtocol):
    """ADMM sharing in a star; see the module's docstring."""

    Parameters = FeatureSharingParameters
    parameters: FeatureSharingParameters
    traits = Traits(trigger="round", inbox="per_round")
    protects = PARTY
    asks_for_budget = True
    observer = "the centre"
    model_released = False

    def prepare(self) -> None:
        """Columns, who takes part, and the rounds of an epoch."""
        super().prepare()
        self.parties = min(len(self.columns) - 1, self.parameters.parties or len(self.columns))
        self.cycle = 2 if self.parameters.order == "jacobi" else 2 * self.parties
        self.scores = ClippedScores(self.parameters.privacy)
        given = self.parameters
        self.step_noise = ScoreNoise(
            self.scores, len(self.columns), given.noise, parties=self.parties, rho=given.rho, ridge=given.ridge
        )

    @property
    @override
    def epoch(self) -> float:
        """Rounds of an epoch: the parties' and the centre's of one iteration, which uses all rows."""
        return float(self.cycle)

    def layout(self) -> Layout:
        """Parties: x_m, what they sent, and what they compute with; centre: z and y.

        A party sends N numbers, the centre twice as many.
        """
        task, agents = self.problem.task, len(self.columns)
        rows, squares = len(task.train.labels), [len(held) ** 2 for held in self.columns]
        return Layout(
            agent={
                "model": [len(held) for held in self.columns],
                "sent": widths(agents, centre=0, party=rows),
                "z": widths(agents, centre=rows, party=0),
                "y": widths(agents, centre=rows, party=0),
                "factor": squares,
                "root": squares if self.parameters.noise is not None else 0,
            },
            messages={
                "scores": MessageKind(widths(agents, centre=0, party=rows)),
                "gap_and_dual": MessageKind(widths(agents, centre=2 * rows, party=0), vectors=2),
            },
            roles=roles(agents),
        )

    def start(self, me: Any) -> None:
        """Everything is zero; a party factorises its own quadratic, once."""
        if me.agent > self.parties:
            me.fall_silent()
        elif me.role == PARTY:
            ratio = self.parameters.ridge / self.parameters.rho
            me.factor = factorised(me, ratio, self.parameters.privacy).ravel()
            if self.parameters.noise is not None:
                # Its columns one after the other; those beyond the rank stay zero.
                root = range_root(me.data.features).T.ravel()
                me.root[: len(root)] = root

    def constants(self) -> Constants:
        """Constants of a step: rounds of an epoch, norm that scores are clipped to, and 1 if noise is as printed."""
        printed = self.parameters.noise is not None
        return Constants(run={"cycle": self.cycle, "clip": self.scores.bound, "printed": float(printed)})

    def sends(self) -> dict[str, Every]:
        """All parties in odd rounds, or one after the other; the centre in even ones."""
        scores = Every(2)
        if self.parameters.order != "jacobi":
            scores = Every(self.cycle, 2 * np.maximum(np.arange(len(self.columns)) - 1, 0) % self.cycle)
        return {"scores": scores, "gap_and_dual": Every(2, 1)}

    @staticmethod
    def step(me: Any) -> bool:
        """A party's step, the centre's, or nothing, as the round says; true if a party's budget is spent."""
        cycle = int(me.cycle)
        phase = me.updates % cycle
        if me.agent == CENTRE:
            if phase % 2 == 1:
                collect(me, phase == cycle - 1)
            return False
        turn = me.order == "jacobi" or me.agent == 1 + phase // 2
        return phase % 2 == 0 and turn and not answer(me)

    @property
    def privacy(self) -> Privacy | RangeNoise | None:
        """The noise on what parties send, in whichever form."""
        return self.parameters.noise or self.parameters.privacy

    def invariants(self) -> Declared:
        """(7) and (8) leave y as the slope of the loss at z, from the first epoch on."""
        return (slopes_are_duals(self.problem.task, self.parameters.rho, lambda at: at.rounds[CENTRE] >= self.cycle),)


def answer(me: Any) -> bool:
    """equation (6) of a party, and (16) or clipping and noise; false if its budget is spent."""
    if not affords(me):
        return False
    rows, heard = len(me.sent), me.heard_gap_and_dual[0]
    me.model = fitted(me, me.sent - heard[:rows] - heard[rows:] / me.rho)
    size = len(me.model)
    noisy = noisy_scores(me, np.zeros(size) if me.printed > 0.0 else scores_of(me, me.model))
    if me.printed > 0.0:
        for rank in range(size):
            add_scaled(me.model, noisy[rank], me.root[rank * size : (rank + 1) * size])
        noisy = scores_of(me, me.model)
    me.sent = noisy
    me.message_scores = me.sent
    return True


def noisy_scores(me: Any, scores: Array) -> Array:
    """clipped scores with noise in all directions; scores as they are without it."""
    return perturbed(me, clipped(scores, me.clip))


def fitted(me: Any, target: Array) -> Array:
    """(d,) argmin |D x - target|^2 + ratio |x|^2, which is (6) for ratio = lambda / rho.

    Zeros without a factor (`factorised`).
    """
    if len(me.factor) == 0 or me.factor[0] == 0.0:
        return np.zeros(len(me.model))
    return solved_by(me.factor, sum_of_rows(me, target))


def collect(me: Any, last: bool) -> None:
    """(7) and (8) at the centre once all parties have stepped, and the message for the next step."""
    total = heard_sum(me)
    if last:
        dual_step(me, total)
    me.message_gap_and_dual = np.concatenate((total - me.z, me.y))


def dual_step(me: Any, total: Array) -> None:
    """equations (7) and (8) at the centre, for the sum of the parties' scores."""
    me.z = rows_minimised(me, me.rho, me.y + me.rho * total)
    me.y += me.rho * (total - me.z)


def factorised(me: Any, ratio: float, privacy: Privacy | None) -> Array:
    """(d, d) the lower factor of D'D + ratio I, for `fitted`; a party's columns D are (N, d).

    Raises `InputError` if their squares overflow; where noise protects them the factor is zeros then: what the party
    adds to the scores counts as zero, because ending the run would tell what the columns are.
    """
    from scipy.linalg import cho_factor

    columns = me.data.features
    gram = columns.T @ columns
    gram[np.diag_indices(len(gram))] += ratio
    try:
        return np.tril(cho_factor(gram, lower=True)[0])
    except (ValueError, np.linalg.LinAlgError):
        if active(privacy):
            return np.zeros_like(gram)
        raise InputError(
            f"agent {me.agent} has columns with values up to {np.abs(columns).max():.3g}, whose squares are too "
            "large to compute with; scale the features",
            field=("task",),
        ) from None


def slope_residual(loss: Loss, z: Array, y: Array, labels: Array, linear: Array) -> Array:
    """(N,) |y - l'(z)|, in relation to the rounding of the numbers ``linear`` that z was sought with."""
    return np.abs(y - loss.slope(z, labels)) / (1 + 1e-6 * np.abs(linear))


def slopes_are_duals(task: Task, rho: float, stepped: Callable[[Instant], bool]) -> Invariant:
    """The invariant that y = l'(z) at the centre, once it has stepped."""

    def distance(instant: Instant) -> float:
        z, y = (instant.state.agent[name][CENTRE] for name in ("z", "y"))
        residual = slope_residual(task.loss, z, y, task.train.labels, y + rho * z)
        return float(residual.max(initial=0.0)) if stepped(instant) else 0.0

    # Twice as much as a step tolerates, because ``linear`` is found again from its result.
    source = "Hu et al. 2019, (7) and (8): y = l'(z) after every epoch"
    return Invariant("slopes", distance, lambda _: 1.0, tolerance=2 * RESIDUAL, source=source)
