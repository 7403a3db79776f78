"""The end of ``hushnet run`` in some fifteen lines of 80 columns: who is ahead, a table, and what to act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..analysis.claimed_privacy import MARK, epsilon_text
from ..analysis.results import Collection
from ..analysis.summary import remarks, summarise, trivial_rows, with_half_width

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

MOST_WARNINGS = 3
MOST_ROWS = 9
"""Rows of the table; of a longer sweep its ends are shown."""
FEWEST = 3
"""Runs from which an interval is shown: of two it says next to nothing."""
LONGEST_LABEL = 26


def answer(collection: Collection) -> str:
    """Return who is ahead of whom, in a sentence; empty where there is nothing to compare."""
    from ..compare.winners import standings
    from ..report.winners import sentence

    found = standings(collection, most=1)
    return sentence(found[0], collection.labels) if found else ""


def print_brief(collection: Collection, warnings: Sequence[str], console: Console) -> None:
    """Print who is ahead, the final numbers, and at most `MOST_WARNINGS` of what somebody has to act on.

    Parameters
    ----------
    collection : Collection
    warnings : sequence of str
        Of the runs.
    console : rich.console.Console
    """
    from rich.text import Text

    said = answer(collection)
    if said:
        console.print(Text(said, style="bold"))
    console.print(_table(collection), crop=False)
    for line in _captions(collection):
        console.print(Text(line, style="dim"))
    loud = [text for text, is_loud in remarks(collection) if is_loud]
    acted = [*loud, *(f"warning: {text}" for text in warnings)]
    for text in acted[:MOST_WARNINGS]:
        shown = text.partition("; ")[0] if text in loud else text  # what is behind it are details
        console.print(Text(shown, style="bold red" if text in loud else "yellow"))
    quiet = sum(not is_loud for _, is_loud in remarks(collection)) + len(acted[MOST_WARNINGS:])
    if quiet:
        notes = "note" if quiet == 1 else "notes"
        console.print(
            Text(f"{quiet} more {notes}, on what epsilons cover and assume among others: --verbose", style="dim")
        )


def _table(collection: Collection) -> Any:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    frame = summarise(collection)
    runs = set(frame["n"].tolist())
    hidden = {"vectors_with_start"}
    metrics = [name.removesuffix(" half_width") for name in frame.columns if name.endswith(" half_width")]
    metrics = [name for name in metrics if name not in hidden]
    private = _is_private(frame)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("protocol", overflow="fold", max_width=LONGEST_LABEL)
    for path in collection.grid:
        table.add_column(escape(path.rpartition(".")[2]), overflow="fold")
    for name in metrics:
        table.add_column(escape(str(name)), justify="right", no_wrap=True)
    if private:
        table.add_column("\u03b5", justify="right", no_wrap=True)
    if len(runs) > 1:
        table.add_column("n", justify="right")
    rows = frame.to_dict("records")
    ends = MOST_ROWS // 2
    for row in rows if len(rows) <= MOST_ROWS + 1 else [*rows[:ends], None, *rows[-ends:]]:
        if row is None:
            table.add_row(f"... {len(rows) - 2 * ends} more", style="dim")
            continue
        cells = [row["label"], *(str(row[path]) for path in collection.grid)]
        cells += [_number(row, str(name)) for name in metrics]
        if private:
            cells.append(_epsilons(row))
        if len(runs) > 1:
            cells.append(str(row["n"]))
        table.add_row(*map(escape, map(str, cells)), style="bold red" if row["flagged"] else None)
    return table


def _number(row: Mapping[Any, Any], name: str) -> str:
    return with_half_width(row[name], row[f"{name} half_width"] if row["n"] >= FEWEST else float("nan"))


def _epsilons(row: Mapping[Any, Any]) -> str:
    claimed, verified = row["epsilon_claimed"], row["epsilon_verified"]
    both = [epsilon_text(claimed), epsilon_text(verified)]
    return "\u2013" if both[0] == both[1] == "\u2013" else " / ".join(both) + (f" {MARK}" if row["flagged"] else "")


def _captions(collection: Collection) -> list[str]:
    """Return what the table's numbers are, and what trivial predictions come to."""
    frame = summarise(collection)
    counts: list[int] = frame["n"].tolist()
    least, most = min(counts), max(counts)
    runs = f"{most} run{'' if most == 1 else 's'}" if least == most else f"{least} to {most} runs"
    few = least < FEWEST
    said = f"mean over {runs}" + ("; too few for intervals" if few else " \N{PLUS-MINUS SIGN} 95 % t interval")
    if _is_private(frame):
        said += "; \u03b5 claimed / verified"
    if collection.started_with_vectors:
        said += "; vectors without those before the start"
    lines = [said]
    trivial = [row for row in trivial_rows(collection) if not row.at]
    parts = [
        f"{row.label.strip('()')} {', '.join(f'{name} {mean:.4g}' for name, (mean, _) in row.values.items())}"
        for row in trivial
        if row.values
    ]
    return [*lines, f"without learning: {'; '.join(parts)}"] if parts else lines


def _is_private(frame: pd.DataFrame) -> bool:
    return bool(frame[["epsilon_claimed", "epsilon_verified"]].notna().to_numpy().any())
