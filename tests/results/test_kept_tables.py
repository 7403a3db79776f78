"""Tables, texts and numbers of figures that synthetic experiments come to are those of ``kept_tables``, byte by byte.

What they should be, other tests here say of single numbers; these say that nothing else has changed.
``python -m tests.results.test_kept_tables`` writes them anew.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from hushnet.simulator.analysis.results import Collection, load_all
from hushnet.simulator.analysis.summary import print_summary, summarise
from hushnet.simulator.analysis.targets import area, reached
from hushnet.simulator.compare import compare
from hushnet.simulator.compare.comparison_tables import print_comparison
from hushnet.simulator.compare.winners import standings
from hushnet.simulator.figures import plots

from .conftest import written_to
from .synthetic import FALSE, HONEST, LABELS, make_run
from .test_figure_kinds import HEAT, private, swept
from .writing import printed

KEPT = Path(__file__).with_name("kept_tables")
ALONG = {"y": "accuracy", "x": "network.loss"}


def broken() -> list:
    """Runs of which some diverged, some reached a limit, and one has no partner."""
    runs = [make_run(protocol, seed, privacy=HONEST) for protocol in LABELS for seed in range(6)]
    for run, status in zip(runs[8:11], ("diverged", "limited", "stalled"), strict=True):
        run.manifest["status"] = status
        run.trace = run.trace[run.trace["time"] <= 4]
    return runs[1:]


EXPERIMENTS = {
    "three protocols": (
        lambda: [make_run(p, s, privacy=FALSE if p == "cd_eps" else None) for s in range(3) for p in LABELS],
        [
            {"y": "accuracy", "x": "time"},
            {"y": "objective", "x": "vectors"},
            {"y": "accuracy", "x": "samples"},
            {"y": "accuracy", "x": "protocol", "interval": "seeds"},
            {"y": "vectors_to_target", "x": "protocol"},
            {"y": "accuracy", "x": "time", "statistic": "worst_decile", "facet": ["accuracy", "objective"]},
            {"y": "time_to_target", "x": "protocol", "baseline": "cd", "wins": True},
            {"y": "accuracy", "x": "samples", "kind": "scatter", "baseline": "local"},
        ],
    ),
    "a sweep of two fields": (
        lambda: swept(seeds=6),
        [
            HEAT,
            {**HEAT, "baseline": "local"},
            {**HEAT, "y": "time_to_target"},
            {**ALONG, "at": {"depth": 10}, "log": "x"},
            {**ALONG, "at": {"depth": 1}, "y": "time_to_target"},
            {**ALONG, "at": {"depth": 1}, "baseline": "local", "wins": True},
            {"y": "accuracy", "x": "time", "facet": "network.loss", "at": {"depth": 1}, "protocols": ["cd"]},
        ],
    ),
    "promises that differ": (
        lambda: [
            *(private(p, s, epsilon) for p in ("a", "b") for epsilon in (0.5, 4.0) for s in range(2)),
            *(private("f", s, 2.0, unit="feature column", observer="the centre") for s in range(2)),
            *(private("open", s, None) for s in range(2)),
        ],
        [{"y": "accuracy", "x": "epsilon_verified"}, {"y": "accuracy", "x": "vectors", "kind": "frontier"}],
    ),
    "runs that broke off": (broken, [{"y": "accuracy", "x": "time"}, {"y": "accuracy", "x": "protocol"}]),
}


def sections(collection: Collection, figures: list[dict]) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Everything that reading results computes, by name."""
    found = compare(collection)
    yield "summary", summarise(collection)
    yield "differences", found.differences
    yield "break-even points", found.break_even
    yield "warnings", "\n".join(found.warnings)
    yield "area of accuracy", area(collection, "accuracy")
    for axis in ("time", "vectors", "updates"):
        yield f"{axis} to target", reached(collection, None, axis)
    for each in standings(collection, 9):
        rows = [
            {"place": str(place.at), "winner": place.winner, "leaders": " ".join(place.leaders), **vars(duel)}
            for place in each.places
            for duel in place.duels
        ]
        yield f"standings by {each.measure}", pd.DataFrame(rows)
    for name, show in (("summary", print_summary), ("comparison", print_comparison)):
        text = printed(show, found if name == "comparison" else collection, width=120)
        yield f"{name}, printed", "\n".join(line.rstrip() for line in text.splitlines())
    for spec in figures:
        for plot in plots(collection, spec):
            yield f"figure {spec} {plot.panel}", plot.points


def document(folder: Path, name: str) -> str:
    """All sections of an experiment that is written to a folder, numbers with seven digits."""
    runs, figures = EXPERIMENTS[name]
    text = []
    for title, part in sections(load_all(written_to(folder, runs())), figures):
        body = part if isinstance(part, str) else part.to_csv(index=False, float_format="%.7g")
        text.append(f"## {title}\n{body.strip()}\n")
    return "\n".join(text)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_has_the_tables_that_are_kept(name, tmp_path):
    assert document(tmp_path, name) == (KEPT / f"{name}.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    for name in sys.argv[1:] or EXPERIMENTS:
        with tempfile.TemporaryDirectory() as folder:
            (KEPT / f"{name}.txt").write_text(document(Path(folder), name), encoding="utf-8")
