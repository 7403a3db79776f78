"""The shell: ``hushnet run``, ``compare``, ``report``, ``reproduce`` and the other commands.

Only typer and the standard library are imported with this module, so that ``hushnet --help`` is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .signals import terminable

if TYPE_CHECKING:
    from .language.loading import LoadedScenario

app = typer.Typer(
    name="hushnet",
    help="Simulate asynchronous peer-to-peer agents that learn together and pay for what they reveal.",
    epilog="Start with: hushnet run quickstart",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
new = typer.Typer(help="Write a starting point for your own code.", no_args_is_help=True)
app.add_typer(new, name="new")

Where = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A shipped scenario's name, or a YAML file.")]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override a field: network.loss=0.2.")
]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, metavar="N", help="Run this many seeds instead.")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", metavar="DIR", help="Folder of data sets; else HUSHNET_DATA.")
]
Jobs = Annotated[
    str, typer.Option("--jobs", metavar="N|auto", help="Processes; auto is one for every processor. Same results.")
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="Use a dask cluster: tcp://host:8786 or tls://host:8786."),
]
DEBUG = "HUSHNET_DEBUG"
"""Environment variable that has errors which nobody foresaw raised, with their traceback."""
POOL = "ARROW_DEFAULT_MEMORY_POOL", "system"
"""Environment variable that has Arrow give back what a table took: its own pool keeps 60 MB after 10,000 runs."""
UNFORESEEN, INTERRUPTED, TERMINATED = 70, 130, 143
"""Exit codes; 128 and the number of the signal."""
MOST_SHOWN = 300
"""Characters of such an error's own message."""

TrustCode = Annotated[bool, typer.Option("--trust-code", help="Run Python files that the scenario names.")]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hushnet {version('hushnet')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that come before a command."""


@app.command()
def run(
    scenario: Where,
    assignments: Assignments = None,
    seeds: Seeds = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Results go here instead of results/<scenario>.")
    ] = None,
    data_dir: DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be run.")] = False,
    trust_code: TrustCode = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="The scenario's quick version, into results/<scenario>-quick.")
    ] = False,
    jobs: Jobs = "1",
    scheduler: Scheduler = None,
    contract: Annotated[
        bool,
        typer.Option(
            "--contract/--no-contract",
            help="Check the privacy of your own protocols by replay, once: some ten runs; else no epsilon is verified.",
        ),
    ] = True,
) -> None:
    """Run every protocol of a scenario for every seed; write results, figures and a table."""
    with _loaded(scenario, assignments, seeds, trust_code, quick=quick) as loaded:
        from .console import run_scenario

        workers = {"jobs": _processes(jobs), "scheduler": scheduler}
        options = {"progress": not quiet, "dry_run": dry_run, "contract": contract}
        run_scenario(loaded, out=out, data_dir=data_dir, **options, **workers)


@app.command()
def check(scenario: Where, assignments: Assignments = None, seeds: Seeds = None, trust_code: TrustCode = False) -> None:
    """Check a scenario without running it."""
    from .limits.events import check_limits

    with _loaded(scenario, assignments, seeds, trust_code) as loaded:
        check_limits(loaded)
        counts = [len(loaded.scenario.protocols), len(loaded.points), loaded.scenario.repetitions]
        runs = counts[0] * counts[1] * counts[2]
        each = [_count(n, word) for n, word in zip(counts, ("protocol", "grid point", "seed"), strict=True)]
        tried = sum(len(trial.scenario.protocols) * trial.scenario.repetitions for trial in loaded.trials)
        tuning = f"; {_count(tried, 'run')} of tuning before" if tried else ""
        typer.echo(f"{scenario}: valid; {', '.join(each)}: {_count(runs, 'run')}{tuning}")


@app.command()
def audit(
    scenario: Where,
    tier: Annotated[
        str, typer.Option("--tier", metavar="A,B,C", help="A: noise as drawn; B: replay of worst pairs; C: attack.")
    ] = "A,B,C",
    pairs: Annotated[int, typer.Option("--pairs", metavar="N", help="Pairs of data sets a protocol.")] = 8,
    trials: Annotated[
        int, typer.Option("--trials", metavar="N", help="Runs on either data set; 0: the mechanism alone.")
    ] = 50,
    level: Annotated[
        float, typer.Option("--level", metavar="P", help="Probability that anything said is wrong.")
    ] = 0.01,
    one_run: Annotated[
        int, typer.Option("--one-run", metavar="N", help="Further runs in which every agent's record is guessed.")
    ] = 0,
    jobs: Jobs = "1",
    assignments: Assignments = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="DIR/audit instead of results/<scenario>/audit.")
    ] = None,
    data_dir: DataDir = None,
    trust_code: TrustCode = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the result.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="The scenario's quick version.")] = False,
) -> None:
    """Attack every private protocol of a scenario: what is claimed, what is verified, and epsilon at least."""
    with _loaded(scenario, assignments, None, trust_code, quick=quick) as loaded:
        from .audit.audit import Options
        from .audit.command import audit_scenario
        from .experiment import Experiment

        tiers = tuple(part.strip().upper() for part in tier.split(","))
        options = Options(tiers, pairs, trials, level, _count_of(_processes(jobs)), one_run)
        audit_scenario(Experiment(loaded, out, data_dir), options, quiet=quiet)


@app.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors."""
    import json

    from .language.schema import scenario_schema

    typer.echo(json.dumps(scenario_schema(), indent=2))


@app.command("list")
def list_(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[LIST]", help="scenarios, protocols, tasks, latencies, metrics, figures, ...; else all."
        ),
    ] = None,
) -> None:
    """List what a scenario may name: scenarios, protocols, tasks, models of the network, metrics, figures."""
    from .shell.listing import lists

    for title, lines in lists(what).items():
        typer.echo(f"{title}:")
        for name, line in lines.items():
            typer.echo(f"  {name:<22} {line}".rstrip())


