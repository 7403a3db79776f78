"""Command ``hushnet audit``: audit a scenario, write the tables and the figure, and print the result."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...agents.errors import AuditFailure
from ...agents.tasks.task_names import is_stand_in
from ..experiment.plan import Experiment
from ..storage.files import json_text, parquet, put_file, writing
from ..storage.provenance import code_version, libraries
from .audit import Options, audit
from .figure import save_figure
from .outcome import Game, Outcome, tables


def audit_scenario(experiment: Experiment, options: Options, *, quiet: bool = False) -> None:
    """Audit a scenario and write ``<results>/audit/``; if `quiet`, without a word on what is going on.

    Raises `AuditFailure` if noise is not what releases say, a replay fails or an audited epsilon is above the verified
    one; all is written before, and `InputError` as of `hushnet.simulator.audit.audit.audit`.
    """
    console, began = Console(), time.perf_counter()
    say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    outcomes = audit(experiment, options, (lambda _: None) if quiet else partial(say, style="dim"))
    folder = experiment.folder / "audit"
    paths = write(outcomes, options, folder)
    console.print(_table(outcomes, options))
    for outcome in outcomes:
        for sentence in _sentences(outcome):
            say(f"{outcome.label}: {sentence}", style="dim")
    seconds = time.perf_counter() - began
    say(f"audit: {folder} ({seconds:.0f} s)")
    for path in paths:
        if path.suffix == ".png":
            say(f"figure: {path}")
    failures = [f"{outcome.label}: {failure}" for outcome in outcomes for failure in outcome.failures]
    if failures:
        raise AuditFailure("\n".join(failures))


def write(outcomes: Sequence[Outcome], options: Options, folder: Path) -> list[Path]:
    """Write tables, what was asked for and the figure; each file is there as a whole or not at all."""
    with writing(folder):
        found = tables(list(outcomes))
        for name, table in found.items():
            put_file(parquet(table), folder / f"{name}.parquet", within=folder.parent)
        asked = {
            "tiers": list(options.tiers),
            "pairs": options.pairs,
            "trials": options.trials,
            "level": options.level,
            "code": code_version(),
            "versions": libraries(),
            "protocols": {
                outcome.key: {"verdict": outcome.word, "failures": outcome.failures, "notes": outcome.notes}
                for outcome in outcomes
            },
        }
        put_file(json_text(asked).encode(), folder / "audit.json", within=folder.parent)
        data = "; ".join(name for name in dict.fromkeys(outcome.data for outcome in outcomes) if is_stand_in(name))
        return save_figure(found["profile"], folder / "profile", data)


def _table(outcomes: Sequence[Outcome], options: Options) -> Table:
    table = Table(caption=f"wrong anywhere with a probability of at most {options.level:g}")
    table.add_column("protocol", overflow="fold", min_width=16)
    for name in ("delta", "claimed", "verified", "audited\nat least", "claim"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(f"tiers\n{', '.join(options.tiers)}", no_wrap=True)
    for outcome in outcomes:
        cells = [f"{outcome.delta:.3g}", *map(number, (outcome.claimed, outcome.verified, outcome.audited))]
        failed = [tier for tier in options.tiers if any(one.startswith(f"tier {tier}") for one in outcome.failures)]
        found = f"{', '.join(failed)} failed" if failed else "failed" if outcome.failures else "clean"
        found += " (no C)" if "C" in options.tiers and not outcome.games else ""
        style = "bold red" if outcome.failures else None
        table.add_row(escape(outcome.label), *cells, outcome.word, found, style=style)
    return table


def _sentences(outcome: Outcome) -> Iterator[str]:
    if outcome.counterexample:
        yield f"counterexample: {outcome.counterexample}."
    if outcome.checks:
        yield f"tier A: {len(outcome.checks)} tests of noise."
    if outcome.replays:
        ratios = [one.ratio for one in outcome.replays if math.isfinite(one.ratio)]
        realised = f", realised / charged sensitivity up to {max(ratios):.6f}" if ratios else ""
        yield f"tier B: {len(outcome.replays)} pairs{realised}."
    if outcome.games:
        played = " and ".join(map(_played, outcome.games))
        yield f"tier C: {played}, with {outcome.games[0].pair}."
    for note in outcome.notes:
        yield f"{note}."


def _played(game: Game) -> str:
    return f"2 x {len(game.on_data):,} {'runs' if game.kind == 'runs' else 'draws of the mechanism alone'}"


def number(value: float) -> str:
    """An epsilon in four digits."""
    if math.isnan(value):
        return "\N{EN DASH}"
    return "\N{INFINITY}" if math.isinf(value) else f"{value:.4g}"
