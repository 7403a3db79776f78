"""Commands that run something, or check what would be run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .application import (
    Assignments,
    DataDir,
    Jobs,
    Scheduler,
    Seeds,
    TrustCode,
    Where,
    app,
    loaded_scenario,
    names_of,
    option,
    path_option,
    place,
    processes_of,
)


@app.command()
def run(
    scenario: Where,
    assignments: Assignments = None,
    seeds: Seeds = None,
    out: Annotated[Path | None, path_option("--out", "DIR", "Results go here instead of results/<scenario>.")] = None,
    data_dir: DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be run.")] = False,
    trust_code: TrustCode = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar, and no word about compiling.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="A line for every run, as in run.log beside the results.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="The scenario's quick version, into results/<scenario>-quick.")
    ] = False,
    jobs: Jobs = "auto",
    scheduler: Scheduler = None,
    contract: Annotated[
        bool,
        typer.Option(
            "--contract/--no-contract",
            help="Check the privacy of your own protocols by replay, some ten runs each, and that they do the same in "
            "every process; else no epsilon is verified.",
        ),
    ] = True,
    contract_points: Annotated[
        int,
        option(
            "--contract-points",
            "N",
            "Replay each of your own protocols at N points of a sweep at most; at others no epsilon is verified.",
        ),
    ] = 4,
) -> None:
    """Run every protocol of a scenario for every seed; write results, figures and a table."""
    with loaded_scenario(scenario, assignments, seeds, trust_code, quick=quick) as loaded:
        from ...agents.compilation import unannounced
        from ..console import run_scenario

        workers = {"jobs": processes_of(jobs), "scheduler": scheduler}
        options = {"progress": not quiet, "dry_run": dry_run, "verbose": verbose}
        proved = {"contract": contract, "contract_points": contract_points}
        with unannounced(quiet=quiet):
            run_scenario(loaded, out=out, data_dir=data_dir, **options, **workers, **proved)


@app.command()
def check(
    scenario: Where,
    assignments: Assignments = None,
    seeds: Seeds = None,
    trust_code: TrustCode = False,
    data_dir: Annotated[
        Path | None, path_option("--data-dir", "DIR", "Look for the data sets there, as well, and read their sums.")
    ] = None,
) -> None:
    """Check a scenario without running it."""
    from ...agents.suggestions import counted
    from ..limits.limit_objectives import check_classes
    from ..limits.memory import check_machine
    from ..limits.rehearsal import rehearse

    with loaded_scenario(scenario, assignments, seeds, trust_code) as loaded:
        check_machine(loaded)
        check_classes(loaded)
        rehearse(loaded)
        from ..shell.data_check import check_data, check_files

        if data_dir is None:
            check_files(loaded)
        else:
            for line in check_data(loaded, data_dir):
                typer.echo(line)
        counts = [len(loaded.scenario.protocols), len(loaded.points), loaded.scenario.repetitions]
        runs = counts[0] * counts[1] * counts[2]
        each = [counted(n, word) for n, word in zip(counts, ("protocol", "grid point", "seed"), strict=True)]
        tried = sum(len(trial.scenario.protocols) * trial.scenario.repetitions for trial in loaded.trials)
        tuning = f"; {counted(tried, 'run')} of tuning before" if tried else ""
        typer.echo(f"{scenario}: valid; {', '.join(each)}: {counted(runs, 'run')}{tuning}")


@app.command()
def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A graph, delays, a log of ping, who was up when, or times of steps.", parser=place
        ),
    ],
    to: Annotated[str, option("--to", "WHAT", "edges, delays, availability or compute.")],
    out: Annotated[Path | None, path_option("--out", "FILE", "Else FILE-WHAT.csv in this folder.")] = None,
    weight: Annotated[str | None, option("--weight", "NAME", "What edges call their weight.")] = None,
    undirected: Annotated[
        bool, typer.Option("--undirected", help="An edge that is listed in one direction counts for both.")
    ] = False,
    unit: Annotated[str | None, option("--unit", "UNIT", "Of the file's durations: ms, s, h, ...")] = None,
    time_unit: Annotated[str, option("--time-unit", "DURATION", "What the scenario counts in, such as 80 ms.")] = "1 s",
    round_trip: Annotated[
        bool | None, typer.Option("--round-trip/--one-way", help="What delays are; else as the file says.")
    ] = None,
    number: Annotated[bool, typer.Option("--number", help="Call agents 0, 1, 2, ..., as synthetic tasks do.")] = False,
) -> None:
    """Turn a file of another program into edges, delays or availability for a scenario, and say what was taken how."""
    from ..conversion.convert_command import FileMeaning
    from ..conversion.convert_command import convert as convert_file

    options = FileMeaning(weight, undirected, unit, time_unit, round_trip, number)
    for line in convert_file(source, to, out, options):
        typer.echo(line)


@app.command()
def audit(
    scenario: Where,
    tier: Annotated[
        str, option("--tier", "A,B,C", "A: noise as drawn; B: replay of worst pairs; C: attack.")
    ] = "A,B,C",
    pairs: Annotated[int, option("--pairs", "N", "Pairs of data sets a protocol.")] = 8,
    trials: Annotated[int, option("--trials", "N", "Runs on either data set; 0: the mechanism alone.")] = 50,
    level: Annotated[float, option("--level", "P", "Probability that anything said is wrong.")] = 0.01,
    jobs: Jobs = "1",
    assignments: Assignments = None,
    out: Annotated[Path | None, path_option("--out", "DIR", "DIR/audit instead of results/<scenario>/audit.")] = None,
    data_dir: DataDir = None,
    trust_code: TrustCode = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the result.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="The scenario's quick version.")] = False,
) -> None:
    """Attack every private protocol of a scenario: what is claimed, what is verified, and epsilon at least."""
    with loaded_scenario(scenario, assignments, None, trust_code, quick=quick) as loaded:
        from ...agents.compilation import unannounced
        from ..audit.audit import Options
        from ..audit.audit_command import audit_scenario
        from ..experiment import Experiment
        from ..experiment.time_left import processes_of as number_of

        tiers = tuple(part.strip().upper() for part in tier.split(","))
        options = Options(tiers, pairs, trials, level, number_of(processes_of(jobs)))
        with unannounced(quiet=quiet):
            audit_scenario(Experiment(loaded, out, data_dir), options, quiet=quiet)


@app.command()
def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAPER|FIGURE]",
            help="Such as bellet2018 or bellet2018-fig2a; else all.",
            autocompletion=names_of("papers"),
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller, fewer seeds: numbers but no verdict.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Large designs as well, which take hours.")] = False,
    more_seeds: Annotated[
        bool, typer.Option("--more-seeds", help="Then add the seeds that would decide what is undecided.")
    ] = False,
    anew: Annotated[
        int, typer.Option("--anew", metavar="N", min=0, help="Raise all seeds by N, and list the verdicts that move.")
    ] = 0,
    results: Annotated[Path, path_option("--results", "DIR", "Runs and pages (DIR/reproduction) go here.")] = Path(
        "results"
    ),
    data_dir: DataDir = None,
    jobs: Jobs = "1",
) -> None:
    """Run the papers' figures and tables; write a page per paper: claimed, measured, and whether it holds."""
    from ..reproduction.papers import papers
    from ..reproduction.reproduce import reproduce as reproduce_papers

    failures = reproduce_papers(
        papers(),
        name,
        quick=quick,
        full=full,
        more_seeds=more_seeds,
        anew=anew,
        results=results,
        data_dir=data_dir,
        jobs=processes_of(jobs),
        say=typer.echo,
    )
    for failure in failures:
        typer.echo(str(failure), err=True)
    if failures:
        raise typer.Exit(max(failure.exit_code for failure in failures))
