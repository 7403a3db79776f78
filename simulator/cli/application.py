"""The application that commands belong to, and the arguments and options that several of them have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from ..language.loading import LoadedScenario

app = typer.Typer(
    name="hushnet",
    help="Simulate asynchronous peer-to-peer agents that learn together and pay for what they reveal.",
    epilog="Start with: hushnet run quickstart",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
new = typer.Typer(help="Write a starting point for your own code.", no_args_is_help=True)
app.add_typer(new, name="new")


def names_of(of: str) -> Callable[[str], list[str]]:
    """Return a function that completes words in a shell; it imports their names only when a completion is asked for."""

    def complete(incomplete: str) -> list[str]:
        from ..shell.completion import names

        return names(of, incomplete)

    return complete


def place(given: str | Path) -> Path:
    """A path of the command line, see `hushnet.agents.input_files.at_home`."""
    from ...agents.input_files import at_home

    return at_home(Path(given))


def option(flag: str, metavar: str, help: str) -> Any:
    """An option that has a value, which the help calls by a word."""
    return typer.Option(flag, metavar=metavar, help=help)


def path_option(flag: str, metavar: str, help: str) -> Any:
    """An option whose value is a path."""
    return typer.Option(flag, metavar=metavar, help=help, parser=place)


Where = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="A shipped scenario's name, or a YAML file.",
        autocompletion=names_of("scenarios"),
    ),
]
Assignments = Annotated[list[str] | None, option("--set", "PATH=VALUE", "Override a field: network.loss=0.2.")]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, metavar="N", help="Run this many seeds instead.")]
DataDir = Annotated[Path | None, path_option("--data-dir", "DIR", "Folder of data sets; else HUSHNET_DATA.")]
Jobs = Annotated[
    str, option("--jobs", "N|auto", "Processes; auto: as many as help, processors and memory admit. Same results.")
]
Scheduler = Annotated[
    str | None, option("--scheduler", "ADDRESS", "Use a dask cluster: tcp://host:8786 or tls://host:8786.")
]

TrustCode = Annotated[bool, typer.Option("--trust-code", help="Run Python files that the scenario names.")]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import distribution

        installed, here = distribution("hushnet"), Path(__file__).resolve().parents[2]
        there = _place_of(installed)
        where = f" from {here}, not the installed {installed.version} of {there}" if here != there else ""
        typer.echo(f"hushnet{where or f' {installed.version}'}")
        raise typer.Exit


def _place_of(installed: Distribution) -> Path:
    """The folder that an installed hushnet is imported from: of an editable one its clone."""
    about = json.loads(installed.read_text("direct_url.json") or "{}")
    if about.get("dir_info", {}).get("editable"):
        from urllib.parse import urlsplit
        from urllib.request import url2pathname

        return Path(url2pathname(urlsplit(about["url"]).path)).resolve()
    return Path(str(installed.locate_file("hushnet"))).resolve()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that come before a command."""


@contextmanager
def loaded_scenario(
    scenario: str, assignments: list[str] | None, seeds: int | None, trust_code: bool, *, quick: bool = False
) -> Iterator[LoadedScenario]:
    """A checked scenario; errors that turn up inside are said with file and line."""
    from ...agents.errors import InputError
    from ..language.loading import load, locate

    read = load(scenario, overrides=assignments or (), trust_code=trust_code, seeds=seeds, quick=quick)
    try:
        yield read
    except InputError as error:
        raise InputError(locate(error, read)) from error


def parts_of(given: list[str] | None) -> list[str] | None:
    """The parts of options that are repeated or have commas."""
    return None if given is None else [part.strip() for text in given for part in text.split(",") if part.strip()]


def processes_of(jobs: str) -> int | Literal["auto"]:
    """The value of --jobs."""
    if jobs == "auto":
        return "auto"
    if not jobs.isdecimal() or int(jobs) < 1:
        raise typer.BadParameter(f"--jobs {jobs}: must be a number from 1, or auto")
    return int(jobs)
