"""The command: measures the matrix, each protocol in a process of its own, and prints a table."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from ..run import THREADS, machine
from .cases import DIMENSIONS, ENTRIES, NETWORKS, NOISES, Entry, Row, rows_of
from .measure import Cell, measure_row

HEADER = (
    "protocol",
    "way",
    "noise",
    "p",
    "step",
    "floor, us",
    *NETWORKS,
    "times plain",
    "drawing floor",
    "noiseless floor",
)
MEASURED = list[tuple[Row, list[Cell]]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print, and write the table if asked to."""
    options = _parse(arguments)
    os.environ.update(dict.fromkeys(THREADS, "1"))
    began = f"{machine()}; commit {commit()}; load {_load()} at the beginning"
    print(began, flush=True)
    measured: MEASURED = []
    for entry in ENTRIES:
        if options.protocols and entry.kind not in options.protocols:
            continue
        for row, cells in _apart(entry, options):
            measured.append((row, cells))
            print(" | ".join(line(row, cells, measured)), flush=True)
    if options.markdown:
        options.markdown.write_text(f"{began}, {_load()} at the end\n\n{table(measured)}\n")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.matrix", description=__doc__)
    parser.add_argument("--protocols", nargs="+", metavar="KIND", help="only these")
    parser.add_argument("--noises", nargs="+", default=NOISES, choices=NOISES, help="only rows with these")
    parser.add_argument("--repetitions", type=int, default=3, help="the median of so many is given (3)")
    parser.add_argument("--toy", action="store_true", help="a handful of agents, to see that everything runs")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there, too")
    return parser.parse_args(arguments)


def _apart(entry: Entry, options: argparse.Namespace) -> Iterator[tuple[Row, list[Cell]]]:
    """A protocol's rows, in a fresh process."""
    dimensions = (4,) if options.toy else DIMENSIONS
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        for row in rows_of(entry, dimensions, toy=options.toy):
            if row.noise not in (*options.noises, row.noise_of_its_own):
                continue
            yield row, pool.submit(measure_row, row, options.repetitions).result()


def line(row: Row, cells: Sequence[Cell], measured: MEASURED) -> tuple[str, ...]:
    """One row of the table; what is plain is among those that were measured before, or it is not."""
    found = {cell.network: cell for cell in cells}
    forms = list(dict.fromkeys(cell.form for cell in cells))
    floors = sorted(cell.floor for cell in cells)
    return (
        row.entry.name,
        row.way,
        row.noise,
        str(row.dimension),
        " / ".join(forms),
        f"{floors[len(floors) // 2]:.2f}",
        *(_cell(found.get(network)) for network in NETWORKS),
        _times_plain(row, found, measured),
        _other(found["lossless"], found["lossless"].drawing),
        _other(found["lossless"], found["lossless"].noiseless),
    )


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    return f"{cell.time:.1f}: {cell.ratio:.1f} ({min(cell.ratios):.1f}-{max(cell.ratios):.1f})"


def _other(cell: Cell, floors: tuple[float, ...]) -> str:
    """Microseconds of another floor, and the ratio to it."""
    if not floors:
        return "-"
    ratios = cell.against(floors)
    return f"{statistics.median(floors):.2f}: {statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})"


def _times_plain(row: Row, found: dict[str, Cell], measured: MEASURED) -> str:
    """The ratio to the floor against that without noise, where neither loses anything."""
    for other, cells in measured:
        same = (other.entry, other.way, other.dimension) == (row.entry, row.way, row.dimension)
        if same and other.noise == "plain" != row.noise:
            return f"{found['lossless'].ratio / cells[0].ratio:.2f}"
    return "-"


def table(measured: MEASURED) -> str:
    """The measurements as a Markdown table."""
    rule = ("---",) * 3 + ("---:",) + ("---",) + ("---:",) * (len(HEADER) - 5)
    rows = [HEADER, rule, *(line(row, cells, measured) for row, cells in measured)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def commit() -> str:
    """The version of the code, short."""
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
