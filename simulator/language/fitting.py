"""Checks that the parts of a scenario fit each other, as far as that is known without data, graph or files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ...agents.authors import returned
from ...agents.compilation import form_of
from ...agents.errors import InputError, words_of
from ...agents.models import MODELS, LinearModel
from ...agents.optimisation.solvers import check_minimised
from ...agents.suggestions import listed
from ...agents.tasks import TaskKind
from ...agents.tasks.extent import Extent
from ...agents.tasks.outline import Outline
from ...protocols.base import Context, Protocol, ProtocolParameters
from ...protocols.schedule_selection import exchange_of, rounds_of
from ..metrics import METRICS
from ..metrics.metric import names_of
from ..network.churn import check_rounds
from ..network.directed import check_directed
from ..network.graph_changes import FixedGraph
from .scenario import Scenario


def check_fit(scenario: Scenario) -> None:
    """Refuse a task that minimisers, graph, clock, record and protocols cannot be for.

    Raises `InputError` with the field to change.
    """
    outline = returned(scenario.task.outline(), Outline, scenario.task.outline)
    check_minimised(outline.loss)
    scenario.topology.check_task(outline)
    if outline.agents is not None:
        scenario.clock.check_size(outline.agents)
        scenario.compute.check_size(outline.agents)
    _check_record(scenario)
    if outline.columns and not isinstance(scenario.task.model, LinearModel):
        raise InputError(
            f"is {kind_of(scenario.task)}, and parties that hold columns learn linear models; use {{kind: linear}}",
            field=("task", "model"),
        )
    if not scenario.task.model.convex:
        _check_no_gap(scenario)


def _check_no_gap(scenario: Scenario) -> None:
    """Refuse to ask for the gap of an objective whose minimum is not computed, with the field that asks."""
    target, tune = scenario.target, scenario.tune
    gaps = ("gap" in (figure.statistic, figure.y) for figure in scenario.figures)
    asked: dict[tuple[str | int, ...], bool] = {
        ("target", "share"): target is not None and target.metric == "objective" and target.share is not None,
        ("tune", "metric"): tune is not None and tune.metric == "objective",
        **{("figures", rank): gap for rank, gap in enumerate(gaps)},
    }
    for field, asks in asked.items():
        if asks:
            raise InputError(
                f"asks for the objective's gap to its minimum, and none is computed of task.model "
                f"{kind_of(scenario.task)}; ask for the value of the objective, or for another metric",
                field=field,
            )


def kind_of(task: TaskKind) -> str:
    """The kind of a task's model."""
    return str(getattr(task.model, "kind", ""))


def check_protocol(
    scenario: Scenario,
    protocol: type[Protocol],
    parameters: ProtocolParameters,
    *,
    agents: int | None = None,
    directed: bool | None = None,
) -> None:
    """Refuse a protocol that cannot run in a scenario; raises like `check_fit`, with a field of the protocol.

    Whoever has read data that alone tell how many agents there are says so, and whoever has made the graph whether
    messages go one way over it; by default its kind tells.
    """
    outline = scenario.task.outline()
    extent = returned(scenario.task.extent(None), Extent, scenario.task.extent)
    traits, topology = protocol.traits_for(parameters), scenario.topology
    rounds = rounds_of(traits, parameters)
    in_rounds = rounds is not None
    context = Context(
        outline if outline.agents is not None else replace(outline, agents=agents),
        topology=str(getattr(topology, "kind", "")),
        may_be_star=topology.may_be_star,
        always_up=scenario.availability.nobody_absent,
        in_rounds=in_rounds,
        width=scenario.task.width(extent) if extent.known else None,
    )
    if context.task.columns and protocol.learns_from == "rows":
        raise InputError(
            f"learns from agents' own rows, and the task {context.task.kind!r} splits columns; "
            "set task.split to {by: rows, agents: ...}",
            field=("kind",),
        )
    _check_model(scenario.task, protocol, parameters)
    if in_rounds:
        check_rounds(scenario.availability, intervals=scenario.clock.has_intervals, kind=parameters.kind)
    check_directed(
        traits,
        parameters.kind,
        rounds,
        directed=topology.one_way if directed is None else directed,
        changing=not isinstance(topology.changes, FixedGraph),
        unfailing=scenario.network.lossless and bool(form_of(scenario.availability, "unfailing")),
    )
    attack = None if scenario.adversaries is None else scenario.adversaries.attack
    paired = not in_rounds and exchange_of(traits, parameters) is not None
    if attack is not None and attack.listens and paired:
        raise InputError(
            f"exchanges in pairs, where agents keep no messages of their neighbours that the attack "
            f"{attack.model_dump()['kind']!r} is made from; use sign_flip, noise or label_flip",
            field=("kind",),
        )
    protocol.check_scenario(parameters, context)


