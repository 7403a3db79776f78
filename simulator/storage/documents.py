"""Models of ``index.json``, manifests and other documents, which are checked before anybody relies on them.

Other fields beside these are let through. What stands under a known
name has the type that readers expect; otherwise the file is damaged, or somebody else's, and one sentence says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from ...agents.errors import InputError
from ..language.figure_parameters import Figure
from ..language.names import Duration, Name
from ..language.sweeps import RESERVED, TRIAL
from .files import read_json

RunName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
"""A run's folder: a name, and no path."""


def _named(value: Any) -> Any:
    """A number that JSON has not, by the name that `hushnet.simulator.storage.files.json_text` gives it."""
    return float(value) if value in ("inf", "-inf", "nan") else value


Number = Annotated[int | float, BeforeValidator(_named)]
Checksum = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Words = dict[str, Any]


class _Document(BaseModel):
    """Known fields have their types; others are let through."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


FigureEntry: type[BaseModel] = create_model(
    "FigureEntry",
    __base__=_Document,
    **{
        name: (info.annotation | None, None)  # pyright: ignore
        for name, info in Figure.model_fields.items()
        if info.annotation and name != "style"
    },
    style=(Words | None, None),
)
"""A figure of an index: the fields of a scenario's, each of which may be missing; a style is read where it is used."""


class TargetEntry(_Document):
    """Target of an experiment: the level or share of a metric that counts as reached."""

    metric: str
    share: Number | None = None
    level: Number | None = None
    of: str | dict[str, str] | None = None
    statistic: str | None = None


class FailedEntry(_Document):
    """A run that failed, and where its details are."""

    protocol: str
    seed: int
    grid: Words
    error: str
    details: Annotated[str, Field(pattern=r"^failures/[0-9a-z]+\.txt$")] | None = None


class ChosenEntry(_Document):
    """Values that tuning chose for a protocol at a grid point."""

    protocol: str
    grid: Words
    values: Words
    score: Number


class TuningEntry(_Document):
    """Account of how parameters were chosen."""

    decided_by: str
    trials: int
    seeds: list[int]
    note: str
    warnings: list[str]
    table: RunName
    tuned_at: str = ""
    over: dict[str, list[Any]] | None = None
    chosen: list[ChosenEntry]


class Index(_Document):
    """``index.json``: the runs of the latest experiment, and how to show them."""

    scenario: Name | None = None
    runs: list[RunName]
    labels: dict[str, str | None] = {}
    figures: list[FigureEntry] | None = None  # pyright: ignore[reportInvalidTypeForm]
    style: Words | None = None
    time_unit: Duration | None = None
    grids: list[Words | None] | None = None
    target: TargetEntry | None = None
    tuning: TuningEntry | None = None
    failed: list[FailedEntry] | None = None
    planned: int | None = None

    @model_validator(mode="after")
    def _a_grid_for_each_run(self) -> Index:
        if self.grids is not None and len(self.grids) != len(self.runs):
            raise ValueError(f"has {len(self.grids)} grids for {len(self.runs)} runs")
        taken = sorted({name for grid in self.grids or () for name in grid or ()} & (set(RESERVED) - {TRIAL}))
        if taken:
            raise ValueError(f"has an axis that is called {taken[0]!r}, as a column of the results")
        return self


class Extremes(_Document):
    """Smallest, mean and largest of some numbers."""

    min: Number
    mean: Number
    max: Number


class TopologyEntry(_Document):
    """Numbers about a graph, and its name."""

    agents: int | None = None
    edges: int | None = None
    components: int | None = None
    degree: Extremes | None = None
    weight: Extremes | None = None
    graph: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None

    @model_validator(mode="after")
    def _all_or_none(self) -> TopologyEntry:
        known = [self.agents, self.edges, self.components, self.degree, self.weight]
        if any(number is None for number in known) and any(number is not None for number in known):
            raise ValueError("lacks some of agents, edges, components, degree, weight")
        return self


class TaskEntry(_Document):
    """Task that a run learned from."""

    name: str | None = None
    metric: str | None = None
    dimension: int | None = None
    notes: Words | None = None


