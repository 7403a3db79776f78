"""Where mistakes are planted: attributes that are replaced and put back, and the seams that are likely to move."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from hushnet.agents import losses
from hushnet.agents.loss_codes import code_of
from hushnet.agents.tables import Shard
from hushnet.protocols.privacy import composed_losses, loss_distribution, mechanisms
from hushnet.protocols.steps import loss_operators
from hushnet.protocols.steps.kernels import NORMS
from hushnet.protocols.steps.single_steps import SingleSteps
from hushnet.simulator.network.randomness import Draws
from numpy.typing import NDArray

Change = Callable[[Callable[..., Any]], Callable[..., Any]]
"""From what a function was to what it becomes."""
Draw = Callable[[float], np.ndarray]


class Plant:
    """Replaces attributes, and puts them back in the opposite order."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, new: Any) -> None:
        """Replace an attribute of a class or module that defines it itself, or inherits it; none that is not there."""
        inspect.getattr_static(owner, name)
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
    """Clear what protocols and their accounting have cached."""
    for module in _modules("hushnet.protocols."):
        for held in list(vars(module).values()):
            if callable(getattr(held, "cache_clear", None)):
                held.cache_clear()
            elif isinstance(held, composed_losses.Memory):
                vars(held).update(vars(composed_losses.Memory()))


def _modules(under: str = "hushnet.") -> list[Any]:
    return [module for name, module in list(sys.modules.items()) if name.startswith(under) and module is not None]


def drawing(plant: Plant, change: Change) -> None:
    """Change how mechanisms draw: ``draw(mechanism, size, scale, *, rng)``, whichever mechanism it is."""
    usual = {name: type(mechanisms.noise_of(name)).draw for name in mechanisms.noises()}

    def draw(kind: str, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
        return usual[kind](mechanisms.noise_of(kind), size, scale, rng=rng)

    changed = change(draw)
    for name in usual:

        def other(self: Any, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
            return changed(self.name, size, scale, rng=rng)

        plant.put(type(mechanisms.noise_of(name)), "draw", other)


def noising(plant: Plant, change: Callable[[mechanisms.Release, np.ndarray, Draw], np.ndarray]) -> None:
    """Change the noise of releases: ``change(release, noise, draw)``, where ``draw(scale)`` draws such noise anew.

    This is inside of what a watched stream sees: noise that was drawn like this and then added.
    """
    under_way: list[mechanisms.Release] = []

    def around(method: Callable[..., Any]) -> Callable[..., Any]:
        def other(self: mechanisms.Release, *given: Any, **named: Any) -> Any:
            under_way.append(self)
            try:
                return method(self, *given, **named)
            finally:
                under_way.pop()

        return other

    def drawn(draw: Callable[..., Any]) -> Callable[..., Any]:
        def other(kind: str, size: Any, scale: float, *, rng: np.random.Generator) -> np.ndarray:
            def again(another: float) -> np.ndarray:
                return draw(kind, size, another, rng=rng)

            return change(under_way[-1], again(scale), again) if under_way else again(scale)

        return other

    for name in ("perturb", "perturb_objective"):
        plant.around(mechanisms.Release, name, around)
    drawing(plant, drawn)


def memory(owner: Any) -> dict[Any, Any]:
    """What a mistake remembers along with an object of a run, such as its ledger or its protocol."""
    return vars(owner).setdefault("_planted", {})


class Last:
    """What a mistake remembers of an agent's last release in the same run, in which time goes on."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[float, Any]] = {}

    def put(self, release: mechanisms.Release, value: Any) -> Any:
        """Remember a value; gives what was remembered before, None at the first release of a run."""
        time, before = self._of.get(release.agent, (np.inf, None))
        self._of[release.agent] = release.time, value
        return before if time < release.time else None


def exact_gradient(protocol: Any, me: Any) -> NDArray[np.float64]:
    """The (p,) clipped gradient of an agent at its model, as coordinate descent has it before the noise."""
    model, loss, clip = me.model, protocol.problem.task.loss, protocol.step_noise.clip
    if clip is None:
        return losses.local_gradient(model, me.data, loss, me.regularisation)
    return losses.clipped_gradient(model, me.data, loss, me.regularisation, *clip)


def stepping(plant: Plant, owner: type[Any], change: Change) -> None:
    """Change how a protocol makes its steps, one by one: ``step(protocol, me)``, which leaves what it sent."""

    def other_make(make: Callable[..., Any]) -> Callable[..., Any]:
        def other(self: SingleSteps, phase: str, me: Any, *given: Any) -> Any:
            if phase != "step" or not isinstance(self.protocol, owner):
                return make(self, phase, me, *given)
            return change(lambda _, me: make(self, "step", me))(self.protocol, me)

        return other

    plant.put(owner, "decides", True)
    plant.around(SingleSteps, "make", other_make)


def clipping(plant: Plant, change: Change) -> None:
    """Change how gradients are clipped, in kernels, too: ``clip(model, shard, loss, ridge, norm, bound)``."""
    kernels = loss_operators.rows_of
    clip, gradients, gradients_at = change(losses.clipped_gradient), kernels.gradients, kernels.gradients_at
    known = {code_of(loss): loss for loss in losses.LOSSES.values()}
    norms = {number: name for name, number in NORMS.items()}

    def of_all(*given: Any) -> None:
        *data, models, decays, code, norm, bound, out = given
        if not norm:
            gradients(*given)
            return
        for own, model, shard, decay in zip(out, models, _shards(*data), decays, strict=True):
            own[:] = clip(model, shard, known[code], decay / 2.0, norms[norm], bound)

    def of_some(*given: Any) -> None:
        *data, models, ranks, starts, code, norm, bound, out = given
        if not norm:
            gradients_at(*given)
            return
        for b, (own, model, shard) in enumerate(zip(out, models, _shards(*data), strict=True)):
            rows = ranks[starts[b] : starts[b + 1]]
            chosen = Shard(shard.features[rows], shard.labels[rows])
            own[:] = clip(model, chosen, known[code], 0.0, norms[norm], bound)

    plant.everywhere(losses.clipped_gradient, lambda _: clip)
    for name, planted in (("gradients", of_all), ("gradients_at", of_some)):
        planted.form = lambda _, planted=planted: planted  # as of a kernel, for the types of its arguments
        plant.put(kernels, name, planted)


def _shards(features: Any, labels: Any, offsets: Any, agents: Any) -> list[Shard]:
    """The rows of some agents, as kernels are given them."""
    return [Shard(*(part[offsets[agent] : offsets[agent + 1]] for part in (features, labels))) for agent in agents]


def replace_one(plant: Plant, change: Change) -> None:
    """Change how sampled releases are composed: ``composed(parts, delta, *, replaced)``."""
    plant.everywhere(loss_distribution.composed_epsilon, change)


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
