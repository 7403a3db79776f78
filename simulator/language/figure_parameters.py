"""Fields of a scenario's figure, and checks that the experiment has the data that a figure asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ...agents.durations import Timed
from ...agents.errors import InputError
from ...agents.kinds import NameOf
from ...agents.parameters import Instant, Parameters
from ...agents.suggestions import listed, require
from ...protocols.user_files import is_file
from ..metrics import METRICS, more_is_better, recordable
from ..metrics.costs import TO_TARGET
from ..metrics.epsilon import PAIRS
from ..metrics.metric import OWN, names_of, statistics, traced_by
from .figure_kinds import FIGURE_KINDS, SWEPT, FigureKind, asked, kind_asked_by, named_kinds
from .figure_style import FigureStyle
from .names import Name

ALWAYS_PER_AGENT = ("degree", "samples", "model")
"""What is known of agents beside metrics; a model where it is one number."""


def per_agent(*, always: bool = False) -> tuple[str, ...]:
    """Names of the values that a portrait may colour agents by; with `always`, of those that need no record."""
    found = names_of(lambda metric: metric.per_agent and (metric.unasked or not always))
    return (*found, *ALWAYS_PER_AGENT)


USUAL_Y = {"messages": "messages", "observers": PAIRS.name, "rows": "samples"}
"""What figures show that can show nothing else, by what their kind shows."""
BIN = "samples "
"""What begins the statistics of agents with about as many samples, whose numbers are known with the data."""

Kind = Annotated[str, NameOf(FIGURE_KINDS)]
Scalar = Annotated[bool | int | float | str, Timed(always=False)]


class Figure(Parameters):
    """A figure: one metric against time, cost, privacy or swept parameters; or one run's agents or messages."""

    kind: Kind | None = Field(
        default=None,
        description=f"{', '.join(f'{kind.name} ({kind.about})' for kind in FIGURE_KINDS.values())}; "
        "by default what x and rows ask for.",
    )
    y: str = Field(
        description=f"A metric of the trace: {', '.join(METRICS)}; or {', '.join(TO_TARGET)}. A portrait, a scatter "
        "and samples take what is known per agent; a timeline shows messages, pairs and by_distance epsilon_observers."
    )
    x: str = "time"
    """time, activations, vectors, updates, epochs, bytes, messages, samples, protocol, or a name in the sweep; of a
    frontier epsilon_verified, epsilon_claimed, epsilon_observers (of the worst pair), time, activations, vectors,
    messages, bytes or one of those to target. Vectors and messages do not count what agents exchange before
    their start; vectors_with_start and messages_with_start do."""
    rows: str | None = None
    """Second swept parameter of a heat map, from bottom to top."""
    facet: str | list[str] | None = None
    """One panel for each protocol (``protocol``), each value of a swept parameter (its name), or each metric of a list;
    axes are shared. A name that a record takes for several metrics, such as ``epsilon``, has a panel for each."""
    panels: list[Literal["unit", "adjacency", "observer"]] | None = None
    """What protocols of one panel of a frontier have in common; by default all three against epsilon, else none."""
    at: dict[str, Scalar] = Field(default={})
    """Where in the sweep: values by name; by default everywhere."""
    baseline: str | None = None
    """Key of a protocol: bars, sweeps, heat maps and scatters show the difference from it, seed by seed."""
    wins: bool = False
    """Whether bars and sweeps show in which share of the seeds a protocol beats the baseline; a tie counts one half."""
    target: bool = False
    """Whether curves show the level that the scenario's target asks for."""
    by: Literal["protocol"] = "protocol"
    """What the lines are."""
    interval: Literal["95%", "seeds", "none"] = "95%"
    """What stands around the means: their 95 % t interval over seeds, which stays within what the metric can be (of
    wins the score interval of their share), and below five seeds every seed as a thin line instead; always every seed;
    or none."""
    statistic: str = ""
    """Statistic of the metric; by default value (objective), worst (epsilon), sent (traffic), else mean."""
    log: Literal["none", "x", "y", "both"] = "none"
    """Logarithmic axes; y is the colours of a heat map."""
    title: str | None = None
    """Above the figure."""
    x_label: str | None = None
    """Below the x axis, instead of the name of what it shows."""
    y_label: str | None = None
    """Beside the y axis, instead of the name of what it shows."""
    protocols: list[str] | None = Field(default=None, min_length=1)
    """Keys of the protocols that it shows; all by default."""
    seed: int | None = Field(default=None, ge=0)
    """Which repetition a portrait, timeline, map of pairs or figure of labels shows; the first by default."""
    between: list[Instant] | None = Field(default=None, min_length=2, max_length=2)
    """First and last time unit of a timeline; by default all that was recorded."""
    name: Name | None = None
    """Name of its files."""
    style: FigureStyle | None = None
    """How it looks, where that is not the scenario's style."""

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        """Statistic by metric, x by kind, y by facets."""
        if not isinstance(data, dict):
            return data
        filled = dict(data)
        facet = filled.get("facet")
        if facet is None and isinstance(filled.get("y"), str) and len(traced_by([filled["y"]])) > 1:
            facet = [filled.pop("y")]
        if isinstance(facet, list) and facet and all(isinstance(name, str) for name in facet):
            filled["facet"] = facet = traced_by(facet)
            filled.setdefault("y", facet[0])
        kind = FIGURE_KINDS.get(str(filled.get("kind")))
        if kind is not None and kind.shows in USUAL_Y:
            filled.setdefault("y", USUAL_Y[kind.shows])
        if "x" not in filled:
            default = "time" if kind is None else kind.default_x
            filled["x"] = "protocol" if default == "time" and str(filled.get("y")) in TO_TARGET else default
        if "statistic" not in filled and isinstance(filled.get("y"), str):
            y, others = filled["y"], "value" if is_file(filled["y"]) or filled["y"] in OWN else "mean"
            filled["statistic"] = METRICS[y].default if y in METRICS else others
        return filled

    @model_validator(mode="after")
    def _consistent(self) -> Figure:
        kind = FIGURE_KINDS[self.drawn_as]
        if kind.rows and self.rows is None:
            raise ValueError(f"a {kind.named.removesuffix('s')} needs x and rows, two names of the sweep")
        if not kind.rows and self.rows is not None:
            raise ValueError(f"rows belongs to {named_kinds(lambda one: one.rows)}, not to a {kind.name}")
        if kind.baseline == "must" and self.baseline is None:
            raise ValueError(f"a {kind.name} needs a baseline, the protocol that gains are counted from")
        if self.baseline is not None and not kind.baseline:
            known = named_kinds(lambda one: one.baseline)
            raise ValueError(f"baseline belongs to {known}, not to a {kind.name}")
        if self.wins and (self.baseline is None or not kind.wins):
            raise ValueError("wins needs a baseline, in bars or along a sweep")
        if self.y_label is not None and isinstance(self.facet, list):
            raise ValueError("y_label belongs to figures of one metric")
        if not kind.labelled and (self.x_label is not None or self.y_label is not None):
            raise ValueError(f"a {kind.name} has no axes, so neither x_label nor y_label")
        if self.between is not None and self.between[0] >= self.between[1]:
            raise ValueError(f"between {self.between} must be two times, the smaller one first")
        return self

    @property
    def drawn_as(self) -> str:
        """The kind, inferred where it is not given."""
        return kind_of(self.kind, self.x, self.rows)