def _check_model(task: TaskKind, protocol: type[Protocol], parameters: ProtocolParameters) -> None:
    """Refuse a protocol that does not learn the task's model, and noise that relies on a linear one."""
    if isinstance(task.model, LinearModel):
        return
    kind = kind_of(task)
    if protocol.learns == "linear" or (protocol.learns == "convex" and not task.model.convex):
        what = "linear models" if protocol.learns == "linear" else "models with convex losses"
        admissible = [
            name
            for name, one in MODELS.items()
            if one is LinearModel or (protocol.learns == "convex" and getattr(one, "convex", False))
        ]
        raise InputError(
            f"is not for this model: it learns {what}, and task.model is {kind}; admissible are {listed(admissible)}",
            field=("kind",),
        )
    privacy = getattr(parameters, "privacy", None)
    if privacy is not None and not getattr(privacy, "noiseless", False) and privacy.sensitivity != "clip":
        raise InputError(
            f"is not for this model: a sensitivity that is not by clipping is proved for linear models, and task.model "
            f"is {kind}; use sensitivity: clip",
            field=("privacy",),
        )


def check_protocols(scenario: Scenario, classes: Sequence[tuple[str, type[Protocol]]]) -> None:
    """`check_protocol` for protocols of a scenario by their keys, with the field's place in the scenario."""
    for key, protocol in classes:
        with naming_fields(key):
            check_protocol(scenario, protocol, scenario.protocols[key])


@contextmanager
def naming_fields(protocol: str) -> Iterator[None]:
    """Errors of a protocol name fields of its own; give them their place in the scenario."""
    try:
        yield
    except InputError as error:
        if error.field and error.field[0] not in Scenario.model_fields:
            raise InputError(str(error), field=("protocols", protocol, *error.field)) from error
        raise


def _check_record(scenario: Scenario) -> None:
    """Metrics that the task has, test rows to measure on, and agents that there are."""
    outline = scenario.task.outline()
    tested = names_of(lambda metric: metric.rows == "test")
    for rank, name in enumerate(scenario.record.metrics or ()):
        if name in METRICS and METRICS[name].criterion and name != outline.metric:
            raise InputError(
                f"the task {outline.kind!r} is judged by {outline.metric}, not by {name}",
                field=("record", "metrics", rank),
            )
        if name in tested and not outline.tested and scenario.validation is None:
            raise InputError(
                f"cannot be measured: the task {outline.kind!r} has no test rows; "
                "hold some out, or record other metrics",
                field=("record", "metrics", rank),
            )
    window = scenario.record.messages
    if window is None or outline.agents is None or isinstance(window.agents, int):
        return
    for rank, name in enumerate(window.agents):
        if str(name) not in {str(agent) for agent in range(outline.agents)}:
            raise InputError(
                f"there is no agent {name!r}; agents are called 0 to {outline.agents - 1}",
                field=("record", "messages", "agents", rank),
            )


def check_kept(parameters: ProtocolParameters) -> None:
    """Refuse a field of an author's own whose value no file could hold: results keep all that a run was given.

    Raises `InputError` with its name.
    """
    try:
        parameters.model_dump(mode="json")
    except ValueError as error:
        name = next((name for name in type(parameters).model_fields if not _is_kept(parameters, name)), "")
        raise InputError(
            f"is of the type {type(getattr(parameters, name, None)).__name__} ({words_of(error)}); admissible are "
            "numbers, texts, and lists and mappings of them, which results can keep",
            field=(name,),
        ) from error


def _is_kept(parameters: ProtocolParameters, name: str) -> bool:
    try:
        parameters.model_dump(mode="json", include={name})
    except ValueError:
        return False
    return True
