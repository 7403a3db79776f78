"""The compiled form of a protocol's steps in one world, and why there is none where that is worth saying."""

from __future__ import annotations

import numpy as np
from numba.core import config

from ....agents.compilation.compiled import form_of, is_patched
from ....protocols.base import Protocol
from ....protocols.kernel import Compiled
from ....protocols.steps.building import NotCompiled, build
from ....protocols.steps.surroundings import StepSurroundings
from ....protocols.steps.tape import Tape
from ....protocols.steps.word_form import NoForm
from ...world.step_form import StepForm
from ...world.world import World
from .watched_steps import WatchedSteps

UNTRIED = "unless numba refuses its text, which nobody has compiled here yet"
"""What is open about the form of a step."""


def kernel_of(world: World, *, cold: bool = True) -> tuple[Compiled | None, str]:
    """A protocol's compiled step, and why it has none where that is worth saying.

    It is made of the protocol's texts, or what the protocol vouches for (`form_of`).
    """
    protocol, state = world.protocol, world.state
    form, kind = form_of(protocol, "kernel"), type(protocol)
    if form is not None:
        return form(state), ""
    if protocol.texts and kind.kernel is Protocol.kernel:
        return _built(world, cold=cold)
    if kind.kernel is Protocol.kernel or protocol.kernel(state) is None:
        return None, ""
    if "kernel" in vars(kind):
        return None, f"a method of this very {kind.__name__} was replaced"
    return None, f"{kind.__name__} does not define kernel itself"


def watched_steps(world: World) -> tuple[WatchedSteps | None, str]:
    """The compiled steps of a world that is watched, and why there are none where that is worth saying.

    Those of texts, that is; a kernel that was written by hand tells nobody what it draws, and is watched in Python.
    """
    protocol = world.protocol
    if not protocol.texts or type(protocol).kernel is not Protocol.kernel:
        return None, ""
    kinds = [int(np.max(kind.width)) for kind in world.layout.messages.values()]
    blocks = [int(np.max(width)) for width in (*world.layout.agent.values(), *world.layout.edge.values())]
    tape = Tape(max([world.setting.task.dimension, *kinds, *blocks]))
    kernel, why = _built(world, tape)
    return (None, why) if kernel is None else (WatchedSteps(world, kernel, tape), "")


def foreseen(world: World) -> StepForm:
    """The form in which an unwatched world's steps will be made, as far as that is known without compiling them."""
    try:
        kernel, why = kernel_of(world, cold=False)
    except NotCompiled:
        return StepForm("compiled", UNTRIED)
    return said_form(world, why, compiled=kernel is not None)


def said_form(world: World, why: str, *, compiled: bool) -> StepForm:
    """The form in which a world's steps are made, with the reason that `kernel_of` has given, or the usual one."""
    if compiled:
        return StepForm("compiled")
    name = type(world.protocol).__name__
    if not why and world.traits.trigger == "message":
        why = f"{name} reacts to single messages"
    return StepForm("python", why or f"{name} makes its steps by methods, and has no text of them")


def _built(world: World, tape: Tape | None = None, *, cold: bool = True) -> tuple[Compiled | None, str]:
    """The compiled form of a protocol's texts, or why there is none."""
    protocol, name = world.protocol, type(world.protocol).__name__
    if is_patched(protocol):
        return None, f"a method of this very {name} was replaced"
    if protocol.methods_beside_texts:
        return None, f"{name} has a method {protocol.methods_beside_texts[0]} beside its text"
    if config.DISABLE_JIT:  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        return None, "numba is told to compile nothing"
    around = StepSurroundings(
        state=world.state,
        unheard_is_own=world.setting.network.start != "zero",
        numbers=world.numbers,
        seed=world.setting.draws.seed,
        view=world.views.__getitem__,
        ledger=world.ledger,
        some_join=bool(world.setting.availability.joins),
    )
    try:
        return build(protocol, protocol.texts, around, tape, cold=cold), ""
    except NoForm as why:
        return None, str(why)
