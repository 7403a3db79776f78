"""Checks of ``hushnet check`` that read data, graphs and files as for a run; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...agents.input_files import paths_named
from ...agents.tasks.task_registry import is_published
from ..language.loading import LoadedScenario


def check_files(loaded: LoadedScenario) -> None:
    """Read the files that a scenario names by a path, such as a table or edges, at its first seed.

    Nothing is read of a scenario without such files, or with a data set that was published and has no path of its own,
    for that need not be here. Raises `InputError` or `OutOfResources` if a file is missing or damaged, or does not
    admit what the scenario asks for, as `hushnet run` would say it.
    """
    scenario = loaded.points[0].scenario
    resolved = scenario.resolved()
    task = resolved["task"]
    if (is_published(task["kind"]) and not any(paths_named(task))) or not any(paths_named(resolved)):
        return
    from ..experiment import Experiment
    from ..experiment.plan import plan
    from ..experiment.preflight import preflight

    experiment = Experiment(loaded)
    queue = plan(experiment, experiment.runs())
    tuned = frozenset(path.partition(".")[0] for path in scenario.tune.over) if scenario.tune else frozenset[str]()
    preflight(experiment, [one for one in queue if one.run.data_seed == queue[0].run.data_seed], but=tuned)


def check_data(loaded: LoadedScenario, data_dir: Path) -> Iterator[str]:
    """Make all data and graphs of a scenario, and say of each data set that was published where it comes from.

    There is a line for each delta that promises little, and for each published data set, with its checksum. Raises
    `InputError` or `OutOfResources` if data are missing or damaged, or do not admit what the scenario asks for, as
    `hushnet run` would say it.
    """
    from ..console.words import source_line
    from ..experiment import Experiment
    from ..experiment.plan import plan
    from ..experiment.preflight import preflight

    experiment = Experiment(loaded, data_dir=data_dir)
    queue = plan(experiment, experiment.runs())
    yield from (f"warning: {sentence}" for sentence in preflight(experiment, queue))
    said = set[str]()
    for planned in queue:
        line = source_line({"notes": experiment.data(planned.run)[0].notes})
        if line is not None and line not in said:
            said.add(line)
            yield line
