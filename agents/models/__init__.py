"""Models that agents learn, one registration each: how parameters and rows of features give scores.

A new model is a file here whose class derives from `ModelKind` (``model_registry.py``), and its import below.
"""

from __future__ import annotations

from .model_registry import MODELS, ModelKind, ModelParameters

# isort: off
from .linear import LinearModel
from .dense import Perceptron, Softmax
from .torch_model import TorchModel
# isort: on

from .predictor import Predictor

__all__ = ["MODELS", "LinearModel", "ModelKind", "ModelParameters", "Perceptron", "Predictor", "Softmax", "TorchModel"]
