"""What a planted mistake is, and the kinds of which there are at least five each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from .seams import Plant

Kind = Literal[
    "scale",
    "sharing",
    "repetition",
    "clipping",
    "sensitivity",
    "count",
    "order",
    "sampling",
    "charge",
    "composition",
    "dependence on data",
]
Guard = Literal["tests", "contract", "audit"]
Form = Literal["one by one", "planned"]
KINDS: tuple[Kind, ...] = get_args(Kind)
GUARDS: tuple[Guard, ...] = get_args(Guard)
FORMS: tuple[Form, ...] = get_args(Form)


@dataclass(frozen=True)
class Mutation:
    """One mistake.

    Parameters
    ----------
    name : str
    kind : str
        One of `KINDS`.
    what : str
        What is planted, in a sentence.
    case : str
        The name, in `cases.CASES`, of a small world in which it shows.
    guard : {"tests", "contract", "audit"}
        Which guard has to catch it; others may, too.
    plant : callable
        Puts it in.
    form : {"one by one", "planned"}
        How steps are made where it has to be caught.
    """

    name: str
    kind: Kind
    what: str
    case: str
    guard: Guard
    plant: Callable[[Plant], None]
    form: Form = "one by one"


LIST: dict[str, Mutation] = {}


def mistake(
    kind: Kind, *, case: str, guard: Guard, form: Form = "one by one"
) -> Callable[[Callable[[Plant], None]], Callable[[Plant], None]]:
    """Enter a function that plants a mistake into the list, under its name; its docstring says what is planted."""

    def enter(plant: Callable[[Plant], None]) -> Callable[[Plant], None]:
        name, what = plant.__name__.replace("_", "-"), plant.__doc__
        assert what, f"{name} says what it plants"
        assert name not in LIST, f"two mistakes are called {name}"
        LIST[name] = Mutation(name, kind, what, case, guard, plant, form)
        return plant

    return enter
