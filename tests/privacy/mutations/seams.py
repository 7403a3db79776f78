"""Where mistakes are planted: attributes that are replaced and put back, and the seams that are likely to move."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from hushnet.protocols.privacy import mechanisms
from hushnet.simulator.randomness import Draws

Change = Callable[[Callable[..., Any]], Callable[..., Any]]
"""From what a function was to what it becomes."""


class Plant:
    """Replaces attributes, and puts them back in the opposite order."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, new: Any) -> None:
        """Replace an attribute of a class or module that defines it itself, or inherits it."""
        self._before.append((owner, name, vars(owner).get(name, _NOTHING)))
        setattr(owner, name, new)

    def around(self, owner: Any, name: str, change: Change) -> None:
        """Replace a method, or a property's getter, by what a change makes of it."""
        found = inspect.getattr_static(owner, name)
        if isinstance(found, property):
            assert found.fget is not None
            self.put(owner, name, property(change(found.fget)))
        else:
            self.put(owner, name, change(found))

    def everywhere(self, function: Callable[..., Any], change: Change) -> None:
        """Replace a function of a module wherever one of the package's modules has imported it."""
        new = change(function)
        places = [
            (module, name) for module in _modules() for name, held in list(vars(module).items()) if held is function
        ]
        assert places, f"{function!r} is not known by its name in any module"
        for module, name in places:
            self.put(module, name, new)

    def uproot(self) -> None:
        """Put everything back."""
        while self._before:
            owner, name, was = self._before.pop()
            if was is _NOTHING:
                delattr(owner, name)
            else:
                setattr(owner, name, was)


_NOTHING = object()


@contextmanager
def planted(plant_it: Callable[[Plant], None]) -> Iterator[None]:
    """A mistake in place; what was computed with or without it is forgotten."""
    plant = Plant()
    forget()
    try:
        plant_it(plant)
        yield
    finally:
        plant.uproot()
        forget()


def forget() -> None:
    """Clear what the package's functions have cached."""
    for module in _modules():
        for held in list(vars(module).values()):
            if callable(getattr(held, "cache_clear", None)):
                held.cache_clear()


def _modules() -> list[Any]:
    return [module for name, module in list(sys.modules.items()) if name.startswith("hushnet.") and module is not None]


def drawing(plant: Plant, change: Change) -> None:
    """Change how noise is drawn: ``draw(mechanism, size, scale, *, rng)``."""
    plant.everywhere(mechanisms.draw_noise, change)


def streams(plant: Plant, rename: Callable[[int, str, tuple[int, ...]], tuple[int, str, tuple[int, ...]]]) -> None:
    """Change the key of random streams: from (seed, purpose, ids) to another one.

    The ids of a step's stream begin with its tick and its agent; those of a stream before time 0, whose purpose ends
    in "before time 0", with the agent.
    """

    def change(generator: Callable[..., Any]) -> Callable[..., Any]:
        def other(self: Draws, purpose: str, *ids: int) -> np.random.Generator:
            seed, purpose, ids = rename(self.seed, purpose, ids)
            return generator(Draws(seed), purpose, *ids)

        return other

    plant.around(Draws, "generator", change)


def is_noise(purpose: str) -> bool:
    """Whether a stream of this purpose is one that noise is drawn from."""
    return purpose == "noise" or purpose.startswith("output perturbation")