def kind_of(kind: str | None, x: str, rows: str | None = None) -> str:
    """The kind that a figure has, or that its axes ask for."""
    return kind if kind is not None else kind_asked_by(x, rows).name


def check_figures(
    figures: Sequence[Figure],
    *,
    metrics: Sequence[str],
    swept: Sequence[str],
    protocols: Sequence[str],
    seeds: Sequence[int],
    messages: Sequence[float] | None,
) -> None:
    """Raise an `InputError` with its place if a figure asks for what the experiment will not have.

    That are metrics of the trace, names of the sweep, keys of protocols, labels of repetitions, and the times between
    which runs keep messages one by one, if they do.
    """
    names, known = Counter(figure.name for figure in figures), statistics()
    for number, figure in enumerate(figures):
        where, kind = ("figures", number), FIGURE_KINDS[figure.drawn_as]
        _check(figure, kind, where, metrics, swept, protocols)
        shown = not kind.per_run and (not isinstance(figure.facet, list) or figure.y in figure.facet)
        default = figure.statistic in ("", "mean") or figure.statistic.startswith(BIN)
        if shown and not default and figure.y in known:
            require(figure.statistic, known[figure.y], "is not recorded", (*where, "statistic"))
        if figure.style is not None:
            check_style(figure.style, swept, (*where, "style"))
        if figure.seed is not None and figure.seed not in seeds:
            raise InputError(f"is the seed of no run; admissible: {listed(seeds)}", field=(*where, "seed"))
        if kind.shows == "messages":
            if messages is None:
                wanted = "record: {messages: {agents: 4, between: [0, 5]}}, or other agents and times"
                raise InputError(f"a {kind.name} needs {wanted}", field=(*where, "kind"))
            first, last = figure.between or messages
            if first > messages[1] or last < messages[0]:
                span = f"{messages[0]:g} to {messages[1]:g}"
                wrong = f"messages are kept from time {span} (record.messages.between)"
                raise InputError(wrong, field=(*where, "between"))
        if figure.name is not None and names[figure.name] > 1:
            raise InputError(f"the name {figure.name!r} is used twice", field=(*where, "name"))


