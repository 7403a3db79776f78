"""A private warm start: noisy local models, propagated over the graph (Bellet et al. 2018, appendix C).

Every agent's local model is released once (`hushnet.protocols.algorithms.output_perturbation`). Model propagation (16)
makes of them, without further cost, a start for the general algorithm; its fixed point is computed here, centrally, in
place of the messages that would approach it before time 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ...agents.errors import FieldError, InputError
from ...agents.losses import Loss
from ...agents.objectives.propagation_objective import Propagation
from ...agents.parameters import Parameters, Positive
from ..base import Problem
from ..privacy.accounting import Charge, evaluate
from ..privacy.budget import Budget, Privacy, Target
from ..privacy.composition import root
from ..privacy.mechanisms import NoiseName, Release, noise_of, noises
from ..privacy.plans import plan
from .output_perturbation import OutputNoise


class PrivatePropagation(Parameters):
    """A private warm start: local models are released once with noise, then propagated over the graph."""

    kind: Literal["private_propagation"]
    epsilon: Positive
    """What the release of an agent's local model costs."""
    mechanism: NoiseName = "gamma"
    """Kind of noise: spherical with a gamma-distributed norm, Laplace, or Gaussian."""
    delta: float = Field(default=0.0, ge=0, lt=1)
    """The delta that Gaussian noise needs beside epsilon."""
    lipschitz: Positive | None = None
    """Claimed bound on the norm of an example's gradient; by default the bound that public bounds on rows prove."""
    regularisation: Positive | None = None
    """lambda of the local models that are released; by default the task's. One example moves a model by at most the
    bound on its gradient over m lambda, so that a larger one takes less noise."""

    @model_validator(mode="after")
    def _delta_fits(self) -> PrivatePropagation:
        if (self.delta > 0) == noise_of(self.mechanism).pure:
            impure = ", ".join(name for name in noises() if not noise_of(name).pure)
            raise FieldError(
                f"{impure.capitalize()} noise needs a delta above 0, and no other kind of noise has one", "delta"
            )
        return self


def _left(asked: PrivatePropagation, amount: Budget | Target) -> tuple[float, float]:
    """Epsilon and delta that a start leaves of an amount by basic composition."""
    epsilon = amount.epsilon if isinstance(amount, Budget) else amount.verified
    delta = 1 - (1 - amount.delta) / (1 - asked.delta) if asked.delta else amount.delta
    return epsilon - asked.epsilon, delta


def check_start(asked: PrivatePropagation, privacy: Privacy) -> None:
    """Refuse a start that does not fit the amount that it is a part of.

    Raises `InputError` if it leaves nothing, or its noise or claim has no place there.
    """
    if privacy.target is not None and asked.lipschitz is not None:
        raise InputError("a claim cannot reach a verified target; leave it out", field=("start", "lipschitz"))
    if privacy.claimed_by == "gaussian" and not noise_of(asked.mechanism).gaussian:
        what, instead = "a budget by: gaussian", "by: advanced_composition"
        if privacy.budget is None:
            what, instead = "the claim of a Gaussian multiplier", "a budget or a target"
        raise InputError(
            f"{what} has no place for {asked.mechanism} noise; use mechanism: gaussian here, or {instead} there",
            field=("start", "mechanism"),
        )
    amount = privacy.budget or privacy.target
    if amount is None:
        return
    epsilon, delta = _left(asked, amount)
    if epsilon <= 0 or delta < 0:
        raise InputError(
            f"the start alone spends ({asked.epsilon:g}, {asked.delta:g}), which leaves nothing of the whole amount of "
            f"({epsilon + asked.epsilon:g}, {amount.delta:g})",
            field=("start", "epsilon"),
        )


def check_bound(asked: PrivatePropagation, *, bounded: bool, task: str) -> None:
    """Raise an `InputError` if nothing bounds an example's gradient."""
    if asked.lipschitz is None and not bounded:
        raise InputError(
            f"a private warm start needs a bound on the rows, and the task {task!r} has none; "
            "set radius, or claim a lipschitz",
            field=("start", "lipschitz"),
        )


def check_minimiser(asked: PrivatePropagation, *, regularised: bool, loss: Loss) -> None:
    """Raise an `InputError` if nothing bounds how far one example can move a local model."""
    if not regularised and asked.regularisation is None:
        raise InputError(
            "a private warm start needs a regularised loss: without regularisation one example may move a local model "
            "without bound",
            field=("start",),
        )
    if asked.lipschitz is None and not math.isfinite(loss.lipschitz):
        raise InputError(
            f"a private warm start needs a loss with bounded slope, and {loss.name!r} has none; claim a lipschitz",
            field=("start", "lipschitz"),
        )


