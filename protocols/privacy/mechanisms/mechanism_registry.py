"""The mechanisms that there are, by name: what is not here is refused everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar, cast

from ....agents.kinds import NameOf
from ....agents.registry import Registry, Unregistered
from ....agents.suggestions import listed, suggestion
from .mechanism import Mechanism

if TYPE_CHECKING:
    from .mechanism import Noise

Kind = TypeVar("Kind", bound=Mechanism)

MECHANISMS = Registry[Mechanism]("mechanism")
_shipped: set[str] = set()

NEEDED = {
    "name": 'what scenarios call it, as in name = "laplace"',
    "norm": 'that of its sensitivities, norm = "l1" or norm = "l2"',
}
"""Fields of each mechanism, and what they mean."""


def register(mechanism: Kind) -> Kind:
    """Make a mechanism known by its name; a plug-in's file calls this where it defines one.

    What it reveals counts as verified once `hushnet.protocols.privacy.mechanisms.contract.check_mechanism` has passed
    in the same process, which the accountant sees to.

    Parameters
    ----------
    mechanism : Mechanism
        Usually a `Noise`. The same file may register its own mechanism again.

    Returns
    -------
    Mechanism
        The same.

    Raises
    ------
    TypeError
        If it is not a `Mechanism`, or lacks a name, a norm or a method.
    ValueError
        If its name is taken.
    """
    if not isinstance(mechanism, Mechanism):  # pyright: ignore[reportUnnecessaryIsInstance]  # whatever a user gives
        raise TypeError(f"a mechanism is an instance of a subclass of Mechanism, not {mechanism!r}.")
    for field, meaning in NEEDED.items():
        if not hasattr(mechanism, field):
            raise TypeError(f"{type(mechanism).__name__} has no {field}: {meaning}.")
    MECHANISMS.add(mechanism.name, mechanism)
    return mechanism


def ship(mechanism: Kind) -> Kind:
    """Register a mechanism of this package: its own tests check its contract."""
    _shipped.add(mechanism.name)
    return register(mechanism)


def edition() -> int:
    """Number of registrations so far: results of an earlier edition may concern other mechanisms."""
    return MECHANISMS.edition


def shipped(mechanism: Mechanism) -> bool:
    """True if a mechanism comes with the package."""
    return mechanism.name in _shipped


def mechanism_of(name: str) -> Mechanism:
    """The mechanism of a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    try:
        return MECHANISMS[name]
    except Unregistered as error:
        raise ValueError(f"{error}.") from None


def noise_of(name: str) -> Noise:
    """The mechanism of a name, if it draws noise.

    Raises
    ------
    ValueError
        If there is none that does.
    """
    mechanism, options = MECHANISMS.get(name), noises()
    if mechanism is None or not mechanism.noisy:
        near = suggestion(name, options)
        raise ValueError(f"{name!r} is no mechanism that draws noise{near} admissible: {listed(options)}.")
    return cast("Noise", mechanism)


def noises() -> tuple[str, ...]:
    """Names of the mechanisms that draw noise."""
    return tuple(sorted(name for name, mechanism in MECHANISMS.items() if mechanism.noisy))


NoiseName = Annotated[str, NameOf(MECHANISMS, lambda mechanism: mechanism.noisy)]
"""A scenario's field that names a mechanism with noise, shipped or registered by a plug-in."""