class Resolved(_Document):
    """The scenario of a run with all its defaults, as far as readers look into it."""

    scenario: str | None = None
    protocols: dict[str, Words] | None = None
    record: Words | None = None
    task: Words | None = None


class ContractEntry(_Document):
    """Verdict on a protocol's privacy contract."""

    status: str
    text: str


class BreachEntry(_Document):
    """First time at which an invariant was broken, and the agents where it was."""

    time: Number
    agents: list[str]


class InvariantEntry(_Document):
    """Result of checking an invariant during a run."""

    name: str
    worst: Number
    tolerance: Number
    broken: bool
    first: BreachEntry | None

    @model_validator(mode="after")
    def _broken_somewhere(self) -> InvariantEntry:
        if self.broken and self.first is None:
            raise ValueError("does not say where it was broken first")
        return self


class QuantityEntry(_Document):
    """Quantity that a metric measures."""

    function: str
    scale: str
    rows: str = ""
    models: str = ""
    identity: str = ""
    times: Annotated[Number, Field(gt=0, allow_inf_nan=False)] = 1.0


class OwnMetricEntry(_Document):
    """Label, unit and direction of a user's own metric."""

    label: Annotated[str, Field(max_length=200)] = ""
    unit: Annotated[str, Field(max_length=200)] = ""
    better: Literal["more", "less"] | None = None


class Manifest(_Document):
    """``manifest.json``: what was run and how it ended."""

    protocol: str
    seed: int
    data_seed: int | None = None
    run_seed: int | None = None
    label: str | None = None
    scenario: Resolved | None = None
    grid: Words | None = None
    status: str | None = None
    error: str | None = None
    ended: str | None = None
    engine: str | None = None
    form: Words | None = None
    contract: ContractEntry | None = None
    invariants: list[InvariantEntry] | None = None
    no_invariant: str | None = None
    code: str | None = None
    commit: str | None = None
    data: str | None = None
    central: bool | None = None
    task: TaskEntry | None = None
    topology: TopologyEntry | None = None
    privacy: dict[str, Annotated[Any, BeforeValidator(_named)]] | None = None
    measures: dict[str, QuantityEntry] | None = None
    own_metrics: dict[str, OwnMetricEntry] | None = None
    baselines: dict[str, dict[str, Number]] | None = None
    warnings: list[str] | None = None
    limit: Words | None = None
    totals: dict[str, Number] | None = None
    timings: dict[str, Number | str] | None = None
    versions: dict[str, str] | None = None
    checksums: dict[str, Checksum] = {}
    """Of the tables' files by name, and of its own text under ``manifest``."""


class LeftOutEntry(_Document):
    """A file that an experiment reads and keeps no copy of: its path in the scenario, where it is, and why."""

    path: str
    at: str
    why: str
    sha256: str | None = None


class LeftOut(_Document):
    """``left-out.json``: the files that an experiment keeps no copy of."""

    files: list[LeftOutEntry]


class DatasetOrigin(_Document):
    """``dataset.json``: what a dataset was made of, and the checksums of its files."""

    made_of: str
    checksums: dict[str, Checksum]
    names: dict[str, Words] = {}


KINDS: dict[type[BaseModel], str] = {
    Index: "the index of an experiment",
    Manifest: "the manifest of a run",
    LeftOut: "a list of files that were left out",
    DatasetOrigin: "what a dataset was made of",
}
"""Documents that are read, and what a damaged one is not."""


def read_document(model: type[BaseModel], path: Path) -> dict[str, Any]:
    """Read a JSON file that is one of `KINDS`; its infinite numbers are numbers.

    Raises `InputError` if it is missing, damaged, or somebody else's; the sentence names the file and the field.
    """
    return checked(model, read_json(path), path)


def checked(model: type[BaseModel], content: dict[str, Any], path: Path) -> dict[str, Any]:
    """The content of a document that was, or will be, read from a path; raises like `read_document`."""
    try:
        return model.model_validate(content).model_dump(exclude_unset=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:100]
        message = " ".join(first["msg"].replace("Input should be", "must be").split())
        problem = f"{where}: {message}" if where else message
        raise InputError(f"{path}: is damaged, it is not {KINDS[model]} ({problem}); run the scenario again") from error
