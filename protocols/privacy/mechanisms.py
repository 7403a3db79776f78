"""What a message reveals about its sender's data: the release, and the noise that it was given.

Additive noise follows Dwork, McSherry, Nissim, Smith (2006) for Laplace, Dwork and Roth (2014), Appendix A, for
Gaussian noise, and Chaudhuri, Monteleoni, Sarwate (2011) for gamma noise: a vector of density proportional to
exp(-norm / scale), the K-norm mechanism of the l2 ball (Hardt, Talwar 2010). The noise is *seeded simulation noise*:
floating-point samples of a reproducible generator. It is not a sampler for deployment, where discrete noise from a
cryptographic source is needed (Mironov 2012).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Mechanism = Literal["public", "none", "laplace", "gaussian", "gamma"]
Norm = Literal["l1", "l2"]
SensitivitySource = Literal["claimed", "clip", "data_check"]

NORM_OF: dict[str, Norm] = {"laplace": "l1", "gaussian": "l2", "gamma": "l2"}


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Release:
    """One act of publishing something computed from an agent's private data.

    A release is an event, so two of them are equal only if they are the same object: sending the same release again
    reveals nothing new, whereas a second release with the same fields is a second draw of noise.

    Parameters
    ----------
    agent : int
        The agent whose data are released, ``>= 0``.
    time : float
        Simulation time.
    mechanism : {"public", "none", "laplace", "gaussian", "gamma"}
        ``public`` carries no private content; ``none`` carries private content without noise.
    norm : {"l1", "l2"} or None
        Norm of the sensitivity: ``l1`` for Laplace, ``l2`` for Gaussian and gamma noise, None without noise.
    sensitivity : float
        What the noise was scaled for, ``>= 0``: the largest distance, in that norm, between the values that two
        adjacent data sets give.
    sensitivity_source : {"claimed", "clip", "data_check"} or None
        Where that number comes from.
    verified_sensitivity : float
        The bound that can be proved, ``>= 0``; ``math.inf`` where nothing can.
    scale : float
        Standard deviation of Gaussian noise, b of Laplace noise with density exp(-abs(x)/b)/(2b), or b of gamma noise
        with density proportional to exp(-norm(x)/b), ``>= 0``.
    claimed_epsilon, claimed_delta : float
        What the paper's own analysis says that this release costs; epsilon may be ``math.inf``, delta is in [0, 1).
    recipients : int
        Number of agents that the message is addressed to, ``>= 0``.
    sampling : float
        Probability, in (0, 1], with which a given record takes part in the released value.
    unit : str
        What is protected: ``record``, ``feature column``.
    adjacency : str
        When two data sets are neighbours: ``replace-one``, ``add-or-remove-one``.
    reason : str
        Why a message is public or unprotected, in words.

    Attributes
    ----------
    draws : int
        How often noise was drawn for it, ``>= 0``; each draw costs as much as the first.

    Raises
    ------
    ValueError
        If a number is out of range or the norm does not belong to the mechanism.
    """

    agent: int
    time: float
    mechanism: Mechanism
    norm: Norm | None
    sensitivity: float
    sensitivity_source: SensitivitySource | None
    verified_sensitivity: float
    scale: float
    claimed_epsilon: float
    claimed_delta: float
    recipients: int
    sampling: float = 1.0
    unit: str = "record"
    adjacency: str = "replace-one"
    reason: str = ""
    draws: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.norm != NORM_OF.get(self.mechanism):
            raise ValueError(f"a {self.mechanism} release has norm {NORM_OF.get(self.mechanism)}, not {self.norm}.")
        if not (self.sensitivity >= 0 and self.verified_sensitivity >= 0 and 0 <= self.scale < math.inf):
            raise ValueError("the sensitivities of a release are >= 0 and its noise scale is finite and >= 0.")
        if not (0 < self.sampling <= 1 and self.claimed_epsilon >= 0 and 0 <= self.claimed_delta < 1):
            raise ValueError("a release has sampling in (0, 1], claimed epsilon >= 0 and claimed delta in [0, 1).")

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
        return noise_multiplier(self.scale, math.inf if self.mechanism == "none" else self.sensitivity)

    def perturb(self, vector: NDArray[np.float64], *, rng: np.random.Generator) -> NDArray[np.float64]:
        """Add this release's noise to a vector; every call draws anew, and is charged when the release is sent.

        What comes out has to go out under this release (`hushnet.protocols.view.Out.send`), or be charged by
        `hushnet.protocols.view.Out.disclose` where it goes out as part of something else: nothing else charges it.

        Parameters
        ----------
        vector : (p,) array
            The exact value.
        rng : numpy.random.Generator
            The agent's noise stream.

        Returns
        -------
        (p,) array
            A new array; or ``vector`` itself, with nothing drawn from ``rng``, if there is no noise.
        """
        if self.scale == 0 or self.mechanism in ("public", "none"):
            return vector
        object.__setattr__(self, "draws", self.draws + 1)
        return vector + draw_noise(self.mechanism, vector.shape, self.scale, rng=rng)


def noise_multiplier(scale: float, sensitivity: float) -> float:
    """Scale over sensitivity: inf where the sensitivity is 0 (nothing to hide), 0 where it is unbounded."""
    if sensitivity == 0:
        return math.inf
    return scale / sensitivity


def draw_noise(
    mechanism: Mechanism, size: int | tuple[int, ...], scale: float, *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw noise; seeded simulation noise, not a sampler for deployment.

    Parameters
    ----------
    mechanism : {"public", "none", "laplace", "gaussian", "gamma"}
        The first two, and scale 0, give zeros and draw nothing. Laplace and Gaussian coordinates are independent;
        gamma noise is a vector along the last axis, whose norm is Gamma(p, scale) and whose direction is uniform.
    size : int or tuple of int
        Shape of the result.
    scale : float
        Standard deviation (Gaussian) or b (Laplace, standard deviation b sqrt(2); gamma, mean norm p b), ``>= 0``.
    rng : numpy.random.Generator
        The stream to draw from.
    """
    if scale == 0 or mechanism in ("public", "none"):
        return np.zeros(size)
    if mechanism == "laplace":
        return rng.laplace(0.0, scale, size)
    if mechanism == "gamma":
        towards = rng.normal(size=size)
        lengths = rng.gamma(towards.shape[-1], scale, (*towards.shape[:-1], 1))
        return towards * (lengths / np.linalg.norm(towards, axis=-1, keepdims=True))
    return rng.normal(0.0, scale, size)
