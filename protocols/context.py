"""Context of a protocol that its scenario alone determines, before there are data or a graph, and checks of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..agents.errors import InputError
from ..agents.losses import Loss
from ..agents.tasks.outline import Outline
from .privacy.budget import Privacy


@dataclass(frozen=True)
class Context:
    """A scenario as far as its text tells."""

    task: Outline
    topology: str
    """Kind of the graph."""
    may_be_star: bool
    """Whether the graph may be a star around agent 0."""
    always_up: bool
    """Whether no agent is ever absent."""
    in_rounds: bool
    """Whether the protocol runs in rounds."""
    width: int | None
    """Number of parameters of a model; None if data alone tell."""


def check_length(given: object, agents: int | None, *field: str) -> None:
    """Raise an `InputError` if a list does not have one value per agent; None agents are not known yet."""
    if isinstance(given, list) and agents is not None and len(given) != agents:
        raise InputError(f"has {len(given)} values; one for each of the {agents} agents is needed", field=field)


def check_within(field: str, number: int, width: int | None) -> None:
    """Raise an `InputError` if more parts of a model are asked for than it has parameters; None are not known yet."""
    if width is not None and number > width:
        raise InputError(f"must be at most {width}, the numbers of a model", field=(field,))


def check_newton(loss: Loss, task: str) -> None:
    """Raise an `InputError` if local problems with a loss cannot be solved by Newton's method."""
    if not loss.smooth:
        raise InputError(
            f"the local problems are solved by Newton's method, and the loss {loss.name!r} of the task {task!r} has a "
            "kink; use a smooth loss",
            field=("task", "loss"),
        )


def check_columns(*, columns: bool, loss: Loss, task: str) -> None:
    """Raise an `InputError` unless features are split between parties, with a smooth loss of bounded slope."""
    if not columns:
        raise InputError(
            f"learns from features that are split between parties, and the task {task!r} splits rows; set "
            "task.split to {by: columns, parts: [...]}",
            field=("kind",),
        )
    if not (loss.smooth and math.isfinite(loss.lipschitz)):
        raise InputError(
            f"needs a smooth loss with bounded slope, and {loss.name!r} is not; use logistic or smoothed_hinge",
            field=("kind",),
        )


def check_star(star: bool) -> None:
    """Raise an `InputError` unless the graph is a star around agent 0."""
    if not star:
        raise InputError("has a centre, agent 0, that all others talk to; use topology: {kind: star}", field=("kind",))


def check_split(context: Context) -> None:
    """Raise an `InputError` unless features are split and the graph is a star, for protocols of split features."""
    task = context.task
    check_columns(columns=task.columns, loss=task.loss, task=task.kind)
    check_star(context.may_be_star)


def check_slope(privacy: Privacy | None, loss: Loss) -> None:
    """Raise an `InputError` if noise relies on checked rows, and the loss does not bound what they move."""
    if privacy is None or privacy.noiseless:
        return
    if privacy.sensitivity == "data_check" and not math.isfinite(loss.lipschitz):
        raise InputError(
            f"data_check needs a loss with bounded slope, and {loss.name!r} has none; use sensitivity: clip",
            field=("privacy", "sensitivity"),
        )
