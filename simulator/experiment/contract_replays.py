"""The privacy contract of users' own protocols: replayed at some points of a sweep, kept beside the results.

A proof is for the world that was replayed: its task, graph, network and end. Other seeds of the same point share it;
other points say where the protocol was replayed, and no epsilon is verified there.

What was found is kept under the id of the run that the own world is taken from, which stands for the plug-in's sources,
all that they import, parameters, data, seed and versions: whoever changes one of them is judged anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from ...agents.authors import contained
from ...agents.errors import INTERRUPTED, words_of
from ...protocols.user_files import is_file
from ..contract.repeats import repeated
from ..contract.verdict import SHIPPED, Verdict, judged
from ..engine.selection import Engine
from ..network.setting import Setting
from ..storage.files import checksum, put_bound, read_bound
from ..storage.provenance import code_version, libraries
from ..storage.user_code import source_hash
from ..world.watchers import Watch
from ..world.world import World
from .estimate import RunSizes
from .plan import NOT_ASKED, Experiment, PlannedRun, Run, wake_ups
from .workers import Workers


def prove(
    experiment: Experiment,
    queue: Sequence[PlannedRun],
    workers: Workers,
    on_check: Callable[[Run], None] | None = None,
) -> None:
    """Find out about the contract of every protocol that is to be run, and let the experiment know.

    The first runs in each world stand for those with other seeds; `on_check` is told of each whose protocol is about to
    be checked, by those who execute the runs: what kills a process there shall not kill this one here.
    """
    alike: dict[str, list[PlannedRun]] = {}
    for planned in queue:
        alike.setdefault(planned.run.contract_key, []).append(planned)
    for key, group in alike.items():
        if key in experiment.verdicts:
            continue
        if source_hash([experiment.loaded.code.protocol(group[0].kind)]) is None:
            experiment.verdicts[key] = SHIPPED
            continue
        if experiment.contract and not group[0].run.point.scenario.debug:
            said = _repeat(experiment, group[0])
            if said:
                experiment.verdicts[key] = Verdict("unchecked", said)
                continue
        found = _verdicts(experiment, group, workers, on_check)
        experiment.verdicts |= {**found, key: _elsewhere(list(found.values()))}


def _repeat(experiment: Experiment, planned: PlannedRun) -> str:
    """Find out whether a protocol does what it declares, and the same in every process, and let the experiment know.

    Gives why there is nothing to replay; empty if there is.
    """
    parameters = planned.run.point.scenario.protocols[planned.run.protocol]
    kind, code = parameters.kind, experiment.loaded.code
    of = f"{experiment.source(planned.run)} {kind} {code_version()} {libraries()}"
    file = experiment.folder / ".cache" / f"repeats-{checksum(of.encode())[:16]}.json"
    if read_bound(file, of) is not None:
        return ""
    files = [kind] if kind not in code.extra and is_file(kind) else []
    found = repeated(code.protocol(kind), parameters, files, code.base)
    if found.status in ("differs", "undeclared"):
        experiment.unrepeatable[kind] = found.said
    elif found.status == "deadly":
        experiment.deadly[kind] = found.said
    elif found.status == "same":
        with contextlib.suppress(OSError):  # a full disk is reported where it costs results
            put_bound({"repeats": True}, of, file, within=experiment.folder)
        return ""
    return found.said if found.status != "unknown" else ""


def judge(experiment: Experiment, run: Run) -> Verdict:
    """Replay the protocol of a run in small worlds and in the run's own."""
    scenario = run.point.scenario
    parameters = scenario.protocols[run.protocol]
    protocol = experiment.loaded.code.protocol(parameters.kind)

    def make(setting: Setting, watch: Watch) -> tuple[World, Engine]:
        world = World(setting, protocol, parameters, watch=watch)
        return world, experiment.engine_for(run, world)

    try:
        with contained():
            return judged(protocol, parameters, experiment.setting(run), make, experiment.engine_name(run))
    except INTERRUPTED:
        raise
    except BaseException as error:  # the run itself will say so
        return Verdict("unchecked", words_of(error))


