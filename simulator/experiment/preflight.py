"""Preflight checks that need data, graph and files, made for every point of a sweep before the first run starts.

However many points and runs there are, every data set is made once with its graph (and kept for the runs, as far as
`hushnet.simulator.experiment.plan.KEPT` goes); clocks, links, absences, recorders and the rules of a protocol are
checked once for each data set and each way in which the points set them, unless the run that would be checked is
complete already. Nothing is solved, and no world is built: a sweep of 9,000 delays makes one data set and 9,000 checks
of links, each as expensive as a list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...agents.errors import InputError
from ...agents.quantity import Quantity
from ...protocols.base import Problem
from ...protocols.noise import unit_of
from ..language.fitting import check_protocol, naming_fields
from ..language.loading import GridPoint, locate, locate_at
from ..limits.limit_objectives import check_measured, check_objectives, side_by_side
from ..network.churn import churn
from ..network.clocks import clock_of
from ..network.network import Network
from ..network.randomness import stable_ids
from ..observers import parties_of
from ..recording.privacy_statement import delta_warnings
from .execute import message_log
from .plan import Experiment, PlannedRun, Run
from .run_once import is_there

Check = tuple[tuple[Any, ...], Callable[[], object]]
"""What a check depends on beside the data, and the check, which raises an `InputError`."""


def preflight(experiment: Experiment, queue: Sequence[PlannedRun], *, but: frozenset[str] = frozenset()) -> list[str]:
    """Check everything that runs are made of, and advise on what nothing forbids: deltas that promise little.

    In the queue, runs with the same data stand together; `but` has keys of protocols whose parameters are not known
    yet. Raises `InputError` or `OutOfResources` if something is not admissible, or does not fit into this machine, with
    the point's own value.
    """
    words = _Words()
    data, seen, advice = None, set(), dict[str, None]()
    kinds, begun = _Kinds(experiment), any(experiment.folder.glob("*/manifest.json"))
    for planned in queue:
        run = planned.run
        if run.data_key != data:
            data, seen = run.data_key, set()
        there = None if begun else False
        try:
            with naming_fields(run.protocol):
                experiment.data(run)
                for key, check in _checks(experiment, run, words, but):
                    if key not in seen:
                        there = _is_there(experiment, run) if there is None else there
                        seen.add(key)
                        if not there:
                            check()
                if run.protocol not in but:
                    kinds.take(run)
                    advice |= dict.fromkeys(_advice(experiment, run))
        except InputError as error:
            raise InputError(locate_at(error, experiment.loaded, run.point)) from error
    try:
        check_objectives(experiment.loaded.scenario, experiment.loaded.points, kinds.known)
        if not but:
            check_measured(experiment.loaded.scenario, kinds.any_of_all)
    except InputError as error:
        raise InputError(locate(error, experiment.loaded)) from error
    return list(advice)


def _advice(experiment: Experiment, run: Run) -> list[str]:
    """Sentences about the delta of a run that is to come."""
    privacy, task = getattr(run.point.scenario.protocols[run.protocol], "privacy", None), experiment.data(run)[0]
    if privacy is None or privacy.noiseless or task.columns is not None:
        return []
    return delta_warnings(privacy.reported_delta, task.train.counts, unit_of(privacy))


def _is_there(experiment: Experiment, run: Run) -> bool:
    """True if a run need not be checked: it is complete, so that its parts were allowed when it was made."""
    return not experiment.metrics and is_there(experiment, run, experiment.run_id(run))


class _Kinds:
    """Quantities that objectives measure at a point's first seed: of all runs if they are compared, else of one."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._beside = any(side_by_side(experiment.loaded.scenario))
        self._known: dict[tuple[Any, ...], Quantity | None] = {}

    def any_of_all(self) -> bool:
        """True if some run has an objective, runs that are complete already included."""
        loaded = self._experiment.loaded
        for protocol in loaded.scenario.protocols:
            self.take(_first(loaded.points[0], protocol))
        return self._found

    @property
    def _found(self) -> bool:
        return any(quantity is not None for quantity in self._known.values())

    def take(self, run: Run) -> None:
        """Ask a run's protocol, whose data are there."""
        wanted = self._beside or not self._found
        if wanted and run.seed == _first(run.point, run.protocol).seed and self._place(run) not in self._known:
            objective = self._experiment.measured_objective(run)
            self._known[self._place(run)] = None if objective is None else objective.quantity

    def known(self, point: GridPoint, protocol: str) -> Quantity | None:
        """Quantity that the objective of a protocol measures at a point; None if it has none, or is not known."""
        return self._known.get(self._place(_first(point, protocol)))

    def _place(self, run: Run) -> tuple[Any, ...]:
        return (*run.data_key, run.contract_key)


def _first(point: GridPoint, protocol: str) -> Run:
    return Run(point, protocol, *next(iter(point.scenario.seed_pairs())))


class _Words:
    """Parameters in words, found once for each object: points share what is not swept."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}

    def __call__(self, parameters: Any) -> str:
        if id(parameters) not in self._known:
            self._known[id(parameters)] = (parameters, repr(parameters))
        return self._known[id(parameters)][1]


def _checks(experiment: Experiment, run: Run, words: _Words, but: frozenset[str]) -> Iterator[Check]:
    scenario, base, (task, graph) = run.point.scenario, experiment.loaded.base, experiment.data(run)
    setting = experiment.setting(run)

    def network() -> None:
        numbers = stable_ids(task.ids)
        Network(scenario.network, task.ids, numbers, setting.draws, base).check_links(graph.tails, graph.heads)

    yield (
        ("clock", words(scenario.clock)),
        lambda: clock_of(scenario.clock, task.ids, stable_ids(task.ids), setting.draws, base),
    )
    yield ("network", words(scenario.network)), network
    absences = lambda: churn(setting, stable_ids(task.ids).tolist())  # noqa: E731
    yield ("availability", words(scenario.availability)), absences
    yield ("messages", words(scenario.record)), lambda: message_log(experiment, run)
    if scenario.observers is not None:
        observers = scenario.observers
        yield ("observers", words(observers)), lambda: list(parties_of(observers, setting))
    measured_by = scenario.record.objective_of
    if run.protocol in but or measured_by in but:
        return
    objective = "" if measured_by is None else words(scenario.protocols[measured_by])
    yield ("recorder", words(scenario.record), objective), lambda: experiment.recorder(run)
    parameters = scenario.protocols[run.protocol]
    protocol = experiment.loaded.code.protocol(parameters.kind)

    def fits() -> None:
        check_protocol(scenario, protocol, parameters, agents=task.agents, directed=graph.directed)
        protocol.check_problem(parameters, Problem(task, graph))

    yield ("protocol", run.contract_key), fits
