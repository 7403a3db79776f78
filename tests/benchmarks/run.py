"""The command: measures cases on engines, each pair in a process of its own, and prints a table."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from .cases import CASES, ENGINES
from .measure import RECORDED_UPDATES, RECORDINGS, Measurement, measure

HEADER = (
    "case",
    "engine",
    "updates an agent x repetitions",
    "us per wake-up",
    "floor, us",
    "ratio to the floor (min-max)",
    "times its base row",
    "messages a second",
    "start, s",
    "peak memory, MiB",
    "100 recordings at updates an agent (min-max; each)",
)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
FAILED = "failed"
FULL = 40
"""Updates an agent below which the table marks a row as reduced."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print, and write the table if asked to."""
    options = _parse(arguments)
    os.environ.update(dict.fromkeys(THREADS, "1"))
    print(machine(), flush=True)
    print(" | ".join(HEADER), flush=True)
    results = []
    for case in options.cases:
        for engine in options.engines:
            results.append(_apart(case, engine, options))
            print(" | ".join(cells(results[-1], results)), flush=True)
            if options.markdown:
                options.markdown.write_text(table(results) + "\n")
    if any(result.skipped.startswith(FAILED) for result in results):
        sys.exit(1)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), metavar="CASE")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), metavar="ENGINE")
    parser.add_argument("--repetitions", type=int, default=5, help="the median of so many is given (5)")
    parser.add_argument("--updates", type=float, default=FULL, help="wake-ups an agent, on average (40)")
    parser.add_argument(
        "--recorded-updates",
        type=float,
        default=RECORDED_UPDATES,
        help=f"the same for the runs that recordings are measured in ({RECORDED_UPDATES:g})",
    )
    parser.add_argument("--toy", action="store_true", help="a handful of agents, to see that everything runs")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there, too")
    parser.add_argument(
        "--troubles",
        action="store_true",
        help="losses, absences and patience, each beside its base row, on the batched engine, instead of these cases",
    )
    options = parser.parse_args(arguments)
    if options.troubles:
        bases = {case.base for case in CASES.values()}
        options.cases = [name for name, case in CASES.items() if case.base or name in bases]
        options.engines = ["batched"]
    return options


def _apart(case: str, engine: str, options: argparse.Namespace) -> Measurement:
    """Measure in a fresh process, whose peak of memory is then this measurement's own."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        future = pool.submit(
            measure,
            case,
            engine,
            updates=options.updates,
            repetitions=options.repetitions,
            recorded_updates=options.recorded_updates,
            toy=options.toy,
        )
        try:
            return future.result()
        except BrokenProcessPool:
            return Measurement(case, engine, skipped=f"{FAILED}, its process was killed, probably for want of memory")
        except Exception as error:  # the other rows are worth having all the same
            return Measurement(case, engine, skipped=f"{FAILED}, {type(error).__name__}: {error}")


def cells(result: Measurement, others: Sequence[Measurement] = ()) -> tuple[str, ...]:
    """One row of the table; what it is compared with is among the others, or it is not."""
    title = CASES[result.case].title
    if result.skipped:
        return (title, result.engine, f"not measured: {result.skipped}", *["-"] * (len(HEADER) - 3))
    ratios = result.ratios
    return (
        title,
        result.engine,
        f"{result.updates:g} x {len(result.runs)}" + (" (reduced)" if result.updates < FULL else ""),
        f"{result.microseconds:.1f}",
        f"{statistics.median(result.floors):.2f}",
        f"{statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})",
        _times_base(result, others),
        f"{result.message_rate:,.0f}",
        f"{result.start:.1f}",
        f"{result.peak / 2**20:,.0f}",
        _recording(result),
    )


def _times_base(result: Measurement, others: Sequence[Measurement]) -> str:
    """The ratio to the floor against that of the base row on the same engine."""
    name = CASES[result.case].base
    base = next((other for other in others if (other.case, other.engine) == (name, result.engine)), None)
    if base is None or not base.ratios:
        return "-"
    return f"{statistics.median(result.ratios) / statistics.median(base.ratios):.2f} ({name})"


def _recording(result: Measurement) -> str:
    if not result.recording:
        return "-"
    each = 1e3 * statistics.median(added for _, added in result.recording) / RECORDINGS
    shares = [100 * share for share in result.recording_shares]
    middle, low, high = statistics.median(shares), min(shares), max(shares)
    return f"{middle:.0f} % at {result.recorded_updates:g} ({low:.0f}-{high:.0f} %; {each:.2f} ms)"


def table(results: Sequence[Measurement]) -> str:
    """The measurements as a Markdown table below a line about the machine."""
    rows = [HEADER, ("---",) * 3 + ("---:",) * (len(HEADER) - 3), *(cells(result, results) for result in results)]
    return "\n".join([machine(), "", *(f"| {' | '.join(row)} |" for row in rows)])


def machine() -> str:
    """When and on what."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "scipy", "simpy"))
    return (
        f"{datetime.date.today():%Y-%m-%d}, {processor()}, {os.cpu_count()} cores, {_memory()}, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, {versions}"
    )


def processor() -> str:
    """Model of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown CPU")


def _memory() -> str:
    if not hasattr(os, "sysconf") or sys.platform == "win32":
        return "memory unknown"
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
