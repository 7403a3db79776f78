"""The linear model, whose score of a row is x . theta; compiled kernels compute with it."""

from __future__ import annotations

from typing import ClassVar, Literal, final

from ..errors import InputError
from ..losses import Loss
from .model_registry import MODELS, ModelKind
from .predictor import Predictor


@final
@MODELS.register
class LinearModel(ModelKind):
    """Linear model: the score of a row is x . theta, and its sign tells one of two classes."""

    kind: Literal["linear"] = "linear"
    convex: ClassVar[bool] = True

    def bind(self, features: int, loss: Loss, classes: int) -> tuple[Predictor | None, Loss]:
        """Return the task's own loss; see `ModelKind.bind`."""
        if loss.labels == "classes" and classes > 2:
            raise InputError(
                f"a linear model tells two classes, and the labels have {classes}; use softmax or perceptron",
                field=("task", "model"),
            )
        return None, loss
