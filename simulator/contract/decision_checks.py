"""Check that decisions of steps follow from draws: other data change neither messages' times, kinds and receivers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from ..network.setting import Setting
from ..world.world import World
from .transcript import Recording
from .violation import ContractViolation


def flipped(setting: Setting) -> Setting:
    """Return the setting with the opposite label on every record, so that nothing that is learned stays as it is."""
    train = setting.task.train
    return replace(setting, task=replace(setting.task, train=replace(train, labels=-train.labels)))


def check_decisions(world: World, recording: Recording, other: Recording) -> None:
    """Compare what two runs on different data have sent, where a protocol says that its decisions follow from draws.

    Raises `ContractViolation` if they differ in who sent what kind of message when and to whom, or in the content of a
    public kind.
    """
    public = {name for name, kind in world.layout.messages.items() if kind.public}
    pairs = zip_longest(_decided(recording, public), _decided(other, public))
    for one, another in pairs:
        if one != another:
            step = one or another
            assert step is not None
            raise ContractViolation(
                f"{type(world.protocol).__name__} says that its decisions follow from draws (decides_by_draws), and on "
                f"other data {recording.agent(step[1])} sends other messages at time {step[2]:.6g}"
            )


def _decided(recording: Recording, public: set[str]) -> Iterator[tuple[Any, ...]]:
    """Yield phase, agent and time of each step, with what is not to depend on data of each of its messages."""
    for step in recording.steps:
        sent = [(one.kind, one.to, one.vector.tobytes() if one.kind in public else b"") for one in step.sent]
        yield step.phase, step.agent, step.now, sent, step.silent