def to_replay(experiment: Experiment, worlds: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Worlds, of runs with the same protocol and parameters, in which it is replayed, as many as the experiment admits.

    That of the largest world, the longest, one with every topology, every task and both together, then the others in
    their order.
    """
    sizes, scenarios = RunSizes(experiment), [planned.run.point.scenario for planned in worlds]
    memory = [sizes(planned.run)[1] for planned in worlds]
    steps = [wake_ups(scenario, sizes(planned.run)[0]) for scenario, planned in zip(scenarios, worlds, strict=True)]
    everything = range(len(worlds))
    chosen = [max(everything, key=lambda place: (memory[place], steps[place]))]
    chosen.append(max(everything, key=lambda place: (steps[place], memory[place])))
    topologies, tasks = ([repr(getattr(one, part)) for one in scenarios] for part in ("topology", "task"))
    for values in (topologies, tasks, list(zip(topologies, tasks, strict=True)), everything):
        seen: set[object] = {values[place] for place in chosen}
        for place, value in enumerate(values):
            if value not in seen:
                seen.add(value)
                chosen.append(place)
    return [worlds[place] for place in list(dict.fromkeys(chosen))[: experiment.contract_points]]


def _verdicts(
    experiment: Experiment, group: Sequence[PlannedRun], workers: Workers, on_check: Callable[[Run], None] | None
) -> dict[str, Verdict]:
    """Verdicts on a protocol with its parameters, by world: of replays made now, or kept from an earlier time."""
    worlds: dict[str, list[PlannedRun]] = {}
    for planned in group:
        worlds.setdefault(planned.run.world_key, []).append(planned)
    chosen = to_replay(experiment, [seeds[0] for seeds in worlds.values()]) if experiment.contract else []
    seeds = [worlds[planned.run.world_key][1:] for planned in chosen]
    others = [planned for each in zip_longest(*seeds) for planned in each if planned is not None]
    chosen += others[: experiment.contract_points - len(chosen)]
    names = {planned.name for planned in chosen}
    found: dict[str, list[Verdict]] = {}
    for planned in [*chosen, *(planned for planned in group if planned.name not in names)]:
        verdict = _verdict(experiment, planned, workers, on_check, replayed=planned.name in names)
        if verdict is not None:
            found.setdefault(planned.run.world_key, []).append(replace(verdict, at=planned.run.at))
    return {key: _of_seeds(verdicts) for key, verdicts in found.items()}


def _of_seeds(found: Sequence[Verdict]) -> Verdict:
    """Verdict for a world from those of its seeds: a failure if there is one, else what the replayed seeds showed."""
    failed = [verdict for verdict in found if verdict.status == "failed"]
    passed = [verdict for verdict in found if verdict.status == "passed"]
    if failed or not passed:
        return (failed or list(found))[0]
    others = f" and {len(passed) - 1} other seed{'' if len(passed) == 2 else 's'}" if len(passed) > 1 else ""
    unlooked = {agent: reason for verdict in reversed(passed) for agent, reason in verdict.unlooked.items()}
    return replace(passed[0], at=f"{passed[0].at}{others}", unlooked=unlooked)


def _elsewhere(found: Sequence[Verdict]) -> Verdict:
    """Verdict for worlds in which a protocol was not replayed: it failed, passed or was unchecked in another one."""
    for status in ("failed", "passed", "unchecked"):
        known = [verdict for verdict in found if verdict.status == status]
        if known and status == "passed":
            others = len(known) - 1
            beside = f" and {others} other point{'' if others == 1 else 's'}" if others else ""
            return replace(known[0], status="elsewhere", at=f"{known[0].at}{beside}")
        if known:
            return replace(known[0], details=f"replayed at {known[0].at}: {known[0].details}")
    return NOT_ASKED


def _verdict(
    experiment: Experiment,
    planned: PlannedRun,
    workers: Workers,
    on_check: Callable[[Run], None] | None,
    *,
    replayed: bool,
) -> Verdict | None:
    """Verdict on a world; None if it is not to be replayed, and was not before."""
    of = f"{experiment.run_id(planned.run)}-{experiment.engine_name(planned.run)}"
    file = experiment.folder / ".cache" / f"contract-{of}.json"
    known = _load(file, of)
    if known is not None or not replayed:
        return known
    if on_check:
        on_check(planned.run)
    verdict = workers.judge(experiment, planned)
    if verdict.status == "unchecked":
        return verdict
    with contextlib.suppress(OSError):  # a full disk is reported where it costs results
        put_bound(verdict.as_dict(), of, file, within=experiment.folder)
    return verdict


def _load(file: Path, of: str) -> Verdict | None:
    try:
        found = read_bound(file, of)
        return None if found is None else Verdict.from_dict(found)
    except (ValueError, KeyError, TypeError):
        return None
