"""Commands that say what there is, and write something to start from."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from .application import Assignments, DataDir, app, names_of, new, option, parts_of, path_option


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect no garbage, for a command that only reads and prints.

    What imports and models leave is little. Looking for it meanwhile is a tenth of the command, and once more when the
    interpreter ends a fifth of it: what is frozen by then is not looked through.
    """
    before = gc.isenabled()
    gc.disable()
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        if before:
            gc.enable()


@app.command("list")
def list_(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[LIST]",
            help="scenarios, protocols, tasks, latencies, metrics, figures, ...; else all.",
            autocompletion=names_of("lists"),
        ),
    ] = None,
) -> None:
    """List what a scenario may name: scenarios, protocols, tasks, models of the network, metrics, figures."""
    with _uncollected():
        from ..shell.listing import lists

        found = lists(what)
    for title, lines in found.items():
        typer.echo(f"{title}:")
        for name, line in lines.items():
            typer.echo(f"  {name:<22} {line}".rstrip())


@app.command()
def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="task.adult, latency.gamma, coordinate_descent or cd, ...",
            autocompletion=names_of("topics"),
        ),
    ],
) -> None:
    """Explain a name: its fields with defaults and ranges, its equations, its paper."""
    from ..shell.explain import explain as page

    typer.echo(page(name))


@app.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors."""
    with _uncollected():
        import json

        from ..language.schema import scenario_schema

        text = json.dumps(scenario_schema(), indent=2)
    typer.echo(text)


@app.command()
def data(data_dir: DataDir = None) -> None:
    """Say which data sets are found where, and how to get the others."""
    from ...agents.tasks import datasets

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
    folder: Annotated[Path, path_option("--dir", "DIR", "Where to write it.")] = Path(),
) -> None:
    """Write NAME.py, a working protocol in 25 lines, and test_NAME.py."""
    from ..contract.skeleton import write_protocol

    for path in write_protocol(name, folder):
        typer.echo(f"wrote {path}")


@new.command("scenario")
def new_scenario(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the scenario and of its file, NAME.yaml.")],
    folder: Annotated[Path, path_option("--dir", "DIR", "Where to write it.")] = Path(),
    protocols: Annotated[list[str] | None, option("--protocol", "KIND,...", "Protocols to compare.")] = None,
    task: Annotated[str | None, option("--task", "KIND", "See hushnet list tasks.")] = None,
    model: Annotated[str | None, option("--model", "KIND", "See hushnet list models.")] = None,
    split: Annotated[str | None, option("--split", "KIND", "See hushnet list splits.")] = None,
    topology: Annotated[str | None, option("--topology", "KIND", "Likewise.")] = None,
    clock: Annotated[str | None, option("--clock", "KIND", "Likewise.")] = None,
    latency: Annotated[str | None, option("--latency", "KIND", "Likewise.")] = None,
    loss: Annotated[str | None, option("--loss", "KIND", "Likewise.")] = None,
    availability: Annotated[str | None, option("--availability", "KIND", "Likewise.")] = None,
    data: Annotated[Path | None, path_option("--data", "FILE", "A table of your own is the task.")] = None,
    label: Annotated[str | None, option("--label", "COLUMN", "The table's label.")] = None,
    agent: Annotated[str | None, option("--agent", "COLUMN", "Who owns a row; else rows are dealt out.")] = None,
    assignments: Assignments = None,
) -> None:
    """Write NAME.yaml, a scenario that runs, with every other field and its default as a comment."""
    from ...agents.errors import InputError
    from ..shell.new_scenario import write_scenario
    from ..shell.own_table import own_table

    if (data is None) != (label is None) or (agent is not None and data is None) or (data is not None and task):
        raise InputError("a table of your own is given by --data FILE --label COLUMN [--agent COLUMN], without --task")
    own = None
    if data is not None and label is not None:
        own = own_table(data, folder, agent=agent, label=label, several=model not in (None, "linear"))
    for note in own.notes if own is not None else ():
        typer.echo(note)
    kinds = {
        "task": task,
        "model": model,
        "split": split,
        "topology": topology,
        "clock": clock,
        "latency": latency,
        "loss": loss,
        "availability": availability,
    }
    among, given = parts_of(protocols) or (), assignments or ()
    typer.echo(f"wrote {write_scenario(name, folder, kinds=kinds, among=among, own=own, assignments=given)}")
