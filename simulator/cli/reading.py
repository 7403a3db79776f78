"""Commands that read the results of finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .application import DataDir, TrustCode, app, option, parts_of, path_option, place

Results = Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder results/<scenario>.", parser=place)]
AnyResults = Annotated[
    Path, typer.Argument(metavar="RESULTS", help="A folder results/<scenario>, or results/.", parser=place)
]


@app.command()
def plot(
    results: Results,
    only: Annotated[list[str] | None, option("--only", "NAME,...", "These figures, by their files' names.")] = None,
    formats: Annotated[
        list[str] | None, option("--format", "png,pdf,svg", "Only these formats; CSV in any case.")
    ] = None,
    width: Annotated[str | None, option("--width", "WIDTH", "one column, two columns, or centimetres: 12 cm.")] = None,
    style: Annotated[
        str | None, option("--style", "FILE|{...}", "A YAML file of a style, or {font: serif, legend: right}.")
    ] = None,
    out: Annotated[Path | None, path_option("--out", "DIR", "Write here instead of into RESULTS/figures.")] = None,
) -> None:
    """Redraw the figures from the files of a finished run, in the scenario's style or in another one."""
    from ..figures import redraw
    from ..figures.style import from_options

    asked = from_options(style, width=width, formats=parts_of(formats))
    written = redraw(results, out=out, only=parts_of(only), style=asked)
    kinds = {path.suffix for path in written}
    first = next(suffix for suffix in (".png", ".pdf", ".svg", ".csv") if suffix in {*kinds, ".csv"})
    for path in written:
        if path.suffix == first:
            typer.echo(f"figure: {path}")


@app.command()
def status(results: AnyResults) -> None:
    """Say how far a run is that goes on elsewhere: runs done of all, the time left, the latest one."""
    from ..console.status import status as status_of
    from ..view.followed import experiments, listed

    inside = experiments(results) if results.is_dir() else {}
    if results in inside.values() or not inside:
        lines = status_of(results)
    else:
        lines = [f"{folder}: {listed(name, folder)['words'][0]}" for name, folder in inside.items()]
    for line in lines:
        typer.echo(line)


@app.command()
def report(
    results: Results,
    out: Annotated[Path | None, path_option("--out", "FILE", "Write here instead of RESULTS/report.html.")] = None,
) -> None:
    """Write one HTML page about a finished run: tables, interactive charts, privacy, how to reproduce."""
    from ..report.report_page import write_report

    typer.echo(f"report: {write_report(results, out)}")


@app.command()
def replay(
    results: Results,
    runs: Annotated[
        list[str] | None,
        option("--run", "PROTOCOL,...", "Such as cd,seed=0,network.latency.mean=3; twice for two side by side."),
    ] = None,
    first: Annotated[str, option("--from", "TIME", "From this instant on.")] = "0",
    last: Annotated[str | None, option("--to", "TIME", "Up to this instant.")] = None,
    agents: Annotated[int | None, option("--agents", "N", "Only the first agent and those nearest to it.")] = None,
    out: Annotated[Path | None, path_option("--out", "FILE", "Write here instead of RESULTS/replay.html.")] = None,
    data_dir: DataDir = None,
    trust_code: TrustCode = False,
) -> None:
    """Make one run or two again, and show them as they went: a page with agents, messages, losses, epsilons."""
    from ..replay import write_replay

    path, notes = write_replay(
        results, runs or (), out=out, first=first, last=last, agents=agents, data_dir=data_dir, trust_code=trust_code
    )
    for note in notes:
        typer.echo(f"replay: {note}", err=True)
    typer.echo(f"replay: {path}")


@app.command()
def compare(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULTS...", help="Folders results/<scenario>.", parser=place)
    ],
    baseline: Annotated[str | None, option("--baseline", "NAME", "A protocol; else the first.")] = None,
    measures: Annotated[
        list[str] | None, option("--measure", "NAME", "Show this one, such as accuracy; all shows every measure.")
    ] = None,
    at: Annotated[list[str] | None, option("--at", "PATH=VALUE", "Show a sweep at this value only.")] = None,
    by: Annotated[str | None, option("--by", "PATH", "A column for each value of this swept field.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Every measure, with baselines, intervals and p values.")
    ] = False,
) -> None:
    """Compare protocols run by run with a baseline: paired differences, break-even points; also as CSV and LaTeX."""
    from ..report.comparing import compare_folders

    compare_folders(results, baseline, measures or (), at or (), by, verbose=verbose)


@app.command()
def bundle(
    results: Results,
    out: Annotated[Path | None, path_option("--out", "FILE.zip", "Write here instead of into RESULTS.")] = None,
    check: Annotated[
        Path | None, path_option("--check", "CLAIMS.csv", "Say whether RESULTS bear out a bundle's claims.")
    ] = None,
    with_data: Annotated[
        bool,
        typer.Option("--with-data", help="Pack your data that lie outside the scenario's folder or are large, too."),
    ] = False,
) -> None:
    """Pack what a reviewer needs to run an experiment again and to check its numbers; or check them."""
    from ..bundle import check_bundle, write_bundle

    if check:
        check_bundle(results, check)
    else:
        path = write_bundle(results, out, with_data=with_data, say=lambda text: typer.echo(f"bundle: {text}", err=True))
        typer.echo(f"bundle: {path}")


@app.command()
def export(
    results: Results,
    to: Annotated[str, option("--to", "mlflow|wandb", "The tracker, whose client writes the files.")],
    out: Annotated[
        Path | None, path_option("--out", "DIR", "Write here instead of into RESULTS/mlflow or wandb.")
    ] = None,
) -> None:
    """Write finished runs as MLflow or Weights & Biases keep them, for their own pages; nothing is sent anywhere."""
    from ..bundle.experiment_trackers import export as write

    typer.echo(f"export: {write(results, to, out)}")


@app.command()
def view(
    results: AnyResults,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, metavar="N", help="0 takes a free one.")] = 0,
    trust_code: TrustCode = False,
) -> None:
    """Serve a local, read-only page about many experiments, live while they go on, until Ctrl-C."""
    from ..view import serve

    serve(results, port, typer.echo, trust_code=trust_code)
