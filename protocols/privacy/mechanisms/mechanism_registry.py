"""The mechanisms that there are, by name: what is not here is refused everywhere."""

from __future__ import annotations

import difflib
import inspect
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from pydantic import AfterValidator

from .mechanism import Mechanism

if TYPE_CHECKING:
    from .mechanism import Noise

Kind = TypeVar("Kind", bound=Mechanism)

_known: dict[str, Mechanism] = {}
_shipped: set[str] = set()
_changes: list[str] = []


NEEDED = {
    "name": 'what scenarios call it, as in name = "laplace"',
    "norm": 'that of its sensitivities, norm = "l1" or norm = "l2"',
}
"""Fields of each mechanism, and what they mean."""


def register(mechanism: Kind) -> Kind:
    """Make a mechanism, usually a `Noise`, known by its name, and return it.

    A plug-in's file calls this where it defines one. The same file may register its own mechanism again. What it
    reveals counts as verified once `hushnet.protocols.privacy.mechanisms.contract.check_mechanism` has passed in the
    same process, which the accountant sees to.

    Raises TypeError if it is not a `Mechanism`, or lacks a name, a norm or a method, and ValueError if its name is
    taken.
    """
    if not isinstance(mechanism, Mechanism):  # pyright: ignore[reportUnnecessaryIsInstance]  # whatever a user gives
        raise TypeError(f"a mechanism is an instance of a subclass of Mechanism, not {mechanism!r}.")
    for field, meaning in NEEDED.items():
        if not hasattr(mechanism, field):
            raise TypeError(f"{type(mechanism).__name__} has no {field}: {meaning}.")
    before = _known.get(mechanism.name)
    if before is not None and _origin(before) != _origin(mechanism):
        raise ValueError(f"the name {mechanism.name!r} is taken by another mechanism; choose a new one.")
    _known[mechanism.name] = mechanism
    _changes.append(mechanism.name)
    return mechanism


def _origin(mechanism: Mechanism) -> tuple[str | None, str]:
    try:
        return inspect.getsourcefile(type(mechanism)), type(mechanism).__qualname__
    except TypeError:  # made in a console
        return None, type(mechanism).__qualname__


def ship(mechanism: Kind) -> Kind:
    """Register a mechanism of this package: its own tests check its contract."""
    _shipped.add(mechanism.name)
    return register(mechanism)


def edition() -> int:
    """Number of registrations so far: results of an earlier edition may concern other mechanisms."""
    return len(_changes)


def shipped(mechanism: Mechanism) -> bool:
    """True if a mechanism comes with the package."""
    return mechanism.name in _shipped


def mechanism_of(name: str) -> Mechanism:
    """The mechanism of a name; raises ValueError if there is none."""
    try:
        return _known[name]
    except (KeyError, TypeError):
        raise ValueError(f"there is no mechanism {name!r}{_admissible(name, tuple(_known))}.") from None


def noise_of(name: str) -> Noise:
    """The mechanism of a name, if it draws noise; raises ValueError if there is none that does."""
    mechanism = _known.get(name)
    if mechanism is None or not mechanism.noisy:
        raise ValueError(f"{name!r} is no mechanism that draws noise{_admissible(name, noises())}.")
    return cast("Noise", mechanism)


def noises() -> tuple[str, ...]:
    """Names of the mechanisms that draw noise."""
    return tuple(sorted(name for name, mechanism in _known.items() if mechanism.noisy))


def _admissible(name: object, options: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(str(name), options, n=1)
    return f"{f'; did you mean {near[0]!r}?' if near else ';'} admissible: {', '.join(options)}"


def _checked(name: str) -> str:
    if name not in noises():
        raise ValueError(f"is not admissible{_admissible(name, noises())}")
    return name


class _Suggested:
    """Editors offer the names that there are, and admit those of plug-ins."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:  # as pydantic asks
        return {"anyOf": [{"enum": list(noises())}, {"type": "string"}]}


NoiseName = Annotated[str, AfterValidator(_checked), _Suggested()]
"""A scenario's field that names a mechanism with noise, shipped or registered by a plug-in."""
