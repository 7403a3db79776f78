"""Release of a sender's data by a message, and the noise that was added to it.

The noise is *seeded simulation noise*: floating-point samples of a reproducible generator. It is not a sampler for
deployment, where discrete noise from a cryptographic source is needed (Mironov 2012).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .mechanism import Norm
from .mechanism_registry import mechanism_of

SensitivitySource = Literal["claimed", "clip", "data_check"]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Release:
    """One act of publishing something computed from an agent's private data.

    A release is an event, so two of them are equal only if they are the same object: sending the same release again
    reveals nothing new, whereas a second release with the same fields is a second draw of noise. Raises `ValueError` if
    there is no such mechanism, a number is out of range or the norm does not belong to the mechanism.
    """

    agent: int
    """The agent whose data are released, ``>= 0``."""
    time: float
    """Simulation time."""
    mechanism: str
    """Name of a registered mechanism. ``public`` carries no private content; ``none`` carries private content without
    noise."""
    norm: Norm | None
    """Norm of the sensitivity, which is the mechanism's: None without noise."""
    sensitivity: float
    """What the noise was scaled for, ``>= 0``: the largest distance, in that norm, between the values that two adjacent
    data sets give."""
    sensitivity_source: SensitivitySource | None
    """Where that number comes from."""
    verified_sensitivity: float
    """The bound that can be proved, ``>= 0``; ``math.inf`` where nothing can."""
    scale: float
    """Standard deviation of Gaussian noise, b of Laplace noise with density exp(-abs(x)/b)/(2b), or b of gamma noise
    with density proportional to exp(-norm(x)/b), ``>= 0``; of other noise as its mechanism says."""
    claimed_epsilon: float
    claimed_delta: float
    """`claimed_epsilon` and `claimed_delta`: What the paper's own analysis says that this release costs; epsilon may be
    ``math.inf``, delta is in [0, 1)."""
    recipients: int
    """Number of agents that the message is addressed to, ``>= 0``."""
    sampling: float = 1.0
    """Probability, in (0, 1], with which a given record takes part in the released value."""
    unit: str = "record"
    """What is protected: ``record``, ``feature column``."""
    adjacency: str = "replace-one"
    """When two data sets are neighbours: ``replace-one``, ``add-or-remove-one``."""
    reason: str = ""
    """Why a message is public or unprotected, in words."""
    dimension: int = 0
    """Number p of coordinates of every vector that noise is added to, ``>= 0``, of which one record changes at most
    one; 0 where noise enters in another way, so that what changes with the data may depend on what is released. Gamma
    noise reveals less in more dimensions."""
    draws: int = field(default=0, init=False, repr=False)
    """How often noise was drawn for it, ``>= 0``; each draw costs as much as the first."""
    free: bool = field(init=False, repr=False)
    """Whether it has no private content and costs nothing."""
    noisy: bool = field(init=False, repr=False)
    """Whether it has noise."""

    def __post_init__(self) -> None:
        kind = mechanism_of(self.mechanism)
        object.__setattr__(self, "free", kind.free)
        object.__setattr__(self, "noisy", kind.noisy and self.scale > 0)
        norm = kind.norm
        if self.norm != norm:
            raise ValueError(f"a {self.mechanism} release has norm {norm}, not {self.norm}.")
        if not (self.sensitivity >= 0 and self.verified_sensitivity >= 0 and 0 <= self.scale < math.inf):
            raise ValueError("the sensitivities of a release are >= 0 and its noise scale is finite and >= 0.")
        if not (0 < self.sampling <= 1 and self.claimed_epsilon >= 0 and 0 <= self.claimed_delta < 1):
            raise ValueError("a release has sampling in (0, 1], claimed epsilon >= 0 and claimed delta in [0, 1).")
        if self.dimension < 0:
            raise ValueError(f"the dimension of a release is >= 0, not {self.dimension}.")

    @classmethod
    def public(cls, agent: int, time: float, reason: str, *, recipients: int = 0) -> Release:
        """A message without private content: it costs nothing; ``reason`` says why."""
        return cls(agent, time, "public", None, 0.0, None, 0.0, 0.0, 0.0, 0.0, recipients, reason=reason)

    @classmethod
    def plain(cls, agent: int, time: float, reason: str = "", *, recipients: int = 0) -> Release:
        """Private content without noise: its epsilon is infinite."""
        return cls(agent, time, "none", None, 0.0, None, math.inf, 0.0, math.inf, 0.0, recipients, reason=reason)

    @property
    def multiplier(self) -> float:
        """Noise scale over the sensitivity that can be proved, in [0, inf]; 0 protects nothing, inf costs nothing."""
        return noise_multiplier(self.scale, self.verified_sensitivity)

    @property
    def claimed_multiplier(self) -> float:
        """Noise scale over the sensitivity that it was scaled for, in [0, inf]."""
        kind = mechanism_of(self.mechanism)
        return noise_multiplier(self.scale, self.sensitivity if kind.free or kind.noisy else math.inf)

    def perturb(
        self, vector: NDArray[np.float64], *, rng: np.random.Generator, tell: Tell | None = None
    ) -> NDArray[np.float64]:
        """Add this release's noise to a (p,) vector; every call draws anew, and is charged when the release is sent.

        What comes out has to go out under this release (``me.send``), or be charged by ``me.disclose`` where it goes
        out as part of something else: nothing else charges it. It is a new array, or the vector itself, with nothing
        drawn, if there is no noise; of a `WatchedStream` the watcher is told, and may put another value in place.
        Raises `ValueError` if the vector has another dimension than the release declares.
        """
        if self.dimension and vector.shape[-1:] != (self.dimension,):
            raise ValueError(f"a release of dimension {self.dimension} was given a vector of shape {vector.shape}.")
        if not self.noisy:
            return vector
        self.note_draw()
        noise = draw_noise(self.mechanism, vector.shape, self.scale, rng=rng)
        if tell is not None:
            tell(noise)
        noisy = vector + noise
        return rng.watcher.noisy(self, vector, noisy) if isinstance(rng, WatchedStream) else noisy

    def perturb_objective(
        self, solve: Solve, implied: Implied, *, size: int, rng: np.random.Generator, log_jacobian: LogJacobian
    ) -> NDArray[np.float64]:
        """Draw this release's noise for an objective, and minimise it: objective perturbation.

        Chaudhuri, Monteleoni, Sarwate (2011), algorithm 2. The solution s is a one-to-one function of the noise b, so
        its log density is that of b plus ``log_jacobian``; what one record changes is charged by the release, whose
        ``verified_sensitivity / scale`` bounds the change of both together. Charged as by `perturb`. Raises
        `ValueError` if the release declares a dimension: this noise is not added to what is released.

        ``solve(noise)`` gives the (p,) minimiser of the objective with noise of this size, ``implied(solution)`` the
        noise that has this minimiser on these data, and ``log_jacobian(solution)`` log abs det of the derivative of
        ``implied``, up to what no record changes: of a regularised loss, that of its Hessian. A replay compares it with
        a numerical derivative.
        """
        if self.dimension:
            raise ValueError("a release with noise in an objective has dimension 0: the noise is not added to it.")
        if not self.noisy:
            return solve(np.zeros(size))
        self.note_draw()
        noise = draw_noise(self.mechanism, size, self.scale, rng=rng)
        solution = solve(noise)
        if isinstance(rng, WatchedStream):
            return rng.watcher.solved(self, solution, noise, implied, log_jacobian, solve)
        return solution

    def note_draw(self) -> None:
        """Count a draw of noise for it; `perturb` and `perturb_objective` do, for what they draw."""
        object.__setattr__(self, "draws", self.draws + 1)


