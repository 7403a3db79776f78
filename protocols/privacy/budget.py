"""Privacy parameters of a scenario: the budget of an agent, and the noise on its releases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from .accounting import Composition
from .mechanisms import Noise, NoiseName, Norm, noise_of

Allocation = Literal["uniform", "proposition2", "late"]


LARGEST, MOST_EPSILON = 1e12, 1e6
Amount = Annotated[float, Field(gt=0, le=MOST_EPSILON)]
"""An epsilon."""
Bound = Annotated[float, Field(gt=0, le=LARGEST)]
"""A bound on a norm or a slope."""
Updates = Annotated[
    int,
    Field(ge=1, le=10**7),
    BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value),
]
"""How many releases an agent plans; each has its share of the amount."""


class RuleError(ValueError):
    """A rule about several fields, broken; ``field`` is the path of the one to change."""

    def __init__(self, message: str, *field: str) -> None:
        super().__init__(message)
        self.field = field


class Terms(BaseModel, frozen=True):
    """Frozen, strict parameters: an unknown field or a value of another type is an error."""

    # Built when first read with, and its docstrings read when somebody asks, as parameters of agents are.
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Budget(Terms, frozen=True):
    """Budget that an agent may spend, counted by the claimed parameters of its releases."""

    epsilon: Amount
    """Total epsilon, > 0."""
    delta: float = Field(ge=0, lt=1)
    """Total delta, in [0, 1)."""
    by: Composition = "advanced_composition"
    """How claimed parameters are composed; at delta 0, advanced composition is basic composition. ``gaussian`` (sums of
    mu^2, of Gaussian noise alone), ``zcdp`` and ``renyi`` (at one order, fixed by the budget) are filters: what was
    granted keeps its epsilon where noise is chosen by what was released before."""


class Target(Terms, frozen=True):
    """A verified epsilon that the noise is calibrated to."""

    verified: Amount
    """Epsilon that the planned releases reach together, > 0."""
    delta: float = Field(gt=0, lt=1)
    """Delta at which they reach it, in (0, 1)."""


class Total(Terms, frozen=True):
    """An epsilon that all planned releases of an agent come to, from which the amount of noise follows."""

    claimed: Amount | None = None
    """As the paper or the mechanism's parameters claim it; exactly one of claimed and verified is given."""
    verified: Amount | None = None
    """As it can be proved."""
    delta: float | None = Field(default=None, gt=0, lt=1)
    """Delta at which it is reached, in (0, 1); required with verified; a claim has by default its own."""

    @model_validator(mode="after")
    def _one_kind(self) -> Total:
        if (self.claimed is None) == (self.verified is None):
            raise RuleError("give exactly one of claimed and verified")
        if self.verified is not None and self.delta is None:
            raise RuleError("delta is required with verified, which is read at a delta")
        return self

    @property
    def words(self) -> str:
        """Such as ``a verified epsilon of 1 at delta 1e-05``."""
        kind, epsilon = ("claimed", self.claimed) if self.verified is None else ("verified", self.verified)
        at = "" if self.delta is None else f" at delta {self.delta:g}"
        return f"a {kind} epsilon of {epsilon:.6g}{at}"


