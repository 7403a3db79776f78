"""Rehearsal of a scenario's figures: made-up results are drawn, and what drawing refuses is refused in time.

The made-up results have the protocols, grid points, seeds, metrics and statistics that the experiment will have, as far
as the scenario alone tells, and numbers of no meaning. What luck decides (nobody reached the target, nothing arrived)
is not looked for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...agents.authors import class_place, place_of
from ...agents.errors import InputError
from ...protocols.base import Layout, Protocol, ProtocolParameters
from ...protocols.steps.single_steps import PHASES
from ..language.figure_kinds import FIGURE_KINDS
from ..language.figure_parameters import BIN, Figure
from ..language.loading import GridPoint, LoadedScenario
from ..language.scenario import Scenario
from ..metrics import METRICS
from ..metrics.costs import COSTS
from ..metrics.metric import names_of
from ..metrics.trace import ROW
from ..tables.session_table import check_exchange
from .memory import Resolve, Sizes, early_layout, expected_layout

if TYPE_CHECKING:
    from ..analysis.results import Collection

MOST_RUNS = 2_000
"""Runs that are made up: of more, those of the first seeds, and of the first grid points."""

AGENTS, DIMENSION = 3, 2

STATEMENT = {"unit": ["record"], "adjacency": ["replace-one"], "claimed": 1.0, "verified": 1.0, "delta": 1e-5,
             "flagged": False}  # fmt: skip
"""Privacy statement of a private run, but for the observer."""


def recorded(protocol: type[Protocol], parameters: ProtocolParameters, metrics: Iterable[str]) -> set[str]:
    """Those of some metrics that runs of a protocol have numbers of, as far as its class and its layout tell."""
    layout, found = expected_layout(protocol, parameters, Sizes(AGENTS, DIMENSION)), set[str]()
    measured = protocol.objective is not Protocol.objective
    modelled = "model" in layout.agent or protocol.models is not Protocol.models
    needed = {
        "objective": measured,
        "distance": measured and modelled,
        "age": bool(layout.messages) and protocol.traits_for(parameters).exchange != "pairwise",
        "conserved": protocol.conserved is not Protocol.conserved,
    }
    for name in metrics:
        metric = METRICS.get(name)
        if needed.get(name, modelled or metric is None or not (metric.criterion or metric.rows)):
            found.add(name)
    return found


def check_layouts(loaded: LoadedScenario) -> None:
    """Refuse protocols whose blocks, messages or functions do not fit, as far as is known before there are data.

    Raises `InputError` with the protocol's field, and the line of its class.
    """
    for key, given in loaded.scenario.protocols.items():
        protocol = loaded.code.protocol(given.kind)
        traits = protocol.traits_for(given)
        halves = [name for name in PHASES if getattr(protocol, name) is not None]
        layout = early_layout(protocol, given, Sizes(AGENTS, DIMENSION))
        with _at(("protocols", key)):
            if layout is not None:
                check_layout(protocol, layout)
            if traits.exchange == "pairwise" and layout is not None:
                check_exchange(protocol, traits, layout)
            elif traits.exchange != "pairwise" and halves and protocol.step is None:
                raise InputError(
                    f"{class_place(protocol)}: {protocol.__name__} has {halves[0]} and no step, which nobody would "
                    'call; set traits = Traits(exchange="pairwise")'
                )


def check_layout(protocol: type[Protocol], layout: Layout) -> None:
    """Refuse a layout with names that are none, with the line where the protocol makes it."""
    try:
        layout.check()
    except ValueError as error:
        raise InputError(f"{place_of(protocol.layout)}: {error}") from error


def rehearse(loaded: LoadedScenario) -> None:
    """Draw the scenario's figures from made-up results, and find its target in them.

    Raises `InputError` with the figure's or the target's field.
    """
    scenario = loaded.scenario
    check_layouts(loaded)
    unlike = ("messages", "observers", "rows")
    of_one_run = {name for name, kind in FIGURE_KINDS.items() if kind.shows in unlike} | {"portrait"}
    known = _recorded_by(loaded)
    figures = [
        (rank, figure)
        for rank, figure in enumerate(scenario.figures)
        if not (figure.drawn_as in of_one_run or is_plain_curve(scenario, figure, known))
    ]
    if not figures and scenario.target is None:
        return
    from ..analysis.targets import reached
    from ..figures.facets import plots
    from ..figures.figure_files import drawing

    _check_fonts(scenario)
    made = made_up(loaded, known)
    if scenario.target is not None:
        with _at(("target", "metric")):
            reached(made, None, "time")
    for rank, figure in figures:
        with _at(("figures", rank)):
            if _may_lack_room(scenario, figure):
                drawing(made, figure.model_dump(), f"figure {rank}")
            else:
                plots(made, figure.model_dump())


def shown(scenario: Scenario) -> dict[str, Any]:
    """Fields of an index that say how to show an experiment."""
    return {
        "figures": [figure.model_dump() for figure in scenario.figures],
        "style": scenario.style.model_dump(exclude_none=True),
        "labels": {key: scenario.label(key) for key in scenario.protocols},
        "time_unit": scenario.time_unit,
        "target": scenario.target and scenario.target.model_dump(exclude_none=True),
    }


def _recorded_by(loaded: LoadedScenario) -> dict[str, set[str]]:
    """Metrics that runs have numbers of, by protocol."""
    scenario, resolve = loaded.scenario, loaded.code.protocol
    first = loaded.points[0].scenario.protocols.items()
    known = {key: recorded(resolve(given.kind), given, scenario.traced()) for key, given in first}
    if scenario.record.objective_of is not None:
        return {key: {*names, "objective"} for key, names in known.items()}
    return known


def is_plain_curve(scenario: Scenario, figure: Figure, known: Mapping[str, Set[str]]) -> bool:
    """True if drawing has nothing to refuse, and so needs no rehearsal: a metric that is there, over time or cost."""
    shown = figure.protocols or list(scenario.protocols)
    return (
        figure.drawn_as == "curve"
        and figure.x in (*COSTS, "updates")
        and figure.facet in (None, "protocol")
        and not (figure.at or figure.target or _may_lack_room(scenario, figure))
        and figure.y in METRICS
        and not figure.y.startswith("epsilon")
        and figure.statistic in METRICS[figure.y].statistics
        and all(figure.y in known[key] for key in shown)
    )


def made_up(loaded: LoadedScenario, known: Mapping[str, Set[str]]) -> Collection:
    """Results as the scenario's would be, without a run: two records each, the later one at its target.

    They have the metrics that are known by protocol.
    """
    import pandas as pd

    from ..analysis.results import Collection
    from ..storage.dataset import grid_table

    scenario, resolve = loaded.scenario, loaded.code.protocol
    runs = list(itertools.islice(_runs(loaded), MOST_RUNS))
    ids = [str(number) for number in range(len(runs))]
    manifests = [_manifest(point, key, seed, resolve) for point, key, seed in runs]
    grid = grid_table([point.values for point, *_ in runs]).to_pandas()
    about = pd.concat([pd.DataFrame({"run": ids, "protocol": [key for _, key, _ in runs]}), grid], axis=1)
    asked = _statistics(loaded)
    rows = [(run, *row) for run, (_, key, _) in zip(ids, runs, strict=True) for row in _rows(loaded, known[key], asked)]
    agents = [(run, str(number), *each) for run in ids for number, each in enumerate(_agents())]
    columns = ["run", "agent", "samples", "degree", "updates", *_per_agent(loaded)]
    trace = pd.DataFrame(rows, columns=["run", *ROW]).merge(about, on="run")
    filled = [(*each, *[0.5] * len(_per_agent(loaded))) for each in agents]
    return Collection(
        trace, pd.DataFrame(filled, columns=columns).merge(about, on="run"), manifests, ids, shown(scenario)
    )


def _runs(loaded: LoadedScenario) -> Iterator[tuple[GridPoint, str, int]]:
    """Grid point, protocol and seed of every run; seed by seed where there are too many of them."""
    seeds = [seed for seed, *_ in loaded.scenario.seed_pairs()]
    for seed in seeds:
        for point in loaded.points:
            for key in point.scenario.protocols:
                yield point, key, seed


def _manifest(point: GridPoint, key: str, seed: int, resolve: Resolve) -> dict[str, Any]:
    scenario, given = point.scenario, point.scenario.protocols[key]
    protocol = resolve(given.kind)
    private = getattr(given, "privacy", None) or getattr(given, "noise", None)
    return {
        "scenario": {"record": {"objective_of": scenario.record.objective_of}},
        "protocol": key,
        "label": scenario.label(key),
        "seed": seed,
        "grid": point.values,
        "status": "complete",
        "epoch": None if protocol.epoch is Protocol.epoch else 1.0,
        "privacy": None if private is None else {**STATEMENT, "observer": str(protocol.observer)},
        "totals": {"start_vectors": 0},
    }


def _statistics(loaded: LoadedScenario) -> dict[str, set[str]]:
    """Statistics that figures ask for of metrics of which nobody knows them before a run."""
    found: dict[str, set[str]] = {}
    for figure in loaded.scenario.figures:
        unknown = figure.y not in METRICS or not METRICS[figure.y].statistics or figure.statistic.startswith(BIN)
        if unknown and figure.statistic:
            found.setdefault(figure.y, set()).add(figure.statistic)
        if figure.x in METRICS and not METRICS[figure.x].statistics:
            found.setdefault(figure.x, set()).add("worst")  # which a frontier shows
    return found


def _rows(loaded: LoadedScenario, known: Set[str], asked: Mapping[str, set[str]]) -> Iterator[tuple[Any, ...]]:
    """Rows of a made-up trace: every metric from a value towards a better one, and to its target."""
    target = loaded.scenario.target
    for metric in filter(known.__contains__, loaded.scenario.traced()):
        listed = METRICS[metric].statistics if metric in METRICS else ()
        level = target.level if target is not None and target.metric == metric else None
        more = metric in METRICS and METRICS[metric].better == "more"
        begun, ended = (0.25, 0.5) if more else (1.0, 1e-9)
        if level is not None:
            begun, ended = (level - 1, level) if more else (level + 1, level)
        for statistic in (*listed, *sorted(asked.get(metric, ()))) or ("value",):
            yield 0.0, 0, 0, 0, 0, metric, statistic, begun
            yield 1.0, AGENTS, AGENTS, AGENTS, AGENTS, metric, statistic, ended


def _agents() -> Iterator[tuple[int, int, int]]:
    """Samples, neighbours and updates of agents that differ."""
    return ((number + 1, number + 1, number + 1) for number in range(AGENTS))


def _per_agent(loaded: LoadedScenario) -> list[str]:
    """Further numeric columns of the table of agents."""
    traced = loaded.scenario.traced()
    found = names_of(lambda metric: metric.per_agent is not None and (metric.unasked or metric.name in traced))
    return [name for name in found if name not in ("samples", "degree", "updates")]


def _check_fonts(scenario: Scenario) -> None:
    for style in (scenario.style, *(figure.style for figure in scenario.figures)):
        if style is not None and style.font is not None:
            from ..figures.series_style import check_font

            check_font(style)


def _may_lack_room(scenario: Scenario, figure: Figure) -> bool:
    """Say if letters may not fit, for the author has a say in sizes; as they usually are, they do."""
    own = figure.style is not None and figure.style.model_dump(exclude_none=True)
    return bool(own or scenario.style.model_dump(exclude_none=True))


@contextmanager
def _at(field: tuple[str | int, ...]) -> Iterator[None]:
    """Errors of drawing are about this field of the scenario."""
    try:
        yield
    except InputError as error:
        said = re.sub(r"^(figures|target): ", "", str(error))
        raise InputError(said, field=field) from error