Solve = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Implied = Callable[[NDArray[np.float64]], NDArray[np.float64]]
LogJacobian = Callable[[NDArray[np.float64]], float]
Tell = Callable[[NDArray[np.float64]], None]


class Watcher(Protocol):
    """Observer that receives every noisy value before it is used, and may replace it."""

    def noisy(self, release: Release, exact: NDArray[np.float64], noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take note of noise that was added to a value; what is returned is used instead of the sum."""
        ...

    def solved(
        self,
        release: Release,
        solution: NDArray[np.float64],
        noise: NDArray[np.float64],
        implied: Implied,
        log_jacobian: LogJacobian,
        solve: Solve | None,
    ) -> NDArray[np.float64]:
        """Take note of the minimiser of a perturbed objective; what is returned is used instead.

        Without ``solve`` it comes from a shipped operator, whose inverse this is.
        """
        ...


INNER_STATE = (
    "a step's random stream is for drawing only: its state cannot be read, set, copied, pickled or split; "
    "me.stream(purpose) under another purpose gives other numbers"
)
"""What is said to a step that asks for it."""


class AgentStream(np.random.Generator):
    """Random stream that a step is given: it draws the generator's numbers, and refuses its inner state.

    Whoever could copy, rewind or split a stream could draw the same noise or the same sample again. It refuses in every
    run, so that a step does there what it did when it was replayed.
    """

    __slots__ = ()

    def __init__(self, stream: np.random.Generator) -> None:
        super().__init__(stream.bit_generator)

    def _refused(self, *_: Any, **__: Any) -> Any:
        raise TypeError(INNER_STATE)

    bit_generator = _bit_generator = property(_refused)  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
    state = property(_refused)
    spawn = __getstate__ = __setstate__ = __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refused


class WatchedStream(AgentStream):
    """A random stream that draws another's numbers, and tells of the noise which releases draw from it."""

    __slots__ = ("watcher",)

    def __init__(self, stream: np.random.Generator, watcher: Watcher) -> None:
        super().__init__(stream)
        self.watcher = watcher


def noise_multiplier(scale: float, sensitivity: float) -> float:
    """Scale over sensitivity: inf where the sensitivity is 0 (nothing to hide), 0 where it is unbounded."""
    if sensitivity == 0:
        return math.inf
    return scale / sensitivity


def draw_noise(
    mechanism: str, size: int | tuple[int, ...], scale: float, *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw noise; seeded simulation noise, not a sampler for deployment.

    Vectors are along the last axis. A mechanism without noise, and scale 0, give zeros and draw nothing.
    """
    kind = mechanism_of(mechanism)
    return np.zeros(size) if scale == 0 else kind.draw(size, scale, rng=rng)