def check_style(style: FigureStyle, swept: Sequence[str], where: tuple[str | int, ...]) -> None:
    """Raise an `InputError` with its place if a style names a parameter that is not swept."""
    for field in ("labels", "units"):
        for name in getattr(style, field) or {}:
            require(name, swept, "is not swept", (*where, field, name))


def _check(
    figure: Figure,
    kind: FigureKind,
    where: tuple[str | int, ...],
    metrics: Sequence[str],
    swept: Sequence[str],
    protocols: Sequence[str],
) -> None:
    known = [*metrics, *TO_TARGET] if kind.shows == "metric or target" else list(metrics)
    if kind.shows == "agents":
        recorded = [name for name in metrics if name in per_agent()]
        known = list(dict.fromkeys([*recorded, *per_agent(always=True)]))
    if kind.shows == "messages":
        known = ["messages"]
    if kind.shows == "rows":
        known = ["samples"]
    if kind.shows == "observers":
        known = [PAIRS.name]
        if PAIRS.name not in metrics:
            wanted = f"needs observers: [agents], and {PAIRS.name} among record.metrics"
            raise InputError(f"a figure of kind {kind.name} {wanted}", field=(*where, "kind"))
    several = recordable().get(figure.y, ())
    if len(several) > 1:
        raise InputError(
            f"stands for {listed(several)}; choose one, for the figure has other panels", field=(*where, "y")
        )
    require(figure.y, known, "metric is not recorded", (*where, "y"))
    # A figure that names no kind may have on its x axis what would ask for another.
    axes = kind.axes(swept) if figure.kind is not None or SWEPT not in kind.asked_by else asked(swept)
    require(figure.x, axes, "unknown axis", (*where, "x"))
    if figure.wins and figure.y not in TO_TARGET and more_is_better(figure.y) is None:
        raise InputError("wins needs a metric of which more, or less, is better", field=(*where, "y"))
    if figure.rows is not None:
        require(figure.rows, [name for name in swept if name != figure.x], "unknown axis", (*where, "rows"))
    if isinstance(figure.facet, list):
        for rank, name in enumerate(figure.facet):
            require(name, known, "metric is not recorded", (*where, "facet", rank))
    elif figure.facet is not None:
        free = [name for name in swept if name not in (figure.x, figure.rows)]
        require(figure.facet, ["protocol", *free], "unknown facet", (*where, "facet"))
    for name in figure.at:
        require(name, swept, "is not swept", (*where, "at", name))
    if figure.baseline is not None:
        require(figure.baseline, protocols, "unknown protocol", (*where, "baseline"))
    for rank, key in enumerate(figure.protocols or []):
        require(key, protocols, "unknown protocol", (*where, "protocols", rank))