@app.command()
def explain(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="task.adult, latency.gamma, coordinate_descent or cd, ...")
    ],
) -> None:
    """Explain a name: its fields with defaults and ranges, its equations, its paper."""
    from .shell.explain import explain as page

    typer.echo(page(name))


@app.command()
def plot(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder results/<scenario>.")],
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME,...", help="These figures, by their files' names.")
    ] = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", metavar="png,pdf,svg", help="Only these formats; CSV in any case.")
    ] = None,
    width: Annotated[
        str | None, typer.Option("--width", metavar="WIDTH", help="one column, two columns, or centimetres: 12 cm.")
    ] = None,
    style: Annotated[
        str | None,
        typer.Option("--style", metavar="FILE|{...}", help="A YAML file of a style, or {font: serif, legend: right}."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write here instead of into RESULTS/figures.")
    ] = None,
) -> None:
    """Redraw the figures from the files of a finished run, in the scenario's style or in another one."""
    from .figures import redraw
    from .figures.style import from_options

    asked = from_options(style, width=width, formats=_split(formats))
    written = redraw(results, out=out, only=_split(only), style=asked)
    kinds = {path.suffix for path in written}
    first = next(suffix for suffix in (".png", ".pdf", ".svg", ".csv") if suffix in {*kinds, ".csv"})
    for path in written:
        if path.suffix == first:
            typer.echo(f"figure: {path}")


@app.command()
def report(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder results/<scenario>.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write here instead of RESULTS/report.html.")
    ] = None,
) -> None:
    """Write one HTML page about a finished run: tables, interactive charts, privacy, how to reproduce."""
    from .report.page import write_report

    typer.echo(f"report: {write_report(results, out)}")


@app.command()
def compare(
    results: Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Folders results/<scenario>.")],
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="NAME", help="A protocol; else the first.")
    ] = None,
) -> None:
    """Compare protocols run by run with a baseline: paired differences, break-even points; also as CSV and LaTeX."""
    from .compare.tables import compare_folders

    compare_folders(results, baseline)


@app.command()
def bundle(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder results/<scenario>.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.zip", help="Write here instead of into RESULTS.")
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="CLAIMS.csv", help="Say whether RESULTS bear out a bundle's claims."),
    ] = None,
) -> None:
    """Pack what a reviewer needs to run an experiment again and to check its numbers; or check them."""
    from .bundle import check_bundle, write_bundle

    check_bundle(results, check) if check else typer.echo(f"bundle: {write_bundle(results, out)}")


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="[PAPER|FIGURE]", help="Such as bellet2018 or bellet2018-fig2a; else all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller, fewer seeds: numbers but no verdict.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Large designs as well, which take hours.")] = False,
    results: Annotated[
        Path, typer.Option("--results", metavar="DIR", help="Runs and pages (DIR/reproduction) go here.")
    ] = Path("results"),
    data_dir: DataDir = None,
    jobs: Jobs = "1",
) -> None:
    """Run the papers' figures and tables; write a page per paper: claimed, measured, and whether it holds."""
    from .reproduction.papers import papers
    from .reproduction.reproduce import reproduce as reproduce_papers

    options = {"quick": quick, "full": full, "results": results, "data_dir": data_dir, "jobs": _processes(jobs)}
    failures = reproduce_papers(papers(), name, **options, say=typer.echo)
    for failure in failures:
        typer.echo(str(failure), err=True)
    if failures:
        raise typer.Exit(max(failure.exit_code for failure in failures))


