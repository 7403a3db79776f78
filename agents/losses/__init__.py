"""Losses of a linear prediction, one file and one registration each, and what an agent computes with its own shard.

A loss of your own is a file here that ends in ``register(MyLoss())``, and its import below.
"""

from __future__ import annotations

from .loss import LOSSES, ClassLossName, Loss, LossName, RowForms, register

# isort: off
from .logistic import Logistic
from . import squared, smoothed_hinge  # noqa: F401 - register theirs
from .hinge import Hinge
# isort: on

from .local import clipped_gradient, local_gradient, local_loss, public_smoothness, spectral_smoothness

__all__ = [
    "LOSSES",
    "ClassLossName",
    "Hinge",
    "Logistic",
    "Loss",
    "LossName",
    "RowForms",
    "clipped_gradient",
    "local_gradient",
    "local_loss",
    "public_smoothness",
    "register",
    "spectral_smoothness",
]
