"""Objectives that a figure or the target holds side by side: refused before any run where they are not of one kind.

What a protocol's objective measures is asked of its class. With data and graph at hand (`hushnet run`) the answer is
the one that runs will give; from a scenario alone it is asked in two stand-in worlds of different size, and only what
differs in both is refused (`stand_in_quantity`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...agents.errors import INTERRUPTED, InputError
from ...agents.graph import Graph
from ...agents.quantity import Quantity, unlike
from ...agents.tables import Table
from ...agents.tasks.base import Task
from ...agents.tasks.outline import Outline
from ...protocols.base import Problem, Protocol, ProtocolParameters
from ..language.figure_kinds import FIGURE_KINDS
from ..language.figure_parameters import Figure
from ..language.loading import GridPoint, LoadedScenario
from ..language.scenario import Scenario
from ..metrics.costs import TO_TARGET

Field = tuple[str | int, ...]

OBJECTIVE = ("objective", "gap")
"""What figures call it."""

SIZES = (4, 6)
"""Agents of the stand-in worlds; of what words say, numbers that differ between them come from their size."""

ROWS, DIMENSION = 2, 3
"""Of every agent there. All have equally many rows, so that weights by agents and by rows are the same."""


class SideBySide(NamedTuple):
    """A field of a scenario that holds objectives of protocols side by side.

    Parameters
    ----------
    field : tuple of (str or int)
    protocols : list of str
        Their keys.
    level : float, optional
        What all of them are to reach.
    """

    field: Field
    protocols: list[str]
    level: float | None = None


def check_objectives(
    scenario: Scenario, points: Iterable[GridPoint], measured: Callable[[GridPoint, str], Quantity | None]
) -> None:
    """Refuse a figure or target that holds objectives of several kinds side by side.

    Parameters
    ----------
    scenario : Scenario
    points : iterable of GridPoint
    measured : callable
        What the objective of a protocol measures at a point of the grid; None where nobody knows yet, or it has none.

    Raises
    ------
    InputError
        With the field.
    """
    for point in points if (beside := list(side_by_side(scenario))) else ():
        known = {key: measured(point, key) for key in point.scenario.protocols}
        for each in beside:
            there = [(key, said) for key in known if key in each.protocols and (said := known[key]) is not None]
            for key, ours in there[1:]:
                first, theirs = there[0]
                labels = (scenario.label(key), scenario.label(first))
                if not ours.same_function(theirs):
                    raise InputError(unlike("objective", (labels[0], ours), (labels[1], theirs)), field=each.field)
                if each.level is not None and ours.times != theirs.times:
                    both = " and ".join(labels)
                    sentence = f"objectives of {both} differ in scale, and a level is of one; give a share"
                    raise InputError(sentence, field=("target", "level"))


def check_measured(scenario: Scenario, there_are: Callable[[], bool]) -> None:
    """Refuse to measure objectives where there are none: a table without numbers, or without any row.

    Parameters
    ----------
    scenario : Scenario
    there_are : callable
        Tells whether the objective that is measured of some run exists.

    Raises
    ------
    InputError
        With the field.
    """
    recorded, of = scenario.measured(), scenario.record.objective_of
    if "objective" not in recorded or (of is None and set(recorded) != {"objective"}) or there_are():
        return
    if of is not None:
        raise InputError("minimises no objective that could be measured", field=("record", "objective_of"))
    sentence = "no protocol minimises an objective, so nothing would be recorded; add other metrics"
    raise InputError(sentence, field=("record", "metrics"))


def side_by_side(scenario: Scenario) -> Iterator[SideBySide]:
    """The fields of a scenario that hold objectives side by side, each protocol's own."""
    if scenario.record.objective_of is not None or len(scenario.protocols) < 2:
        return
    every, target = list(scenario.protocols), scenario.target
    aims = target is None or target.metric == "objective"
    if target is not None and aims:
        yield SideBySide(("target", "metric"), every, target.level)
    for rank, figure in enumerate(scenario.figures):
        kind = FIGURE_KINDS[figure.drawn_as]
        if kind.per_run:
            continue
        apart = kind.by_protocol or figure.facet == "protocol"
        for name, field in _shown(figure):
            if name in OBJECTIVE and not apart:
                yield SideBySide(("figures", rank, *field), figure.protocols or every)
            elif name in TO_TARGET and aims:
                yield SideBySide(("figures", rank, *field), every)


