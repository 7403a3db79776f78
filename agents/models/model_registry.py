"""The models that a task may choose from: one registration each, and what every one of them says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal

from ..kinds import KindOf
from ..losses import Loss
from ..parameters import Parameters
from .predictor import Predictor

Precision = Literal["float32", "float64"]


class ModelKind(Parameters, ABC):
    """Parameters of a model, of which a task chooses one by ``kind``."""

    convex: ClassVar[bool]
    """Whether losses of its scores are convex in its parameters, so that their minimum can be found."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """Libraries that its numbers depend on besides; an extra of the same name installs each."""

    @abstractmethod
    def bind(self, features: int, loss: Loss, classes: int) -> tuple[Predictor | None, Loss]:
        """Return the model of rows with so many features, None for the linear one, and the loss of its scores.

        That is the task's loss, or that of as many scores as there are classes, where labels are classes. Raises
        `InputError` if the model has no such loss.
        """


MODELS = KindOf("model", ModelKind, says=("convex",))
ModelParameters = Annotated[ModelKind, MODELS]
