"""Whether compiled draws are NumPy's on this machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..stream_keys import new_stream
from .laws import integers, standard_exponential, standard_gamma
from .vectors import choose, fill_laplace, fill_normal, fill_spherical, fill_uniform

AGREED = 6
"""Root seed of the draws that are compared with NumPy's: they reach the tails of both ziggurats."""
DRAWN = 4000
"""How many of them there are."""
SHAPES = np.repeat([0.4, 0.5, 1.0, 2.5, 20.0], 300)
SAMPLES = [(50, 10), (10_000, 9_000), (10_001, 200), (10_001, 201)]
HIGHS = [3, 100, 3_000_000_000, 2**32, 2**40, 2**62 + 1] * 100


def _filled(fill: Callable[..., Any], stream: Any, *given: Any) -> NDArray[np.float64]:
    out = np.empty(DRAWN)
    fill(stream, *given, out)
    return out


def _chosen(stream: Any, population: int, count: int) -> NDArray[np.int64]:
    out = np.empty(count, dtype=np.int64)
    choose(stream, population, out)
    return out


def _spherical(rng: np.random.Generator) -> NDArray[np.float64]:
    towards = rng.normal(size=DRAWN)
    return towards * (rng.gamma(DRAWN, 0.3, 1) / np.linalg.norm(towards, axis=-1, keepdims=True))


LAWS: dict[str, tuple[Callable[[Any], Any], Callable[[np.random.Generator], Any]]] = {
    "uniform": (lambda stream: _filled(fill_uniform, stream), lambda rng: rng.random(DRAWN)),
    "normal": (lambda stream: _filled(fill_normal, stream, 0.3), lambda rng: rng.normal(0.0, 0.3, DRAWN)),
    "Laplace": (lambda stream: _filled(fill_laplace, stream, 0.3), lambda rng: rng.laplace(0.0, 0.3, DRAWN)),
    "spherical": (lambda stream: _filled(fill_spherical, stream, 0.3), lambda rng: _spherical(rng)),
    "exponential": (
        lambda stream: [standard_exponential(stream) for _ in range(DRAWN)],
        lambda rng: rng.standard_exponential(DRAWN),
    ),
    "gamma": (
        lambda stream: [standard_gamma(stream, shape) for shape in SHAPES],
        lambda rng: rng.standard_gamma(SHAPES),
    ),
    "integer": (
        lambda stream: [integers(stream, high) for high in HIGHS],
        lambda rng: [rng.integers(high) for high in HIGHS],
    ),
    "sampled": (
        lambda stream: np.concatenate([_chosen(stream, *sizes) for sizes in SAMPLES]),
        lambda rng: np.concatenate([rng.choice(*sizes, replace=False) for sizes in SAMPLES]),
    ),
}
"""What is drawn, and how: from a stream, and from NumPy's generator."""


@cache
def disagreement(law: str) -> str | None:
    """Why compiled draws of a law may not stand for NumPy's; None if they may.

    NumPy promises no stream for ever, and a build of it may contract operations or call another logarithm. So some
    thousand draws are compared, once in a process.

    Parameters
    ----------
    law : str
        One of `LAWS`.
    """
    from numba.core import config

    if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue]
        return "numba is told to compile nothing"
    stream = new_stream(AGREED, "agreement")
    rng = np.random.Generator(np.random.Philox(key=stream[4:6], counter=stream[:4]))
    own, theirs = LAWS[law]
    if np.array_equal(own(stream), theirs(rng)):
        return None
    return f"NumPy {np.__version__} draws {law} variables otherwise than the compiled streams"


def agrees(*laws: str) -> bool:
    """Whether compiled draws of these laws, by default of all, are NumPy's on this machine (`disagreement`)."""
    return all(disagreement(law) is None for law in laws or LAWS)
