"""Objectives that a figure or the target holds side by side: refused before any run where they are not of one kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...agents.errors import InputError
from ...agents.quantity import Quantity, unlike
from ...protocols.base import Protocol
from ..language.figure_kinds import FIGURE_KINDS
from ..language.figure_parameters import Figure
from ..language.loading import GridPoint, LoadedScenario
from ..language.scenario import Scenario
from ..metrics.costs import TO_TARGET

Field = tuple[str | int, ...]

OBJECTIVE = ("objective", "gap")
"""Names of the objective in figures."""


class SideBySide(NamedTuple):
    """A field of a scenario that holds objectives of protocols side by side."""

    field: Field
    protocols: list[str]
    """Their keys."""
    level: float | None = None
    """What all of them are to reach."""


def check_objectives(
    scenario: Scenario, points: Iterable[GridPoint], measured: Callable[[GridPoint, str], Quantity | None]
) -> None:
    """Refuse a figure or target that holds objectives of several kinds side by side.

    `measured` tells what the objective of a protocol measures at a point of the grid; None where it is not known, or it
    has none. Raises `InputError` with the field.
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

    `there_are` tells whether the objective that is measured of some run exists. Raises `InputError` with the field.
    """
    recorded, of = scenario.measured(), scenario.record.objective_of
    if "objective" not in recorded or (of is None and set(recorded) != {"objective"}) or there_are():
        return
    if of is not None:
        raise InputError("minimises no objective that could be measured", field=("record", "objective_of"))
    sentence = "no protocol minimises an objective, so nothing would be recorded; add other metrics"
    raise InputError(sentence, field=("record", "metrics"))


def check_classes(loaded: LoadedScenario) -> None:
    """`check_measured` as far as protocols' classes tell whether they minimise an objective; raises like it."""
    of, resolve = loaded.scenario.record.objective_of, loaded.code.protocol
    named = [each for point in loaded.points for each in point.scenario.protocols.items()]
    kinds = {parameters.kind for key, parameters in named if of in (None, key)}
    there_are = (resolve(kind).objective is not Protocol.objective for kind in kinds)
    check_measured(loaded.scenario, lambda: any(there_are))


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
