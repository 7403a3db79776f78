"""What a compiled form of a word is: made for a run's loss, noise and type of rows.

Numbers (a clipping bound, a regulariser) are read from the record, so that a sweep over them compiles once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...agents.compilation.compiled import inlined
from ...agents.compilation.deferred import Deferred
from ...agents.losses import LOSSES

OTHER_COUNT = "there are not as many numbers as there are rows, columns or neighbours that they are for"


class NoForm(Exception):
    """Something has no compiled form; the message says what."""


@dataclass(frozen=True)
class Categories:
    """What a run's compiled words are chosen by.

    Parameters
    ----------
    loss : str
        Name of one of `hushnet.agents.losses.LOSSES`, or "" for one of somebody's own.
    mechanism : str
        Of the noise; "" without.
    clip : {"", "l1", "l2"}
        The norm in which gradients of examples are clipped.
    growing : bool
        Whether the noise's scale grows from step to step (`hushnet.protocols.steps.noise.StepNoise.growth`).
    """

    loss: str
    mechanism: str
    clip: str
    growing: bool = False

    @property
    def unsolved(self) -> str:
        """Why the exact minimiser of the loss has no compiled form; empty if it has one."""
        if not self.loss:
            return "the task's loss is not one of hushnet's own"
        return (
            ""
            if LOSSES[self.loss].smooth
            else (f"the exact minimiser of the {self.loss} loss, which has kinks, has no compiled form")
        )


class Asked:
    """Categories that know which of them somebody has asked for.

    Parameters
    ----------
    categories : Categories

    Attributes
    ----------
    answers : dict of str to value
        What was asked for, by name.
    """

    def __init__(self, categories: Categories) -> None:
        self._categories = categories
        self.answers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        self.answers[name] = answer = getattr(self._categories, name)
        return answer


@dataclass(frozen=True)
class Form:
    """The compiled form of a word.

    Parameters
    ----------
    fields : callable
        Which fields of the record it reads, by categories. Those of the engine end with an underscore.
    make : callable
        The function, by categories.
    """

    fields: Callable[[Categories], tuple[str, ...]]
    make: Callable[[Categories], Callable[..., Any]]


def fast(function: Callable[..., Any]) -> Any:
    """Compile a part of a step, for inlining."""
    return inlined(function)


@fast
def check_count(given, wanted):  # pragma: no cover - compiled
    """Refuse a vector that a text gives to a word, of another length than what it is for: no index is checked later."""
    if given != wanted:
        raise ValueError(OTHER_COUNT)


def _rank_of() -> Any:
    from .rank_forms import rank_of

    return rank_of


def _ranks_of() -> Any:
    from .rank_forms import ranks_of

    return ranks_of


rank_of: Any = Deferred(_rank_of)
ranks_of: Any = Deferred(_ranks_of)
"""`hushnet.protocols.steps.rank_forms.rank_of` and `ranks_of`."""


def reading(*names: str) -> Callable[[Categories], tuple[str, ...]]:
    """The fields, whatever their categories."""
    return lambda _: names
