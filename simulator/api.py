"""Python interface: run a scenario, hold its results, load those of earlier runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .analysis.results import Collection, load_all
from .storage.files import Frame

if TYPE_CHECKING:
    from ..protocols.base import Protocol
    from .compare import Comparison
    from .experiment import Jobs
    from .figures.notebook_display import Figures
    from .recording.snapshot import OwnMetric


@dataclass(frozen=True, repr=False)
class Result:
    """The results of an experiment, as they are on disk."""

    collection: Collection
    """All its runs."""

    @classmethod
    def open(cls, folder: Path | str) -> Result:
        """Results that are there already, in ``results/<scenario>``.

        Raises `InputError` if it holds no runs, or a file is damaged.
        """
        return cls(load_all(Path(folder)))

    @property
    def folder(self) -> Path:
        """Folder that holds the results."""
        assert self.collection.root is not None
        return self.collection.root

    @property
    def trace(self) -> Frame:
        """Trace of all runs: the metrics recorded over time, as `load` describes them."""
        return self.collection.trace

    @property
    def agents(self) -> Frame:
        """One final row per run and agent: samples, degree, updates, the task's measure, epsilons."""
        return self.collection.agents

    @property
    def manifests(self) -> list[dict[str, Any]]:
        """One per run: resolved scenario, seeds, versions, status, privacy, totals."""
        return self.collection.manifests

    def summary(self) -> Frame:
        """Final means and 95 % intervals by protocol and grid point: `hushnet.simulator.analysis.summary.summarise`."""
        from .analysis.summary import summarise

        return summarise(self.collection)

    def compare(self, baseline: str | None = None) -> Comparison:
        """Paired differences to a baseline (by default the first protocol), see `hushnet.simulator.compare.compare`."""
        from .compare import compare

        return compare(self.collection, baseline)

    def figures(self, *only: str, style: Mapping[str, Any] | None = None) -> Figures:
        """Draw the scenario's figures, or those of these names, as figures of matplotlib, which a notebook shows.

        A style is a mapping of fields of `hushnet.simulator.language.figure_style.FigureStyle`, above the styles of
        scenario and figures. It returns a list of `matplotlib.figure.Figure`, each labelled with its name;
        `save_figures` writes files. Raises `InputError` if there is no figure of a name, or the style is none.
        """
        from .figures.notebook_display import Figures

        return Figures(self.collection, only or None, style)

    def save_figures(
        self, folder: Path | str | None = None, *only: str, style: Mapping[str, Any] | None = None
    ) -> list[Path]:
        """Write the scenario's figures, PNG, PDF, SVG and the plotted numbers as CSV; returns the paths.

        The folder is by default ``figures`` in that of the results; names and style are as for `figures`.
        """
        from .figures import redraw
        from .figures.style import from_mapping

        out = None if folder is None else Path(folder)
        asked = from_mapping(style)
        return redraw(self.folder, out=out, collection=self.collection, only=only or None, style=asked)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the table of final means, and the scenario's figures."""
        from html import escape

        figures = self.figures() if self.collection.index.get("figures") else None
        drawn = "" if figures is None else figures._repr_html_()
        return f"<p>{escape(repr(self))}</p>{self.summary().to_html(index=False, border=0)}{drawn}"

    def __str__(self) -> str:
        """Return what `hushnet run` ends with: who is ahead, final numbers, and what somebody has to act on."""
        from io import StringIO

        from rich.console import Console

        from .report.brief import print_brief

        text, tuning, tuned = StringIO(), self.collection.index.get("tuning"), ""
        warnings = [warning for manifest in self.manifests for warning in manifest.get("warnings") or ()]
        if tuning:
            from .experiment.tuning import in_short

            warnings, tuned = [*tuning["warnings"], *warnings], in_short(tuning)
        print_brief(self.collection, warnings, Console(file=text, width=80), tuned)
        return text.getvalue().rstrip()

    def __repr__(self) -> str:
        count = len(self.collection.runs)
        return f"Result({self.folder}: {count} run{'' if count == 1 else 's'} of {', '.join(self.collection.labels)})"


def run(
    scenario: Path | str | Mapping[str, Any],
    *,
    protocols: Mapping[str, type[Protocol]] | None = None,
    metrics: Mapping[str, OwnMetric] | None = None,
    out: Path | str | None = None,
    data_dir: Path | str | None = None,
    seeds: int | None = None,
    overrides: tuple[str, ...] = (),
    trust_code: bool = False,
    quick: bool = False,
    jobs: Jobs = 1,
    scheduler: str | None = None,
    contract: bool = True,
    contract_points: int = 4,
) -> Result:
    """Run what is not there yet of a scenario's runs, as ``hushnet run`` does, and return all of them.

    Parameters
    ----------
    scenario : Path, str or mapping
        A scenario file, the name of a shipped scenario, or the scenario itself.
    protocols : mapping of str to type, optional
        Your own protocol classes, by the name that the scenario gives as ``kind``.
    metrics : mapping of str to callable, optional
        Your own metrics: functions of a `hushnet.simulator.recording.snapshot.Snapshot` that give a number, or numbers
        by name. Runs with them are always run anew. Targets and figures know metrics that the scenario names:
        ``./file.py:name`` of a function, or of a `hushnet.simulator.metrics.Metric`.
    out, data_dir : Path or str, optional
        Folder of the results, ``results/<scenario>`` by default; folder of the data sets.
    seeds : int, optional
        Replaces the scenario's seeds.
    overrides : tuple of str
        ``path=value`` each, such as ``network.loss=0.2``.
    trust_code : bool
        Whether Python files that the scenario names may be run.
    quick : bool
        Whether to run the scenario's quick version.
    jobs : int or "auto"
        Processes; "auto" takes as many as processors and memory admit where that is faster. The results are the same.
        A script that asks for more than one needs
        ``if __name__ == "__main__":`` around what it does, for they import it.
    scheduler : str, optional
        Address of a dask cluster to use instead.
    contract : bool
        Whether the privacy contract of your own protocols is checked by replay, in some ten runs of small worlds each
        and of the scenario's own; without it none of their epsilons is verified.
    contract_points : int
        At how many points of a sweep at most they are replayed, for each protocol and its parameters: where the world
        is largest, where the run is longest, where topology or task differ, then the others in their order. At points
        that were not replayed no epsilon is verified, and the statement names one that was.

    Raises
    ------
    InputError
        If something about the input is not admissible; the sentence says what is.
    Divergence, Stall, LimitReached, RunFailure
        If a run diverged, stalled, went beyond a limit or failed; all results are saved and can be opened with
        `Result.open`.
    """
    from .experiment import RunOptions
    from .experiment import run as perform

    options = RunOptions(
        protocols=protocols,
        metrics=metrics or {},
        out=None if out is None else Path(out),
        data_dir=None if data_dir is None else Path(data_dir),
        seeds=seeds,
        overrides=overrides,
        trust_code=trust_code,
        quick=quick,
        jobs=jobs,
        scheduler=scheduler,
        contract=contract,
        contract_points=contract_points,
    )
    collection = perform(scenario, options)
    return Result(collection)


def load(results: Path | str) -> Frame:
    """The measurements of all runs of an experiment, in ``results/<scenario>``, as one tidy table.

    It has the columns ``protocol, seed, time, activations, messages, vectors, bytes, metric, statistic, value``,
    ``run`` (its id) and one for each swept path, such as ``network.loss``. Raises `InputError` if there are no runs, or
    a file is damaged.
    """
    return load_all(Path(results)).trace