class WarmStart:
    """Propagated noisy local models, for a protocol to start from, with its (n,) mu c_i.

    Rows are clipped to the radius, a public bound on their l2 norm; it may be infinite if a bound is claimed. Raises
    `InputError` if nothing bounds an example's gradient.
    """

    def __init__(self, asked: PrivatePropagation, problem: Problem, mu_c: NDArray[np.float64], radius: float) -> None:
        self.asked, self.problem, self.mu_c = asked, problem, mu_c
        self._releases: list[Release] = []
        check_bound(asked, bounded=math.isfinite(radius), task=problem.task.name)
        task = problem.task
        if asked.regularisation is not None:
            task = replace(task, regularisation=np.full(task.agents, asked.regularisation))
        regularised = bool(np.all(task.regularisation[task.train.counts > 0] > 0))
        check_minimiser(asked, regularised=regularised, loss=task.loss)
        bound = {"sensitivity": "clip", "clip": radius}
        if asked.lipschitz is not None:
            bound = {"sensitivity": "claimed", "lipschitz": asked.lipschitz}
        by = "gaussian" if noise_of(asked.mechanism).gaussian else "basic_composition"
        budget = {"epsilon": asked.epsilon, "delta": asked.delta, "by": by}
        privacy = Privacy.model_validate({"mechanism": asked.mechanism, "budget": budget, "updates": 1, **bound})
        self.noise = OutputNoise(privacy, task)

    @cached_property
    def models(self) -> NDArray[np.float64]:
        """(n, p) what model propagation makes of the noisy local models: its fixed point, equation (16)."""
        return Propagation(self.problem.graph, self.noise.models(self.problem), self.mu_c).minimise()[0]

    def share(self, me: Any) -> tuple[NDArray[np.float64], Release]:
        """An agent's (p,) start, and what its own share in the start of all costs.

        All shares are charged with the first start: the models of agents that join later are part of it, too.
        """
        if not self._releases:
            degrees = self.problem.graph.degrees.tolist()
            self._releases = [self.noise.release(agent, me.now, degree) for agent, degree in enumerate(degrees)]
            for release in self._releases:
                me.reserve(release)
                me.disclose(release)
        return self.models[me.agent], self._releases[me.agent]

    def left_of(self, privacy: Privacy | None, weights: NDArray[np.float64] | None) -> Privacy | None:
        """Return the privacy of later releases, such that they and the start together spend the given amount.

        By three-way composition (``by: advanced_composition``) it is exact for the agent whose releases compose worst,
        otherwise by basic composition. A budget needs (T,) or (n, T) `weights`: how later releases share it. Raises
        `InputError` if the start leaves nothing, or the two cannot be counted together.
        """
        if privacy is None or privacy.noiseless:
            return privacy
        check_start(self.asked, privacy)
        if privacy.multiplier is not None:
            return privacy
        amount = privacy.budget or privacy.target
        assert amount is not None
        name = "epsilon" if privacy.budget is not None else "verified"
        epsilon, delta = _left(self.asked, amount)

        def reduced(value: float) -> Privacy:
            rest = amount.model_copy(update={name: value, "delta": delta})
            return privacy.model_copy(update={"budget" if name == "epsilon" else "target": rest})

        if privacy.budget is None or privacy.budget.by != "advanced_composition":
            return reduced(epsilon)
        whole, rows = privacy.budget, np.unique(np.atleast_2d(np.ones(1) if weights is None else weights), axis=0)
        return reduced(min(self._room(whole, reduced, row) for row in rows))

    def _room(self, whole: Budget, reduced: Callable[[float], Privacy], row: NDArray[np.float64]) -> float:
        """The epsilon of later releases at which they and the start spend the whole budget."""
        dimension = self.problem.task.dimension
        start = plan(self.noise.privacy, np.ones(1), dimension=dimension)

        def spent(epsilon: float) -> float:
            later = plan(reduced(epsilon), row, dimension=dimension)
            charges = Counter(
                Charge(mechanism, sigma, 1.0, sigma, eps, delta)
                for mechanism, each in ((self.asked.mechanism, start), (reduced(epsilon).mechanism, later))
                for sigma, eps, delta in zip(
                    each.multipliers.tolist(), each.epsilons.tolist(), each.deltas.tolist(), strict=True
                )
            )
            return evaluate("claimed", charges, whole.delta, whole.by)

        return root(lambda epsilon: spent(epsilon) - whole.epsilon, 1e-6 * whole.epsilon, whole.epsilon)
