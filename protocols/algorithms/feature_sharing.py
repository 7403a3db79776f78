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
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from ...agents.blocks import State
from ...agents.errors import FieldError, InputError
from ...agents.losses import Loss
from ...agents.objectives.objectives import Objective
from ...agents.objectives.pooled_objective import PooledObjective
from ...agents.optimisation.splitting import minimise_rows
from ...agents.parameters import Positive, Size
from ...agents.tasks.base import Task
from ..base import Layout, MessageKind, Out, Protocol, ProtocolParameters, Traits, View
from ..invariants import Declared, Instant, Invariant
from ..noise import active
from ..privacy.budget import Privacy
from ..privacy.mechanisms import draw_noise
from ..surroundings import Surroundings, check_split
from .feature_noise import ClippedScores, RangeNoise, check_isotropic, range_root
from .split_features import CENTRE, PARTY, assembled, columns_of, roles, widths

Array = NDArray[np.float64]
Factor = tuple[Array, bool]

RESIDUAL = 1e-8
"""Largest |y - l'(z)| of a row after an epoch, beside the rounding of large numbers."""


class SharingParameters(ProtocolParameters):
    """What all forms of ADMM sharing have in common."""

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


class FeatureSharing(Protocol):
    """ADMM sharing in a star; see the module's docstring.

    Examples
    --------
    >>> from hushnet.simulator.contract.bench import example, relative_gap
    >>> relative_gap(example(FeatureSharing, split=True, rho=1.0)) < 1e-4
    True
    """

    Parameters = FeatureSharingParameters
    parameters: FeatureSharingParameters
    traits = Traits(trigger="round", inbox="per_round")
    protects = PARTY
    learns_from = "columns"
    observer = "the centre"
    model_released = False

    @classmethod
    def check_scenario(cls, parameters: FeatureSharingParameters, surroundings: Surroundings) -> None:
        """See `Protocol.check_scenario`."""
        check_split(surroundings)

    def prepare(self) -> None:
        """Columns, who takes part, and the rounds of an epoch."""
        self.columns = columns_of(self.problem)
        self.parties = min(len(self.columns) - 1, self.parameters.parties or len(self.columns))
        self.cycle = 2 if self.parameters.order == "jacobi" else 2 * self.parties
        self.scores = ClippedScores(self.parameters.privacy)
        self.factors: dict[int, Factor | None] = {}
        self.roots: dict[int, Array] = {}

    @property
    def epoch(self) -> float:
        """See `Protocol.epoch`: parties' and centre's rounds of one iteration, which uses all rows."""
        return float(self.cycle)

    def layout(self) -> Layout:
        """Parties: x_m and what they sent; centre: z and y. A party sends N numbers, the centre twice as many."""
        task, agents = self.problem.task, len(self.columns)
        rows = len(task.train.labels)
        return Layout(
            agent={
                "model": [len(held) for held in self.columns],
                "sent": widths(agents, centre=0, party=rows),
                "z": widths(agents, centre=rows, party=0),
                "y": widths(agents, centre=rows, party=0),
            },
            messages={
                "scores": MessageKind(widths(agents, centre=0, party=rows)),
                "gap_and_dual": MessageKind(widths(agents, centre=2 * rows, party=0), vectors=2),
            },
            roles=roles(agents),
        )

    def start(self, view: View, out: Out) -> None:
        """Everything is zero; a party factorises its own quadratic, once."""
        if view.agent > self.parties:
            out.fall_silent()
        elif view.role == PARTY:
            ratio = self.parameters.ridge / self.parameters.rho
            self.factors[view.agent] = factorised(view, ratio, self.parameters.privacy)
            if self.parameters.noise is not None:
                self.roots[view.agent] = range_root(view.data.features)

    def wake(self, view: View, out: Out) -> None:
        """A party's step, the centre's, or nothing, as the round says."""
        phase = view.updates % self.cycle
        if view.role == "centre":
            if phase % 2 == 1:
                self._centre(view, out, last=phase == self.cycle - 1)
        elif phase % 2 == 0 and (self.parameters.order == "jacobi" or view.agent == 1 + phase // 2):
            self._party(view, out)

    def _party(self, view: View, out: Out) -> None:
        """Equation (6): (D'D + (lambda/rho) I) x = D'(own scores - gap - y / rho), and (16) or clipping and noise."""
        given, columns, state = self.parameters, view.data.features, view.state
        release = self.scores.release(view)
        if given.noise is not None:
            release = given.noise.release(view, parties=self.parties, rho=given.rho, ridge=given.ridge)
        if not out.reserve(release):
            out.fall_silent()
            return
        gap, dual = np.split(view.received("gap_and_dual")[0], 2)
        target = state["sent"] - gap - dual / given.rho
        model = fitted(self.factors[view.agent], columns, target)
        if given.noise is not None:
            root = self.roots[view.agent]
            model += root @ draw_noise("gaussian", root.shape[1], given.noise.scale, rng=view.stream("noise"))
            sent = columns @ model
        else:
            sent = release.perturb(self.scores.clipped(columns @ model), rng=view.stream("noise"))
        state["model"][:], state["sent"][:] = model, sent
        out.send("scores", sent, release, to=CENTRE)

    def _centre(self, view: View, out: Out, *, last: bool) -> None:
        """Equations (7) and (8) once all parties have stepped, and the message for the next step."""
        state, total = view.state, np.sum(view.received("scores"), axis=0)
        if last:
            centre_step(self.problem.task.loss, view, total, self.parameters.rho)
        out.send(
            "gap_and_dual",
            np.concatenate([total - state["z"], state["y"]]),
            out.plain("z and y depend on the labels, which nothing protects"),
        )

    def models(self, state: State) -> Array:
        """The parties' parts put together, in the centre's row."""
        return assembled(state, self.columns, self.problem.task.dimension)

    @property
    def privacy(self) -> Privacy | RangeNoise | None:
        """The noise on what parties send, in whichever form."""
        return self.parameters.noise or self.parameters.privacy

    def objective(self) -> Objective:
        """F at the model that the parties hold together."""
        return PooledObjective.sum_of_rows(self.problem.task, self.parameters.ridge, agent=CENTRE)

    def invariants(self) -> Declared:
        """(7) and (8) leave y as the slope of the loss at z, from the first epoch on."""
        return (slopes_are_duals(self.problem.task, self.parameters.rho, lambda at: at.rounds[CENTRE] >= self.cycle),)


def factorised(view: View, ratio: float, privacy: Privacy | None) -> Factor | None:
    """The factor of D'D + ratio I, for `fitted`; a party's columns D are (N, d).

    Returns
    -------
    (array, bool) or None
        None if the squares of the columns overflow and noise protects them: what the party adds to the scores then
        counts as zero, because ending the run would tell what the columns are.

    Raises
    ------
    InputError
        If they overflow without such noise.
    """
    from scipy.linalg import cho_factor

    columns = view.data.features
    gram = columns.T @ columns
    gram[np.diag_indices(len(gram))] += ratio
    try:
        return cho_factor(gram, lower=True)
    except (ValueError, np.linalg.LinAlgError):
        if active(privacy):
            return None
        raise InputError(
            f"agent {view.agent} has columns with values up to {np.abs(columns).max():.3g}, whose squares are too "
            "large to compute with; scale the features",
            field=("task",),
        ) from None


def fitted(factor: Factor | None, columns: Array, target: Array) -> Array:
    """(d,) argmin |D x - target|^2 + ratio |x|^2, which is (6) for ratio = lambda / rho; zeros without a factor."""
    from scipy.linalg import cho_solve

    if factor is None:
        return np.zeros(columns.shape[1])
    return cho_solve(factor, columns.T @ target, check_finite=False)


def centre_step(loss: Loss, view: View, total: Array, rho: float) -> None:
    """Equations (7) and (8), in the blocks z and y of the centre.

    Parameters
    ----------
    loss : Loss
    view : View
        The centre's.
    total : (N,) float64
        The sum of the parties' scores.
    rho : float
        > 0.
    """
    state, labels, linear = view.state, view.data.labels, view.state["y"] + rho * total
    state["z"][:] = minimise_rows(loss, labels, curvature=rho, linear=linear)
    state["y"] += rho * (total - state["z"])
    residual = slope_residual(loss, state["z"], state["y"], labels, linear)
    assert not (residual > RESIDUAL).any(), "y is the slope of the loss at z after every epoch"


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
