"""Nets of PyTorch that agents learn, from a file of one's own, one after the other or many agents at once.

A net's parameters are one vector, in the order of ``named_parameters``. `torch.func.functional_call` computes scores at
a vector, and `torch.func.vjp` the gradients from the slopes of hushnet's own loss, so losses, metrics and protocols are
those of every other model. `torch.func.vmap` does so for many agents in one call, if that is asked for: PyTorch's
elementwise functions give other last bits at other places of an array. The extra ``torch`` installs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal, final

import numpy as np
from pydantic import AfterValidator, Field
from typing_extensions import override

from ..clipping import clip_rows
from ..errors import InputError
from ..losses import Loss
from .dense import of_classes
from .model_registry import MODELS, ModelKind, Precision
from .predictor import Array, Clip, Predictor, Ranks, alike

WHERE = ("task", "model", "net")
NETS: dict[str, Callable[[int, int], Any]] = {}
"""Nets of files that are trusted, by the names that scenarios give them; whoever checks a scenario loads them."""


@final
@dataclass(frozen=True)
class TorchNet(Predictor):
    """Net of PyTorch, in evaluation mode, without buffers.

    Raises `InputError` if PyTorch is not installed, or the net is no module, has buffers, or gives scores of another
    shape.
    """

    name: str
    """``./file.py:Class``."""
    features: int
    scores_of_row: int
    precision: str
    device: str
    vmap: bool
    """Whether agents with equally many rows are computed in one call; their bits then depend on who is among them."""
    make: Callable[[int, int], Any] = field(repr=False)
    """``make(features, outputs)`` is a new `torch.nn.Module`."""

    def __post_init__(self) -> None:
        found = self._net(0)
        torch = pytorch()
        try:
            self._tensor(np.zeros(1))
        except (RuntimeError, AssertionError, TypeError) as error:
            said = f"PyTorch has none here for {self.precision} ({str(error).splitlines()[0]}); cpu is always there"
            raise InputError(said, field=(*WHERE[:2], "device")) from error
        if not isinstance(found, torch.nn.Module):
            raise InputError(f"{self.name} makes no torch.nn.Module, but {type(found).__name__}", field=WHERE)
        if any(True for _ in found.buffers()):
            raise InputError(f"{self.name} has buffers, such as those of BatchNorm; use LayerNorm", field=WHERE)
        if not self.width:
            raise InputError(f"{self.name} has no parameters", field=WHERE)
        shape = tuple(self._scores_at(self._vector(found)[None], np.zeros((1, 2, self.features))).shape[1:])
        if shape != (2, self.scores_of_row):
            raise InputError(
                f"{self.name} gives scores of the shape {shape} for 2 rows of {self.features} features; "
                f"admissible: (2, {self.scores_of_row})",
                field=WHERE,
            )

    @property
    @override
    def width(self) -> int:
        return self._places[-1][2] if self._places else 0

    @property
    @override
    def outputs(self) -> int:
        return self.scores_of_row

    @property
    @override
    def convex(self) -> bool:
        return False

    @override
    def first(self, rng: np.random.Generator) -> Array:
        """The parameters of a new net, by PyTorch's own initialisation from a seed that is drawn."""
        return self._vector(self._net(int(rng.integers(2**62))))

    @override
    def scores(self, models: Array, features: Array, starts: Ranks) -> Array:
        scores = np.empty((len(features), self.outputs))
        for agents, rows in self._calls(starts):
            scores[rows] = self._scores_at(models[agents], features[rows])
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
        torch, out = pytorch(), np.zeros((len(models), self.width))
        for agents, rows in self._calls(starts):
            given, at = self._tensor(features[rows]), self._tensor(models[agents])
            found, pull = torch.func.vjp(lambda at, given=given: self._at(at, given), at)
            scores = _array(found)
            scores = scores if self.outputs > 1 else scores[..., 0]
            with np.errstate(all=None if clip is None else "ignore"):
                slopes = loss.slope(scores, labels[rows]).reshape(found.shape)
            if clip is None:
                out[agents] = _array(pull(self._tensor(slopes * weights[rows][..., None]))[0])
                continue
            each = _array(self._of_rows(at, given, self._tensor(slopes)))
            each = clip_rows(each.reshape(-1, self.width), clip[1], clip[0]).reshape(each.shape)
            out[agents] = (weights[rows][:, None, :] @ each)[:, 0]
        return out

    @cached_property
    def _of_rows(self) -> Callable[[Any, Any, Any], Any]:
        """``(models, rows, slopes)`` -> (B, k, width) gradients of single rows, from (B, k, outputs) slopes."""
        func = pytorch().func

        def one(vector: Any, row: Any, slope: Any) -> Any:
            return func.vjp(lambda at: self._score(at, row[None]), vector)[1](slope[None])[0]

        return func.vmap(func.vmap(one, in_dims=(None, 0, 0)))

    def _scores_at(self, models: Array, features: Array) -> Array:
        """(B, k, outputs) scores of (B, k, p) rows at (B, width) models."""
        with pytorch().no_grad():
            return _array(self._at(self._tensor(models), self._tensor(features)))

    def _calls(self, starts: Ranks) -> Iterator[tuple[Ranks, Ranks]]:
        """Ranks of agents and their rows by call: those with equally many rows together, or each alone."""
        for agents, rows in alike(starts):
            if self.vmap:
                yield agents, rows
            else:
                yield from zip(agents[:, None], rows[:, None], strict=True)

    @cached_property
    def _at(self) -> Callable[[Any, Any], Any]:
        """``(models, rows)`` -> (B, k, outputs) scores of (B, k, p) rows at (B, width) models."""
        one = self._score
        return pytorch().func.vmap(one) if self.vmap else lambda models, rows: one(models[0], rows[0])[None]

    @cached_property
    def _score(self) -> Callable[[Any, Any], Any]:
        """``(model, rows)`` -> (k, outputs) scores of (k, p) rows at a (width,) model."""
        torch, net, places = pytorch(), self._net(0), self._places

        def one(vector: Any, rows: Any) -> Any:
            parameters = {name: vector[begin:end].view(shape) for name, begin, end, shape in places}
            return torch.func.functional_call(net, parameters, (rows,))

        return one

    @cached_property
    def _places(self) -> list[tuple[str, int, int, Any]]:
        """Name of each parameter, where it begins and ends in a model, and its shape."""
        places, begin = [], 0
        for name, value in self._net(0).named_parameters():
            places.append((name, begin, begin + value.numel(), value.shape))
            begin += value.numel()
        return places

    def _net(self, seed: int) -> Any:
        """A new net, initialised from a seed; PyTorch's own stream of random numbers stays as it was."""
        torch = pytorch()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            net = self.make(self.features, self.scores_of_row)
        return net.to(getattr(torch, self.precision)).eval() if isinstance(net, torch.nn.Module) else net

    def _tensor(self, values: Array) -> Any:
        torch = pytorch()
        return torch.tensor(values, dtype=getattr(torch, self.precision), device=self.device)

    def _vector(self, net: Any) -> Array:
        return np.concatenate([value.detach().numpy().reshape(-1) for value in net.parameters()] or [[]], dtype=float)

    def __getstate__(self) -> dict[str, Any]:
        """Fields alone: what is computed of them is computed anew."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def _array(tensor: Any) -> Array:
    """What a tensor of any device holds, in float64."""
    return tensor.detach().cpu().numpy().astype(np.float64)


def pytorch() -> Any:
    """PyTorch, on one thread, as runs are processes; raises `InputError` if it is not installed."""
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise InputError(
            "needs PyTorch, which the extra torch installs: pip install 'hushnet[torch]'", field=WHERE[:2]
        ) from error
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)
    return torch


def _checked_name(net: str) -> str:
    if re.fullmatch(r".+\.py:[^\W\d]\w*", net) is None:
        raise ValueError("must name a file and a class in it, as ./net.py:Net does")
    return net


@final
@MODELS.register
class TorchModel(ModelKind):
    """Net of PyTorch from a file of one's own: one score for two classes or numbers, else one a class."""

    kind: Literal["torch"]
    convex: ClassVar[bool] = False
    libraries: ClassVar[tuple[str, ...]] = ("torch",)
    net: Annotated[str, AfterValidator(_checked_name)] = Field(examples=["./net.py:Net"])
    """``./file.py:Class``; ``Class(features, outputs)`` is a `torch.nn.Module` whose scores of (k, features) rows are
    (k, outputs). Run only with ``--trust-code``."""
    precision: Precision = "float32"
    """Type of numbers that scores and gradients are computed in, and that agents keep and send; their steps compute in
    float64."""
    device: str = "cpu"
    """Where scores and gradients are computed: ``cpu``, or a device that PyTorch has there, such as ``cuda`` or
    ``mps``, whose last bits may differ; agents and messages stay in the machine's memory."""
    vmap: bool = False
    """Compute agents with equally many rows in one call: faster for small nets, and then both engines agree up to
    rounding only."""

    def bind(self, features: int, loss: Loss, classes: int) -> tuple[Predictor | None, Loss]:
        """Return the net and its loss; see `ModelKind.bind`."""
        if self.net not in NETS:
            raise InputError(f"the code in {self.net.rpartition(':')[0]} is run only with --trust-code", field=WHERE)
        several = loss.labels == "classes" and classes > 2
        outputs = classes if several else 1
        net = TorchNet(self.net, features, outputs, self.precision, self.device, self.vmap, NETS[self.net])
        return net, of_classes(loss, self.kind) if several else loss
