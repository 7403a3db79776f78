"""Things that a scenario names, by their names: what is not registered is refused, and who registers is listed.

A kind of thing has one registry, and a thing of that kind one file and one registration: lists, unions of admissible
parameters and documentation are made from the registry.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from .authors import check_overrides
from .errors import InputError
from .suggestions import listed, suggestion

Thing = TypeVar("Thing")


class Unregistered(InputError, KeyError):
    """A name that nothing is registered by."""

    __str__ = Exception.__str__


class Taken(InputError, ValueError):
    """A name that something else is registered by."""


class Registry(Mapping[str, Thing], Generic[Thing]):
    """Things of one kind by name, in the order in which they were registered; errors call one of them by `what`.

    Its ``edition`` says how often things were registered: what was made from another edition may lack some.
    """

    def __init__(self, what: str) -> None:
        self.what, self.edition = what, 0
        self._known: dict[str, Thing] = {}
        self._origins: dict[str, tuple[str | None, str]] = {}

    def add(self, name: str, thing: Thing, *, maker: object = None) -> Thing:
        """Register a thing by its name; the same file may register its own thing again.

        The place of its maker says which file this is; by default that is the thing's class, or itself if it is one.
        Raises ValueError if the name is taken by something of another file, and `InputError` if its class lacks a
        method, or has one that cannot be called as it is.
        """
        check_overrides(thing if isinstance(thing, type) else type(thing))
        origin = _origin(thing if maker is None else maker)
        if name in self._known and self._origins[name] != origin:
            raise Taken(f"the name {name!r} is taken by another {self.what}; choose a new one.")
        self._known[name], self._origins[name] = thing, origin
        self.edition += 1
        return thing

    def remove(self, name: str) -> None:
        """Forget a thing."""
        del self._known[name]
        self.edition += 1

    def __getitem__(self, name: str) -> Thing:
        if name not in self._known:
            near = suggestion(name, self._known)
            raise Unregistered(f"unknown {self.what} {name!r}{near} admissible: {listed(self._known)}")
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def _origin(thing: object) -> tuple[str | None, str]:
    """File and name of a class or function; of an instance its class's."""
    made_of: Any = thing if hasattr(thing, "__qualname__") else type(thing)
    try:
        return inspect.getsourcefile(made_of), made_of.__qualname__
    except (OSError, TypeError):  # made in a console
        return None, made_of.__qualname__
