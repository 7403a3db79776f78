"""Changes of availability, compiled: the same draws as the timelines of `hushnet.agents.availability`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...agents.availability import BEYOND, DIURNAL, diurnal_time, on_off_length, on_off_rest
from ...agents.compilation import compiled
from ..network.randomness import QUANTUM, Purpose, draw_one
from ..tables.absences import AGENT, INDEX, IS_UP, NUMBER, AbsenceTable
from ..tables.effects import DOWN, UP
from .forms import rule

AVAILABILITY = int(Purpose.AVAILABILITY)


@rule
def following_change(law: Any, key: Any, number: int, index: int, up: bool, now: float):
    """Time of the next change, of this ``index``, of an agent that is up, or down, since ``now``."""
    u, v, _ = draw_one(key[0], key[1], number, 0, 0 if law.code == DIURNAL else index, AVAILABILITY, 0)
    if law.code == DIURNAL:
        return np.rint(diurnal_time(law.up, law.online, law.down, index, u) / QUANTUM) * QUANTUM
    mean = law.up if up else law.down
    if index > 1:
        length = on_off_length(mean, law.sigma, law.shift, u, v)
    else:
        share = draw_one(key[0], key[1], number, 0, 0, AVAILABILITY, 0)[1]
        length = on_off_rest(mean, law.sigma, law.shift, u, v, share)
    return now + np.rint(min(length, BEYOND) / QUANTUM) * QUANTUM


@rule
def first_change(law: Any, key: Any, number: int):
    """Return whether an agent is up at time 0, the time of its first change, and the number of that change."""
    if law.code == DIURNAL:
        index, time = 0, following_change(law, key, number, 0, False, 0.0)
        while time <= 0.0:
            index += 1
            time = following_change(law, key, number, index, False, 0.0)
        return index % 2 == 1, time, index
    up = draw_one(key[0], key[1], number, 0, 0, AVAILABILITY, 0)[0] < law.online
    return up, following_change(law, key, number, 1, up, 0.0), 1


@compiled(_nrt=False)
def begin_changes(law: Any, key: Any, numbers: Any, table: AbsenceTable, up: Any):  # pragma: no cover - compiled
    """Draw the state of all agents at time 0 and their first changes, by agent."""
    for agent in range(len(numbers)):
        up[agent], table.times[agent], index = first_change(law, key, numbers[agent])
        entry = table.heap[agent]
        entry[AGENT], entry[NUMBER], entry[INDEX], entry[IS_UP] = agent, agent, index, up[agent]


@compiled(_nrt=False)
def draw_changes(
    law: Any, key: Any, numbers: Any, table: AbsenceTable, until: float, times: Any, whats: Any, agents: Any
):  # pragma: no cover - compiled
    """Draw further changes up to a time, as many as there is room for, in order; how many.

    At equal times the order is that of the changes before them, or of the agents: so processes of one agent each would
    have asked for them.
    """
    queue, heap, count = table.times, table.heap, 0
    while queue[0] <= until and count < len(times):
        now, agent, index, up = queue[0], heap[0, AGENT], heap[0, INDEX] + 1, heap[0, IS_UP] == 0
        times[count], whats[count], agents[count] = now, UP if up else DOWN, agent
        count += 1
        time, number = following_change(law, key, numbers[agent], index, up, now), table.asked[0]
        table.asked[0] += 1
        here = 0
        while True:
            child = 2 * here + 1
            if child >= len(queue):
                break
            if child + 1 < len(queue):
                left, right = queue[child], queue[child + 1]
                if right < left or (right == left and heap[child + 1, NUMBER] < heap[child, NUMBER]):
                    child += 1
            if queue[child] > time:  # whatever is as early was asked for earlier
                break
            queue[here] = queue[child]
            entry, below = heap[here], heap[child]
            entry[AGENT], entry[NUMBER], entry[INDEX], entry[IS_UP] = (
                below[AGENT],
                below[NUMBER],
                below[INDEX],
                below[IS_UP],
            )
            here = child
        entry = heap[here]
        queue[here] = time
        entry[AGENT], entry[NUMBER], entry[INDEX], entry[IS_UP] = agent, number, index, up
    return count
