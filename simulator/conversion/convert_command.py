"""The command `hushnet convert`: one file of another program becomes one that a scenario reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...agents.errors import InputError
from ...agents.input_files import parse_number, read_bytes
from ..storage.files import put_file
from .delays import read_delays
from .edges import read_edges, undirected
from .presence import counted, read_presence
from .step_times import read_step_times
from .units import Durations, TimeUnit, unit_named

TARGETS = ("edges", "delays", "availability", "compute")
"""What a file may become."""


@dataclass(frozen=True)
class FileMeaning:
    """Options of the command line that say how a file is read."""

    weight: str | None = None
    """Name of an edge's weight."""
    undirected: bool = False
    """Whether edges in one direction count for both."""
    unit: str | None = None
    """Of durations."""
    time_unit: str = "1 s"
    """The scenario's, such as ``80 ms``."""
    round_trip: bool | None = None
    """Whether delays are there and back."""
    number: bool = False
    """Whether agents are called 0, 1, 2, ..."""

    @property
    def durations(self) -> Durations:
        """What is said of durations, checked."""
        time = TimeUnit.read(self.time_unit)
        unit = None if self.unit is None else unit_named(self.unit, "--unit")
        return Durations(unit, self.round_trip, time)


@dataclass(frozen=True)
class Converted:
    """A table that a scenario reads."""

    header: tuple[str, ...]
    rows: list[tuple[object, ...]]
    agents: list[str]
    """Their names in the order in which the table has them first."""
    field: str
    """How a scenario names the file, with ``{}`` for its path."""

    def text(self) -> str:
        """Return the table as CSV."""
        import pandas as pd

        from ..storage.plain_text import csv_text

        return csv_text(pd.DataFrame(self.rows, columns=list(self.header)))


def convert(source: Path, to: str, out: Path | None, options: FileMeaning) -> list[str]:
    """Write a scenario's form, of `TARGETS`, of a file, and return in words what was taken for what.

    By default it goes into the present folder, named like the source and what it became. Raises `InputError` if the
    file cannot be read, or something else stands where it is to be written.
    """
    if to not in TARGETS:
        raise InputError(f"--to is {to!r}; admissible: {', '.join(TARGETS)}")
    notes: list[str] = []
    makers = {"delays": _delays, "availability": _availability, "compute": _compute}
    made = makers[to](source, options.durations, notes) if to in makers else _edges(source, options, notes)
    if options.number and made.agents:
        made = _numbered(made, notes)
    out = out or Path(f"{source.name.partition('.')[0]}-{to}.csv")
    content = made.text().encode()
    if out.exists() and (not out.is_file() or read_bytes(out) != content):
        raise InputError(f"{out}: is there, and has something else; choose another place by --out")
    put_file(content, out)
    said = [f"{source}: taken for {notes[0]}", *(f"  {note}" for note in notes[1:])]
    return [*said, *_of_agents(made, options), f"{out}: {len(made.rows)} rows; in a scenario: {made.field.format(out)}"]


def _of_agents(made: Converted, options: FileMeaning) -> list[str]:
    names = made.agents
    if not names or options.number or {*names} == {str(k) for k in range(len(names))}:
        return []
    shown = ", ".join(names[:3]) + (f", ..., {names[-1]}" if len(names) > 3 else "")
    return [
        f"  {len(names)} agents, called {shown}: the ids of the scenario's task have to be these; a synthetic task "
        f"calls its agents 0 to {len(names) - 1}, for which --number renames them"
    ]


def _numbered(made: Converted, notes: list[str]) -> Converted:
    """Return the table with agents called by their rank: of numbers by size, else of names by the alphabet."""
    names = sorted(made.agents, key=lambda name: (parse_number(name) != parse_number(name), _rank(name)))
    rank = {name: str(k) for k, name in enumerate(names)}
    ends = {"agent": 1, "delay": 0}.get(made.header[0], 2)
    rows = [(*(rank[str(name)] for name in row[:ends]), *row[ends:]) for row in made.rows]
    notes.append(f"agents renamed: {', '.join(f'{name} is {rank[name]}' for name in names[:3])}, ...")
    return Converted(made.header, rows, [rank[name] for name in made.agents], made.field)


def _rank(name: str) -> tuple[float, str]:
    value = parse_number(name)
    return (value, "") if value == value else (0.0, name)


def _edges(source: Path, options: FileMeaning, notes: list[str]) -> Converted:
    listed = read_edges(source, options.weight, notes, either=options.undirected)
    kept = undirected(listed, options.undirected)
    if not kept:
        raise InputError(f"{source}: has no edges")
    rows = [(*ends, weight) for ends, weight in kept.items()]
    return Converted(
        ("source", "target", "weight"), _tuples(rows), _names(kept), "topology: {{kind: edge_list, path: {}}}"
    )


def _delays(source: Path, given: Durations, notes: list[str]) -> Converted:
    found = read_delays(source, given, notes)
    notes.append(
        f"a time unit of the scenario is {given.time.words} (--time-unit); the median is {found.median:.6g} of them"
    )
    if found.samples:
        rows = _tuples([(sample,) for sample in found.samples])
        return Converted(("delay",), rows, [], "network: {{latency: {{kind: empirical, path: {}}}}}")
    default = ""
    if found.missing:
        notes.append(f"{found.missing} links without a measurement, which take the field default")
        default = f", default: {found.median:.6g}"
    field = "network: {{latency: {{kind: matrix, path: {}" + default + "}}}}"
    rows = _tuples([(*link, delay) for link, delay in found.of_links.items()])
    return Converted(("sender", "receiver", "delay"), rows, _names(found.of_links), field)


def _availability(source: Path, given: Durations, notes: list[str]) -> Converted:
    found = read_presence(source, given, notes)
    never = [name for name, intervals in found.items() if not intervals]
    if not counted(found):
        raise InputError(f"{source}: nobody is ever up")
    notes.append(f"a time unit of the scenario is {given.time.words} (--time-unit)")
    if never:
        notes.append(f"{len(never)} agents that are never up and so not listed: {', '.join(never[:3])}")
    rows = _tuples([(name, *interval) for name, intervals in found.items() for interval in intervals])
    end = ", others: down" if never else ""
    return Converted(
        ("agent", "up_from", "up_to"), rows, list(found), "availability: {{kind: trace, path: {}" + end + "}}"
    )


def _compute(source: Path, given: Durations, notes: list[str]) -> Converted:
    found = read_step_times(source, given, notes)
    notes.append(f"a time unit of the scenario is {given.time.words} (--time-unit)")
    names = list(dict.fromkeys(name for name, _ in found))
    return Converted(("agent", "duration"), _tuples(found), names, "compute: {{kind: trace, path: {}}}")


def _tuples(rows: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [tuple(repr(cell).removesuffix(".0") if isinstance(cell, float) else cell for cell in row) for row in rows]


def _names(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for pair in pairs for name in pair))
