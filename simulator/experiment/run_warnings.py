"""Warnings about a run that nothing forbids: models that never change, releases not made, unbounded growth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..world.world import World

LARGE, STEEP = 1e6, 1e4
"""A block grows without bound if it is so large at the end, and so many times as large as in the second quarter of the
run: powers of time stay below that, powers of a number do not."""
QUIET = 0.5
"""Share of a run after which a last step or delivery leaves the rest silent."""
MANY, MORE = 100, 1.5
"""So does what a protocol collects in an attribute: so many entries for each agent, and so much more than then."""


@dataclass(frozen=True)
class _Magnitudes:
    """Largest numbers of blocks, and lengths of collections, at an instant."""

    now: float
    blocks: dict[str, float]
    collections: dict[str, int]


class RunWarnings:
    """Looks at a run when it is recorded, as somebody else may; at its end, `of` has something to say or not."""

    def __init__(self, on_sample: Callable[[World], None] | None = None) -> None:
        self.on_sample = on_sample
        self._samples = 0
        self._began: NDArray[np.float64] | None = None
        self._magnitudes: list[_Magnitudes] = []
        self._last: dict[str, tuple[int, float]] = {"step": (0, 0.0), "delivery": (0, 0.0)}

    def __call__(self, world: World) -> None:
        """Look at a world at a record instant."""
        if not self._samples:
            models = world.protocol.models(world.state)
            self._began = None if models is None or world.activations else models.copy()
        self._samples += 1
        self._note(world)
        if self._samples & (self._samples - 1) == 0:  # at ever longer intervals
            self._magnitudes.append(_magnitudes_of(world))
        if self.on_sample:
            self.on_sample(world)

    def _note(self, world: World) -> None:
        """Note when something last happened, as far as records tell."""
        for what, count in (("step", world.activations), ("delivery", world.traffic.links.delivered)):
            if count != self._last[what][0]:
                self._last[what] = count, world.now

    def of(self, world: World) -> list[str]:
        """Return the warnings about a run that has ended, a sentence each."""
        return [*self._still(world), *self._silent(world), *_unmade(world), *self._growing(world)]

    def _silent(self, world: World) -> Iterator[str]:
        """Warnings if no step was made, or no message delivered, for most of a run, as far as its records show."""
        if not world.layout.messages:
            return  # nothing has to happen where nobody talks
        self._note(world)
        lost, dropped = (getattr(world.traffic.links, name) for name in ("lost", "dropped"))
        sent, delivered = world.traffic.links.sent, world.traffic.links.delivered
        if not world.activations:
            yield f"no agent has made a step until time {world.now:g}: nobody woke, or nobody was up"
        elif self._last["step"][1] <= world.now * QUIET:
            yield f"no agent has made a step after time {self._last['step'][1]:g}, until {world.now:g}"
        if sent and not delivered:
            fates = f"{lost} lost, {dropped} dropped, {world.traffic.links.in_flight} still on their way at the end"
            yield f"none of {sent} messages has arrived until time {world.now:g} ({fates})"
        elif sent and self._last["delivery"][1] <= world.now * QUIET:
            yield f"no message has arrived after time {self._last['delivery'][1]:g}, until {world.now:g}"

    def _still(self, world: World) -> Iterator[str]:
        models = world.protocol.models(world.state)
        if self._began is None or models is None or not world.activations:
            return
        if self._began.tobytes() == models.tobytes():
            yield f"no model has changed in {world.activations} steps"

    def _growing(self, world: World) -> Iterator[str]:
        before = [seen for seen in self._magnitudes if seen.now <= world.now / 2]
        if not before:
            return
        half, end = before[-1], _magnitudes_of(world)
        for name, largest in end.blocks.items():
            if largest >= LARGE and largest >= STEEP * half.blocks[name]:
                yield (
                    f"the block {name} grows without bound: {half.blocks[name]:.3g} at time {half.now:g}, "
                    f"{largest:.3g} at time {end.now:g}"
                )
        for name, length in end.collections.items():
            if length >= MANY * len(world.agents) and length >= MORE * half.collections.get(name, 0):
                yield (
                    f"the protocol's attribute {name} grows without bound: {half.collections.get(name, 0)} entries at "
                    f"time {half.now:g}, {length} at time {end.now:g}; what agents know belongs into their blocks"
                )


def _unmade(world: World) -> Iterator[str]:
    """Releases that noise was made for, and that were not made."""
    privacy = world.protocol.privacy
    if privacy is None or privacy.noiseless or privacy.updates is None:
        return
    holds = world.setting.task.train.counts > 0 if world.setting.task.columns is None else True
    inside = np.flatnonzero(world.protected & holds)
    made = np.array([world.ledger.releases(agent) for agent in inside.tolist()])
    if len(made) and np.median(made) < privacy.updates:
        least, most = int(made.min()), int(made.max())
        span = (
            f"{least}" if least == most else f"{least} to {most}, by half of the agents {int(np.median(made))} at most"
        )
        yield f"releases planned for each agent {privacy.updates}, made {span}: the noise is larger than it has to be"


def _magnitudes_of(world: World) -> _Magnitudes:
    blocks = {
        name: float(np.abs(block.values).max(initial=0.0))
        for name, block in (*world.state.agent.items(), *world.state.edge.items())
    }
    kept = vars(world.protocol).items()
    lengths = {n: len(v) for n, v in kept if isinstance(v, list | dict | set)}
    return _Magnitudes(world.now, blocks, lengths)