@app.command()
def data(data_dir: DataDir = None) -> None:
    """Say which data sets are found where, and how to get the others."""
    from ..agents.tasks import datasets

    folder = datasets.data_directory(data_dir)
    typer.echo(f"data directory: {folder or 'none (give --data-dir DIR or set HUSHNET_DATA)'}")
    for found in datasets.find(folder):
        words = {True: "intact", False: "CHANGED", None: "not verified (no checksum is published)"}
        state = "missing" if found.path is None else f"{found.path}, {words[found.intact]}"
        wanting = found.path is None or found.intact is False
        typer.echo(f"  {found.name:<12}{state}" + (f"; {found.hint}" if wanting else ""))


@new.command("protocol")
def new_protocol(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the module, such as my_protocol.")],
    folder: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Where to write it.")] = Path(),
) -> None:
    """Write NAME.py, a working protocol in 25 lines, and test_NAME.py."""
    from .contract.skeleton import write_protocol

    for path in write_protocol(name, folder):
        typer.echo(f"wrote {path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the shell; returns the exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the command line by default.
    """
    os.environ.setdefault(*POOL)
    with terminable() as asked:
        code = _main(arguments)
    return TERMINATED if asked and code == INTERRUPTED else code


def _main(arguments: Sequence[str] | None) -> int:
    from ..agents.errors import HushnetError

    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(given, prog_name="hushnet", standalone_mode=False)
    except HushnetError as error:
        return _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", INTERRUPTED)
    except typer.Exit as leaving:
        return leaving.exit_code
    except BrokenPipeError:
        # The reader (`| head`) has gone; what is still buffered must not be written when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        from .storage.files import out_of_order

        said = out_of_order(error, error.filename or "a file")
        return _unforeseen(error, given) if said is None else _complain(str(said), said.exit_code)
    except Exception as error:
        # What typer raises on a wrong command line has moved between its versions; what it offers has not.
        if not hasattr(error, "format_message"):
            return _unforeseen(error, given)
        message = " ".join(error.format_message().split())  # pyright: ignore[reportAttributeAccessIssue]
        return _complain(f"{message.rstrip('.')}; see hushnet --help" if message else "", 2)
    if code == INTERRUPTED:
        return _complain("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


@contextmanager
def _loaded(
    scenario: str, assignments: list[str] | None, seeds: int | None, trust_code: bool, *, quick: bool = False
) -> Iterator[LoadedScenario]:
    """A checked scenario; errors that turn up inside are said with file and line."""
    from ..agents.errors import InputError
    from .language.loading import load, locate

    loaded = load(scenario, overrides=assignments or (), trust_code=trust_code, seeds=seeds, quick=quick)
    for hint in loaded.hints:
        typer.echo(f"warning: {hint}", err=True)
    try:
        yield loaded
    except InputError as error:
        raise InputError(locate(error, loaded)) from error


def _split(given: list[str] | None) -> list[str] | None:
    """The parts of options that are repeated or have commas."""
    return None if given is None else [part.strip() for text in given for part in text.split(",") if part.strip()]


def _processes(jobs: str) -> int | Literal["auto"]:
    if jobs == "auto":
        return "auto"
    if not jobs.isdecimal() or int(jobs) < 1:
        raise typer.BadParameter(f"--jobs {jobs}: must be a number from 1, or auto")
    return int(jobs)


def _count_of(jobs: int | Literal["auto"]) -> int:
    if jobs != "auto":
        return jobs
    from dask.system import cpu_count

    return cpu_count()


def _complain(message: str, code: int) -> int:
    if message:
        typer.echo(message, err=True)
    return code


def _unforeseen(error: Exception, given: Sequence[str]) -> int:
    """The last resort: one sentence about an error that nobody foresaw, and its details in a file of its own."""
    if os.environ.get(DEBUG):
        raise error
    from importlib.metadata import version
    from tempfile import NamedTemporaryFile
    from traceback import format_exception

    what = " ".join(f"{type(error).__name__}: {error}".split())[:MOST_SHOWN].rstrip(": ")
    details = [
        f"hushnet {version('hushnet')}, Python {sys.version}\n",
        f"arguments: {given}\n\n",
        *format_exception(error),
    ]
    try:
        with NamedTemporaryFile("w", prefix="hushnet-", suffix=".txt", delete=False, encoding="utf-8") as stream:
            stream.writelines(line.encode(errors="backslashreplace").decode() for line in details)
        kept = f"the details are in {stream.name}"
    except OSError:
        kept = f"its details could not be kept; set {DEBUG}=1 to see them"
    return _complain(f"an error that hushnet did not foresee, {what}; {kept}, please report it", UNFORESEEN)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


if __name__ == "__main__":
    sys.exit(main())
