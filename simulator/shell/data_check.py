"""Check of ``hushnet check --data-dir``: data, graphs and files are read as for a run, and nothing is run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..console.words import source_line
from ..experiment import Experiment
from ..experiment.plan import plan
from ..experiment.preflight import preflight
from ..language.loading import LoadedScenario


def check_data(loaded: LoadedScenario, data_dir: Path) -> Iterator[str]:
    """Make all data and graphs of a scenario, and say of each data set that was published where it comes from.

    Parameters
    ----------
    data_dir : Path
        Folder of data sets.

    Yields
    ------
    str
        A line for each delta that promises little, and for each published data set, with its checksum.

    Raises
    ------
    InputError, OutOfResources
        If data are missing or damaged, or do not admit what the scenario asks for, as `hushnet run` would say it.
    """
    experiment = Experiment(loaded, data_dir=data_dir)
    queue = plan(experiment, experiment.runs())
    yield from (f"warning: {sentence}" for sentence in preflight(experiment, queue))
    said = set[str]()
    for planned in queue:
        line = source_line({"notes": experiment.data(planned.run)[0].notes})
        if line is not None and line not in said:
            said.add(line)
            yield line
