"""Models of dense layers: softmax regression, which has one, and perceptrons with hidden layers, in NumPy.

Parameters are layer after layer: the weights of a layer, (inputs, outputs) row by row, and its biases. Softmax
regression has no biases, as the linear model: where tasks have an intercept, it is a feature.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, final

import numpy as np
from pydantic import Field
from typing_extensions import override

from ..clipping import SHORT, Norm, norms
from ..errors import InputError
from ..losses import Loss
from ..losses.cross_entropy import CrossEntropy
from .model_registry import MODELS, ModelKind, Precision
from .predictor import Array, Clip, Predictor, Ranks, alike

Activation = Literal["relu", "tanh"]


@final
@dataclass(frozen=True)
class Dense(Predictor):
    """Dense layers with an activation between two of them."""

    layers: tuple[int, ...]
    """Numbers of features, of units of each hidden layer, and of scores."""
    activation: Activation
    biases: bool
    """Whether layers have biases."""
    precision: str = field(default="float64", repr=False)

    @cached_property
    def _places(self) -> list[tuple[slice, slice, tuple[int, int]]]:
        """Where weights and biases of each layer are, and the shape of its weights."""
        places, begin = [], 0
        for shape in pairwise(self.layers):
            end = begin + shape[0] * shape[1]
            places.append((slice(begin, end), slice(end, end + shape[1] * self.biases), shape))
            begin = end + shape[1] * self.biases
        return places

    @property
    @override
    def width(self) -> int:
        return self._places[-1][1].stop

    @property
    @override
    def outputs(self) -> int:
        return self.layers[-1]

    @property
    @override
    def convex(self) -> bool:
        return len(self.layers) == 2

    @override
    def first(self, rng: np.random.Generator) -> Array:
        """Zeros for one layer; else weights uniform within sqrt(6 / (inputs + outputs)), and biases 0.

        This is (16) of Glorot and Bengio 2010, "Understanding the difficulty of training deep feedforward neural
        networks".
        """
        vector = np.zeros(self.width)
        if not self.convex:
            for weights, _, shape in self._places:
                bound = np.sqrt(6.0 / sum(shape))
                vector[weights] = rng.uniform(-bound, bound, shape[0] * shape[1])
        return vector

    @override
    def scores(self, models: Array, features: Array, starts: Ranks) -> Array:
        scores = np.empty((len(features), self.outputs))
        for agents, rows in alike(starts):
            scores[rows] = self._forward(models[agents], features[rows])[-1]
        return scores if self.outputs > 1 else scores[:, 0]

    @override
    def gradients(
        self,
        models: Array,
        features: Array,
        labels: Array,
        starts: Ranks,
        loss: Loss,
        weights: Array,
        clip: Clip | None = None,
    ) -> Array:
        out = np.zeros((len(models), self.width))
        for agents, rows in alike(starts):
            own = models[agents]
            with np.errstate(all=None if clip is None else "ignore"):
                values = self._forward(own, features[rows])
                scores = values[-1] if self.outputs > 1 else values[-1][..., 0]
                slopes = loss.slope(scores, labels[rows]).reshape(values[-1].shape) * weights[rows][..., None]
                slopes = self._backward(own, values, slopes)
                if clip is not None:
                    values, slopes = self._clipped(values, slopes, clip[0], clip[1] * weights[rows])
                out[agents] = self._sums(values, slopes)
        return out

    def _forward(self, models: Array, features: Array) -> list[Array]:
        """(B, k, units) values of each layer, from the features to the scores, at (B, width) models."""
        values = [np.asarray(features, dtype=np.float64)]
        for rank, (weights, biases, shape) in enumerate(self._places):
            found = values[-1] @ models[:, weights].reshape(-1, *shape)
            if self.biases:
                found += models[:, None, biases]
            if rank < len(self._places) - 1:
                found = np.maximum(found, 0.0) if self.activation == "relu" else np.tanh(found)
            values.append(found)
        return values

    def _backward(self, models: Array, values: list[Array], slopes: Array) -> list[Array]:
        """(B, k, units) derivatives by what each layer gives before its activation, from those by scores."""
        found = [slopes]
        for rank in reversed(range(1, len(self._places))):
            weights, _, shape = self._places[rank]
            back = found[0] @ models[:, weights].reshape(-1, *shape).transpose(0, 2, 1)
            active = values[rank]
            found.insert(0, back * ((active > 0.0) if self.activation == "relu" else 1.0 - active * active))
        return found

    def _clipped(
        self, values: list[Array], slopes: list[Array], norm: Norm, bounds: Array
    ) -> tuple[list[Array], list[Array]]:
        """Values and derivatives whose products are the gradients of rows, scaled down to (B, k) bounds.

        A row's gradient by the weights of a layer is the outer product of its values and derivatives, whose norm is the
        product of theirs, so it need not be made (Goodfellow 2015, arXiv 1510.01799).
        """
        sizes = [norms(one.reshape(-1, one.shape[-1]), norm) for one in (*values[:-1], *slopes)]
        sent, back = sizes[: len(slopes)], sizes[len(slopes) :]
        parts = [*(one * other for one, other in zip(sent, back, strict=True)), *(back if self.biases else ())]
        lengths = norms(np.stack(parts, axis=1), norm).reshape(bounds.shape)
        finite, short = np.isfinite(lengths)[..., None], SHORT * bounds
        factors = (short / np.maximum(lengths, short))[..., None]
        return (
            [np.where(finite, one, 0.0) for one in values],
            [np.where(finite, factors * one, 0.0) for one in slopes],
        )

    def _sums(self, values: list[Array], slopes: list[Array]) -> Array:
        """(B, width) sums over rows of the gradients that values and derivatives of layers make."""
        out = np.empty((len(values[0]), self.width))
        for (weights, biases, _), value, slope in zip(self._places, values[:-1], slopes, strict=True):
            out[:, weights] = (value.transpose(0, 2, 1) @ slope).reshape(len(out), -1)
            if self.biases:
                out[:, biases] = slope.sum(axis=1)
        return out


@final
@MODELS.register
class Softmax(ModelKind):
    """Softmax regression: a score for each class, linear in the row, and the logistic loss of all classes."""

    kind: Literal["softmax"]
    convex: ClassVar[bool] = True
    precision: Precision = "float64"
    """Type of the numbers that agents keep and send; computed with are float64, and float32 halves the memory."""

    def bind(self, features: int, loss: Loss, classes: int) -> tuple[Predictor | None, Loss]:
        """Return one layer and its loss; see `ModelKind.bind`."""
        return Dense((features, classes), "relu", False, self.precision), of_classes(loss, self.kind)


@final
@MODELS.register
class Perceptron(ModelKind):
    """Multilayer perceptron: dense layers with biases, one score for two classes or numbers, else one a class."""

    kind: Literal["perceptron"]
    convex: ClassVar[bool] = False
    hidden: list[Annotated[int, Field(ge=1, le=10**5)]] = Field(default=[32], min_length=1, max_length=20)
    """Units of each hidden layer."""
    activation: Activation = "relu"
    """Activation of hidden units: max(0, s), or tanh(s)."""
    precision: Precision = "float64"
    """Type of the numbers that agents keep and send; computed with are float64, and float32 halves the memory."""

    def bind(self, features: int, loss: Loss, classes: int) -> tuple[Predictor | None, Loss]:
        """Return the layers and their loss; see `ModelKind.bind`."""
        several = loss.labels == "classes" and classes > 2
        outputs = classes if several else 1
        layers = Dense((features, *self.hidden, outputs), self.activation, True, self.precision)
        return layers, of_classes(loss, self.kind) if several else loss


def of_classes(loss: Loss, kind: str) -> Loss:
    """The loss of a score for each class that generalises a loss of one score; raises `InputError` if there is none."""
    if loss.name != "logistic":
        raise InputError(
            f"{loss.name!r} is no loss of a score for each class, which the model {kind} has here; use logistic",
            field=("task", "loss"),
        )
    return CrossEntropy()
