"""Comparison of a declared linear map with a recorded run: its releases with draws, its weights with all messages.

A bound on what observers learn relies on it (`hushnet.simulator.observers.linear_view`), and so has to hold for each
vector that leaves an agent, not only for what agents hold at some instants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...protocols.linear_map import START
from ...protocols.privacy.mechanisms import Release
from ..observers import LinearView, deliveries_of, linear_view, mistake_of
from ..recording.message_log import MessageLog
from ..world.world import World
from .draws import Draw, Step
from .transcript import Recording
from .violation import ContractViolation

Array = NDArray[np.float64]
ROUNDING = 1e-9
"""Part of the sum of all terms' sizes by which a value may be off."""


def note_messages(world: World) -> None:
    """Have a world that is about to run note all of its messages, if its protocol declares a linear map."""
    if world.protocol.linear_map() is not None:
        world.observer = MessageLog(None, world.setting.task.ids, world.setting.graph, whole=True)


def check_linear_map(world: World, recording: Recording) -> None:
    """Compare a declared linear map with the run that was recorded; nothing is compared where it gives no bound.

    Raises `ContractViolation` if it states another release than was drawn, or gives other messages than were sent.
    """
    if world.protocol.linear_map() is None:
        return
    deliveries = deliveries_of(world)
    view = linear_view(world, deliveries)
    if view is None:
        return
    mistake = mistake_of(world, deliveries, view)
    if mistake:
        raise ContractViolation(mistake)
    (kind,), name = view.declared.sent, type(world.protocol).__name__
    made, rows, vectors, steps = list(_numbered(recording)), list[Array](), list[Array](), list[Step]()
    values = _values(world, view, recording, {(step.agent, number): draws for step, number, draws in made})
    place = {key: w for w, key in enumerate(zip(deliveries.agent.tolist(), deliveries.number.tolist(), strict=True))}
    for step, number, _ in made:
        for sent in step.sent if number == START or (step.agent, number) in place else ():
            rows.append(view.starts[step.agent] if number == START else view.sent[place[step.agent, number]])
            vectors.append(sent.vector)
            steps.append(step)
    if not rows or not view.releases:
        return
    for row, what in _differences(np.array(vectors), np.array(rows), values):
        raise ContractViolation(f"{name}: the {kind!r} that {recording.where(steps[row])} sends {what}")


def _numbered(recording: Recording) -> Iterator[tuple[Step, int, list[Draw]]]:
    """Yield each start and step with its number and the draws that were made in it."""
    before: dict[int, int] = defaultdict(int)
    made: dict[int, int] = defaultdict(int)
    for step in recording.steps:
        draws = recording.draws[step.agent][before[step.agent] : step.drawn]
        before[step.agent] = step.drawn
        yield step, START if step.phase == "start" else made[step.agent], draws
        made[step.agent] += step.phase != "start"


def _values(world: World, view: LinearView, recording: Recording, drawn: dict[tuple[int, int], list[Draw]]) -> Array:
    """(R, p) values that were released, NaN where nothing was drawn because the value is public."""
    name, width = type(world.protocol).__name__, next(iter(world.layout.messages.values())).width
    values = np.full((len(view.releases), int(np.max(width))), np.nan)
    stated = zip(view.owners.tolist(), view.numbers.tolist(), view.releases, strict=True)
    for column, (agent, number, release) in enumerate(stated):
        draws = drawn.pop((agent, number), [])
        if not release.noisy:
            continue
        was = [_words(draw.release) for draw in draws]
        if was != [_words(release)]:
            raise ContractViolation(
                f"{name}: its linear_map states {_words(release)} for {_place(number)} of {recording.agent(agent)}, "
                f"which has drawn {', '.join(was) or 'none'}"
            )
        shared = view.declared.shared
        if shared is not None and number == START and not np.array_equal(draws[0].exact, shared.given.get(agent, ())):
            raise ContractViolation(
                f"{name}: {recording.agent(agent)} releases another value than that to which its shared noise was "
                "added; give release.perturb what SharedNoise.added returns"
            )
        values[column] = draws[0].noisy
    for (agent, number), draws in drawn.items():
        if draws:
            raise ContractViolation(
                f"{name}: its linear_map states no release for {_place(number)} of {recording.agent(agent)}, which has "
                f"drawn {_words(draws[0].release)}"
            )
    return values


def _words(release: Release) -> str:
    return f"{release.mechanism} noise of scale {release.scale:.9g} for a sensitivity of {release.sensitivity:.9g}"


def _place(number: int) -> str:
    return "the start" if number == START else f"step {number + 1}"


def _differences(vectors: Array, weights: Array, values: Array) -> Iterator[tuple[int, str]]:
    """Yield messages that are not their (k, R) weights times the (R, p) values, and how.

    Values that are public are first found from the messages themselves.
    """
    if vectors.shape[1:] != values.shape[1:]:
        yield 0, f"has {vectors.shape[1]} numbers, and what is released has {values.shape[1]}"
        return
    unknown = np.isnan(values).any(axis=1)
    if unknown.any():
        known = weights[:, ~unknown] @ values[~unknown]
        values = values.copy()
        values[unknown] = np.linalg.lstsq(weights[:, unknown], vectors - known, rcond=None)[0]
    meant, room = weights @ values, ROUNDING * (np.abs(weights) @ np.abs(values)) + np.finfo(np.float64).tiny
    for row, column in zip(*np.nonzero(~(np.abs(vectors - meant) <= room)), strict=True):
        given, wanted = vectors[row, column], meant[row, column]
        yield int(row), f"is not what its linear_map gives: coordinate {column} is {given:.9g}, by the map {wanted:.9g}"
