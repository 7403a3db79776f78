"""Comparison of a declared linear map with a recorded run: its releases with draws, its weights with all messages.

A bound on what observers learn relies on it (`hushnet.simulator.observers.linear_view`), and so has to hold for each
vector that leaves an agent, not only for what agents hold at some instants.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...protocols.linear_map import START
from ...protocols.privacy.mechanisms import Release
from ..observers import Deliveries, LinearView, deliveries_of, differences, linear_view, mistake_of
from ..recording.message_log import MessageLog
from ..world.world import World
from .transcript import Recording
from .violation import ContractViolation

Array = NDArray[np.float64]


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
    mistake = mistake_of(world, deliveries, view, None)
    if mistake:
        raise ContractViolation(mistake)
    values = _values(world, view, recording)
    (kind,), name = view.declared.sent, type(world.protocol).__name__
    rows, vectors, steps = [], list[Array](), list[Any]()
    for step, weights in _weights_of_steps(deliveries, view, recording):
        for sent in step.sent:
            rows.append(weights)
            vectors.append(sent.vector)
            steps.append(step)
    if not rows or not view.releases:
        return
    for row, what in _differences(np.array(vectors), np.array(rows), values):
        raise ContractViolation(f"{name}: the {kind!r} that {recording.where(steps[row])} sends {what}")


def _weights_of_steps(deliveries: Deliveries, view: LinearView, recording: Recording) -> Any:
    """Yield recorded starts and steps, each with the (R,) weights of what it sends."""
    place = {key: w for w, key in enumerate(zip(deliveries.agent.tolist(), deliveries.number.tolist(), strict=True))}
    made: dict[int, int] = defaultdict(int)
    for step in recording.steps:
        if step.phase == "start":
            yield step, view.starts[step.agent]
        elif step.phase == "step":
            number, made[step.agent] = made[step.agent], made[step.agent] + 1
            if (step.agent, number) in place:
                yield step, view.sent[place[step.agent, number]]


def _values(world: World, view: LinearView, recording: Recording) -> Array:
    """(R, p) values that were released, NaN where nothing was drawn because the value is public."""
    name, width = type(world.protocol).__name__, next(iter(world.layout.messages.values())).width
    values = np.full((len(view.releases), int(np.max(width))), np.nan)
    drawn = _draws_of_steps(recording)
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


def _draws_of_steps(recording: Recording) -> dict[tuple[int, int], list[Any]]:
    found: dict[tuple[int, int], list[Any]] = {}
    before: dict[int, int] = defaultdict(int)
    number: dict[int, int] = defaultdict(int)
    for step in recording.steps:
        draws = recording.draws[step.agent][before[step.agent] : step.drawn]
        before[step.agent] = step.drawn
        if step.phase == "start":
            found[step.agent, START] = draws
        else:
            found[step.agent, number[step.agent]] = draws
            number[step.agent] += 1
    return found


def _differences(vectors: Array, weights: Array, values: Array) -> Any:
    """Compare messages with what the map gives; values that are public are first found from the messages themselves."""
    unknown = np.isnan(values).any(axis=1)
    if unknown.any():
        known = weights[:, ~unknown] @ values[~unknown]
        values = values.copy()
        values[unknown] = np.linalg.lstsq(weights[:, unknown], vectors - known, rcond=None)[0]
    return differences(vectors, weights, values)
