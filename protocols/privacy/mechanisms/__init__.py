"""Mechanisms: how noise is drawn, and what that reveals; one file each, and one registration.

`Release` is one act of publishing under a mechanism. A new mechanism is a `Noise` in a file of its own that calls
`register`.
"""

from __future__ import annotations

from .gamma import GAMMA
from .gaussian import GAUSSIAN
from .laplace import LAPLACE
from .mechanism import Mechanism, Noise, Norm
from .mechanism_registry import NoiseName, mechanism_of, noise_of, noises, register
from .privacy_loss import PrivacyLoss, RandomisedResponse
from .release import (
    AgentStream,
    Implied,
    LogJacobian,
    Release,
    Solve,
    WatchedStream,
    Watcher,
    draw_noise,
)
from .silent import PLAIN, PUBLIC

__all__ = [
    "GAMMA",
    "GAUSSIAN",
    "LAPLACE",
    "PLAIN",
    "PUBLIC",
    "AgentStream",
    "Implied",
    "LogJacobian",
    "Mechanism",
    "Noise",
    "NoiseName",
    "Norm",
    "PrivacyLoss",
    "RandomisedResponse",
    "Release",
    "Solve",
    "WatchedStream",
    "Watcher",
    "draw_noise",
    "mechanism_of",
    "noise_of",
    "noises",
    "register",
]
