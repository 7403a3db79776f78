"""Random streams in compiled code: NumPy's own numbers, bit for bit.

A stream is an array of `WORDS` uint64 that stands for ``Generator(Philox(key=..., counter=...))`` of NumPy. A step that
draws from it and the same step in Python, which draws from a generator, meet the same noise. `agrees` says whether the
NumPy that is installed draws so.

Nothing here may be reordered or contracted. That holds inside callers whose own arithmetic is fast, too, for LLVM keeps
such leave per operation; numba's ``inline="always"``, which puts a function's text into its caller, would lose it.
"""

from typing import TYPE_CHECKING

from ..late_imports import late
from ..stream_keys import WORDS, new_stream, purpose_word

if TYPE_CHECKING:
    from .agreement import LAWS, agrees, disagreement
    from .laws import (
        gamma,
        integers,
        laplace,
        normal,
        standard_exponential,
        standard_gamma,
        standard_normal,
        uniform,
    )
    from .philox import begin_stream, next_half, next_word
    from .vectors import choose, fill_laplace, fill_normal, fill_spherical, fill_spherical_rows, fill_uniform

__all__ = [
    "LAWS",
    "WORDS",
    "agrees",
    "begin_stream",
    "choose",
    "disagreement",
    "fill_laplace",
    "fill_normal",
    "fill_spherical",
    "fill_spherical_rows",
    "fill_uniform",
    "gamma",
    "integers",
    "laplace",
    "new_stream",
    "next_half",
    "next_word",
    "normal",
    "purpose_word",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "uniform",
]

__getattr__ = late(
    __name__,
    {
        ".agreement": ("LAWS", "agrees", "disagreement"),
        ".laws": (
            "gamma",
            "integers",
            "laplace",
            "normal",
            "standard_exponential",
            "standard_gamma",
            "standard_normal",
            "uniform",
        ),
        ".philox": ("begin_stream", "next_half", "next_word"),
        ".vectors": (
            "choose",
            "fill_laplace",
            "fill_normal",
            "fill_spherical",
            "fill_spherical_rows",
            "fill_uniform",
        ),
    },
)