def _shown(figure: Figure) -> Iterator[tuple[str, Field]]:
    """Metrics of a figure, each with its field."""
    if isinstance(figure.facet, list):
        yield from ((name, ("facet", rank)) for rank, name in enumerate(figure.facet))
    else:
        yield figure.y, ("y",)
    yield figure.x, ("x",)


def check_stand_ins(loaded: LoadedScenario) -> None:
    """`check_objectives` and `check_measured` as far as it is known without data and graph; raises like them."""
    known: dict[tuple[int, int], Quantity | Unknown | None] = {}

    def asked(point: GridPoint, key: str) -> Quantity | Unknown | None:
        task, given = point.scenario.task, point.scenario.protocols[key]
        place = (id(task), id(given))  # points share what is not swept
        if place not in known:
            known[place] = stand_in_quantity(loaded.code.protocol(given.kind), given, task.outline())
        return known[place]

    def measured(point: GridPoint, key: str) -> Quantity | None:
        found = asked(point, key)
        return None if isinstance(found, Unknown) else found

    def there_are() -> bool:
        of = loaded.scenario.record.objective_of
        keys = loaded.scenario.protocols if of is None else (of,)
        return any(asked(point, key) is not None for point in loaded.points for key in keys)

    check_objectives(loaded.scenario, _as_run(loaded), measured)
    check_measured(loaded.scenario, there_are)


def _as_run(loaded: LoadedScenario) -> Iterator[GridPoint]:
    """The points of the grid; where there is tuning, with whatever a trial may choose."""
    if not loaded.trials:
        yield from loaded.points
        return
    first = loaded.points[0]
    for trial in loaded.trials:
        chosen = {**first.scenario.protocols, **trial.scenario.protocols}
        yield GridPoint(trial.values, first.scenario.model_copy(update={"protocols": chosen}))


class Unknown:
    """What stand-in worlds cannot tell of an objective."""


def stand_in_quantity(
    protocol: type[Protocol], parameters: ProtocolParameters, outline: Outline
) -> Quantity | Unknown | None:
    """What the objective of a protocol measures, asked in two stand-in worlds.

    Returns
    -------
    Quantity, Unknown or None
        Its identity is that of both worlds, and its words are those that both agree on; None where the protocol has no
        objective, and unknown where it cannot be made in them.
    """
    found = []
    for agents in SIZES:
        try:
            made = protocol(parameters, stand_in(outline, agents)).objective()
            if made is None:
                return None
            found.append(made.quantity)
        except INTERRUPTED:
            raise
        except BaseException:  # whatever a protocol raises whose fields are about the scenario's own data
            return Unknown()
    first, second = found
    function = first.function if first.function == second.function else ""
    identity = " ".join(each.identity or each.function for each in found)
    return replace(first, function=function, identity=identity)


def stand_in(outline: Outline, agents: int) -> Problem:
    """A small problem of a task's kind: rows of its loss, on a ring, or columns around a centre."""
    rng, rows = np.random.default_rng(0), ROWS * agents
    features, labels = rng.uniform(-0.5, 0.5, (rows, DIMENSION)), np.where(np.arange(rows) % 2, 1.0, -1.0)
    split = outline.columns
    owners = np.zeros(rows, dtype=np.int64) if split else np.repeat(np.arange(agents), ROWS)
    table = Table.from_owners(features, labels, owners, agents)
    shares = np.array_split(np.arange(DIMENSION), agents - 1)
    task = Task(
        name="stand-in",
        ids=list(range(agents)),
        train=table,
        test=table,
        loss=outline.loss,
        regularisation=np.full(agents, 0.0 if split or not outline.regularised else 1.0 / ROWS),
        metric=outline.metric,
        bounds={norm: float(DIMENSION) for norm in ("l1", "l2") if norm in outline.bounded},
        columns=(np.empty(0, dtype=np.int64), *shares) if split else None,
    )
    others = np.arange(1, agents)
    tails, heads = (0 * others, others) if split else (np.arange(agents), (np.arange(agents) + 1) % agents)
    return Problem(task, Graph.from_edges(agents, tails, heads, np.ones(len(tails))))