class Privacy(Terms, frozen=True):
    """Noise on what an agent releases: its mechanism, its amount and the sensitivity that it is scaled for."""

    mechanism: NoiseName
    """Kind of noise: laplace for sensitivities in the L1 norm; gaussian, or gamma (spherical, of a pure epsilon), for
    the L2 norm; or one that a plug-in registers."""
    budget: Budget | None = None
    """Claimed budget that the noise is calibrated to; exactly one of budget, target and multiplier is given."""
    target: Target | None = None
    """Verified epsilon that the noise is calibrated to."""
    multiplier: float | None = Field(default=None, ge=0, le=LARGEST)
    """Noise scale over sensitivity, >= 0; at 0 the protocol runs as if privacy were not set."""
    updates: Updates | None = None
    """Number of releases that an agent makes before it falls silent; required with budget and target."""
    sensitivity: Literal["claimed", "clip", "data_check"] = "clip"
    """Where the sensitivity comes from: the paper's constant, clipping of each example, or checked features."""
    clip: Bound | None = None
    """Bound on the norm of each example's contribution, > 0; required with sensitivity clip."""
    lipschitz: Bound = 1.0
    """The Lipschitz constant L0 that the paper claims, > 0; only with sensitivity claimed."""
    radius: Bound | None = None
    """Declared bound on the norm of each feature row, > 0; required with sensitivity data_check."""
    allocation: Allocation = "uniform"
    """How epsilon is spread over the releases: evenly, as Proposition 2 prints it, or in the corrected order."""
    oracle_schedule: bool = False
    """Use the true global indices of an agent's wake-ups instead of the expected ones; for reproduction only."""
    contraction: float | None = Field(default=None, gt=0, le=1)
    """C of proposition 2, in (0, 1]: how much of the distance to the optimum one update of anybody leaves; by default
    proposition 1's 1 - sigma / (n L_max), which is close to 1."""
    strict: bool = False
    """Whether inputs computed from private data but treated as public make every verified epsilon infinite."""
    delta: float | None = Field(default=None, ge=0, lt=1)
    """Delta at which epsilons are reported, in [0, 1); by default that of budget or target, else 1e-5."""

    @model_validator(mode="after")
    def _amount_is_given_once(self) -> Privacy:
        if sum(given is not None for given in (self.budget, self.target, self.multiplier)) != 1:
            raise RuleError("privacy needs exactly one of budget, target and multiplier")
        if self.multiplier is None and self.updates is None:
            raise RuleError("updates is required with budget and target: the amount is spread over so many releases")
        if self.multiplier is not None and self.allocation != "uniform":
            raise RuleError("spreads a budget or a target; with multiplier only uniform is admissible", "allocation")
        if self.oracle_schedule and self.allocation == "uniform":
            raise RuleError("is admissible only with allocation proposition2 or late", "oracle_schedule")
        if self.contraction is not None and self.allocation == "uniform":
            raise RuleError("is admissible only with allocation proposition2 or late", "contraction")
        return self

    @model_validator(mode="after")
    def _sensitivity_is_complete(self) -> Privacy:
        if (self.clip is not None) != (self.sensitivity == "clip"):
            raise RuleError("clip is required with sensitivity: clip and admissible only with it", "clip")
        if (self.radius is not None) != (self.sensitivity == "data_check"):
            raise RuleError("radius is required with sensitivity: data_check and admissible only with it", "radius")
        if self.target is not None and self.sensitivity == "claimed":
            raise RuleError("must be clip or data_check with target, which is a verified epsilon", "sensitivity")
        if self.lipschitz != 1.0 and self.sensitivity != "claimed":
            raise RuleError("lipschitz is admissible only with sensitivity: claimed", "lipschitz")
        return self

    @model_validator(mode="after")
    def _composition_fits_mechanism(self) -> Privacy:
        if self.budget is None:
            return self
        if self.budget.by == "gaussian" and not self.noise.gaussian:
            raise RuleError("budget by: gaussian is admissible only with mechanism: gaussian", "budget", "by")
        if self.budget.by in ("zcdp", "renyi"):
            if not self.noise.gaussian and math.isinf(self.noise.loss(1.0).renyi(2.0)):
                said = "needs a mechanism whose Renyi divergence is known, such as gaussian or laplace"
                raise RuleError(f"{self.budget.by} {said}", "budget", "by")
            if self.budget.delta == 0:
                raise RuleError(f"must be above 0 with by: {self.budget.by}", "budget", "delta")
        if self.budget.delta == 0 and not self.noise.pure:
            raise RuleError(f"{self.mechanism.capitalize()} noise needs a budget with delta > 0", "budget", "delta")
        return self

    def scaled_to(self, total: Total) -> dict[str, Any]:
        """Fields that make the noise follow from a total epsilon; None for those that said its amount before.

        Raises `RuleError` if the claim needs a delta that nobody gives.
        """
        if total.verified is not None:
            return {"budget": None, "multiplier": None, "target": {"verified": total.verified, "delta": total.delta}}
        before = self.budget or self.target
        delta = total.delta if total.delta is not None else before.delta if before else None
        if delta is None:
            raise RuleError("is required: the protocol has neither a budget nor a target that has one", "delta")
        by = {} if self.budget is None else {"by": self.budget.by}
        return {"target": None, "multiplier": None, "budget": {"epsilon": total.claimed, "delta": delta, **by}}

    @property
    def noise(self) -> Noise:
        """The mechanism itself."""
        return noise_of(self.mechanism)

    @property
    def norm(self) -> Norm:
        """Norm in which sensitivities, ``clip`` and ``radius`` are measured: the mechanism's."""
        return self.noise.norm

    @property
    def noiseless(self) -> bool:
        """True if there is no noise, so that a protocol neither clips nor draws."""
        return self.multiplier == 0

    @property
    def reported_delta(self) -> float:
        """Delta at which epsilons are reported."""
        if self.delta is not None:
            return self.delta
        amount = self.budget or self.target
        return 1e-5 if amount is None else amount.delta

    @property
    def claimed_by(self) -> Composition:
        """Composition of the claimed epsilon: the budget's, verified for a target, and else the noise's usual one."""
        if self.budget is not None:
            return self.budget.by
        if self.target is not None:
            return "verified"
        return "gaussian" if self.noise.gaussian else "advanced_composition"


class GradientPrivacy(Privacy, frozen=True):
    """Noise on mean gradients, which protects a record or all records of an agent."""

    unit: Literal["record", "agent"] = "record"
    """What is protected: one record, or all of an agent's records, whatever their number. For an agent, ``clip`` bounds
    the norm of its mean gradient as a whole in place of each example's, and noise does not shrink with more records."""


class PrintedNoise(Terms, ABC, frozen=True):
    """Noise whose amount and claim a paper states by a formula of its own; it tells the engine what `Privacy` tells."""

    updates: Updates | None = None
    """An agent falls silent after so many releases; by default never. Required with a target."""
    delta: float | None = Field(default=None, gt=0, lt=1)
    """Delta at which epsilons are reported; by default that of the target, where there is one, else 1e-5."""
    strict: bool = False
    """Whether inputs computed from private data but treated as public make every verified epsilon infinite."""

    mechanism: ClassVar[str]
    claimed_by: ClassVar[Composition]
    sensitivity: ClassVar[str] = "claimed"
    budget: ClassVar[None] = None
    noiseless: ClassVar[bool] = False

    @property
    @abstractmethod
    def reported_delta(self) -> float:
        """Delta at which epsilons are reported."""

    @abstractmethod
    def scaled_to(self, total: Total) -> dict[str, Any]:
        """Scale what a scenario's ``privacy`` says to a total epsilon; changed fields by name."""
