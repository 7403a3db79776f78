"""Times of steps of other programs: FedScale's capacities of devices, and lists of durations by agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...agents.errors import InputError
from .cells import cells_of, read_text
from .presence import AGENTS
from .units import Durations, unit_in

DURATIONS = ("duration", "computation", "compute", "step_time", "time", "seconds")


def read_step_times(path: Path, given: Durations, notes: list[str]) -> list[tuple[str, float]]:
    """Read an agent and the time of a step from each row, in time units.

    Times are in what a column's name says by default, and ms for FedScale's capacities (Lai et al. 2022); what the file
    was taken for is added to `notes`. Raises `InputError` if it cannot be read, or a time is negative.
    """
    text = read_text(path, notes)
    if text.lstrip().startswith("{"):
        try:
            every: Any = json.loads(text)
            found = [(str(name), float(one["computation"]), f"{path}: {name}") for name, one in every.items()]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            said = f"{type(error).__name__}: {error}"
            raise InputError(f"{path}: is no file of capacities by client with computation ({said})") from None
        notes.append(
            f"FedScale's capacities of {len(found)} clients, whose computation is a step; communication is left out"
        )
        own = "ms"
    else:
        table = cells_of(path, text)
        agent, place = table.column(AGENTS), table.column(DURATIONS)
        if table.header is None:
            agent, place = 0, 1
        if agent is None or place is None:
            raise InputError(
                f"{path}:1: of {', '.join(table.header or [])} no columns are called agent and duration; rename them"
            )
        notes += ["times of steps, several of an agent in their order", *table.notes]
        found = [(table.cell(k, agent), table.number(k, place), table.at(k)) for k in range(len(table.rows))]
        own = unit_in(table.header[place] if table.header else "")
    unit = given.unit_or(own, path)
    for _, value, where in found:
        if not 0 <= value < float("inf"):
            raise InputError(f"{where}: a time of {value:g} must be a finite number from 0")
    notes.append(f"times in {unit}")
    return [(name, given.time.of(value, unit)) for name, value, _ in found]
