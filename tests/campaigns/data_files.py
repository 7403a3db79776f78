"""Hostile data files, one list per loader: whatever stands in one, the answer is one sentence with file and line.

``python -m tests.campaigns.data_files [--seed 0] [--cases 300] [--first 0] [--replay 17]``. A case takes the loaders in
turn, breaks a good file of its kind in one way, or replaces it by what is no file, and reads it through ``run``. A
failure is a traceback, a hang, much memory, more than one sentence, a sentence without the file, or without the line
where one line is to blame.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .campaign import campaign, command, exit_with

BASE = {
    "schema": "1",
    "scenario": "files",
    "task": "{kind: linear_classification, agents: 4, dimension: 2, samples: [5, 5], test_samples: 2}",
    "topology": "{kind: complete}",
    "protocols": "{local: {kind: local}}",
    "stop": "{time: 1}",
    "record": "{every: 1.0}",
}
CELLS = [
    "", "x", "nan", "inf", "-inf", "1e999", "1_000", "-1", "0", "9" * 30, "9" * 5000, "0x10", "\x00", "\u0661",
    "\ufeff",
    '"', '"a', "1;2", " ", "1e-400", "--1", "None", "true", "\u2028", "5,5", "a\tb", "\x1c", "1.5.5",
]  # fmt: skip
"""What nobody expects in a place for a number or the id of an agent."""


class Loader(NamedTuple):
    """A kind of file: where a scenario names it, its name, a good one, what separates cells, and lines of a header."""

    field: str
    value: str
    file: str
    good: str
    separator: str = ","
    header: int = 1


RATINGS = "".join(f"{u}\t{i}\t{(u * i) % 5 + 1}\t8\n" for u in range(1, 5) for i in range(1, 7))
PEOPLE = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, Cuba, "
)
LOADERS = {
    "csv": Loader(
        "task",
        "{kind: csv, path: data, label: y, split: {kind: even, agents: 2}}",
        "data",
        "x,z,y\n" + "".join(f"{k}.5,{k % 3},{k % 2}\n" for k in range(12)),
    ),
    "edges": Loader(
        "topology", "{kind: edge_list, path: data}", "data", "source,target,weight\n0,1,1\n1,2,1\n2,3,0.5\n3,0,2\n"
    ),
    "clock": Loader("clock", "{kind: recorded, path: data}", "data", "0\n1\n2\n3\n0\n", header=0),
    "delays": Loader(
        "network",
        "{latency: {kind: matrix, path: data, default: 0.5}}",
        "data",
        "sender,receiver,delay\n0,1,0.5\n1,0,0.25\n2,3,1\n",
    ),
    "absences": Loader(
        "availability", "{kind: trace, path: data, others: up}", "data", "agent,up_from,up_to\n0,0,1\n1,0.5,2\n1,3,4\n"
    ),
    "ratings": Loader("task", "{kind: movielens, path: data, features: 2}", "data", RATINGS, "\t", 0),
    "libsvm": Loader(
        "task",
        "{kind: a9a, path: folder, split: {by: rows, agents: 3}}",
        "folder/a9a",
        "".join(f"{'+' if k % 2 else '-'}1 {k % 5 + 1}:1 9:1 14:1\n" for k in range(9)),
        " ",
        0,
    ),
    "adult": Loader(
        "task",
        "{kind: adult, path: folder, agents: 2}",
        "folder/adult.data",
        "".join(f"{PEOPLE}{'<=50K' if k % 2 else '>50K'}\n" for k in range(8)),
        ",",
        0,
    ),
}


def cell(rng: random.Random, loader: Loader, lines: list[str]) -> int | None:
    """Put something into a cell; which line it is in."""
    row = rng.randrange(len(lines))
    cells = lines[row].split(loader.separator)
    cells[rng.randrange(len(cells))] = rng.choice(CELLS)
    lines[row] = loader.separator.join(cells)
    return None  # what nobody expects may be right in some columns


def more(rng: random.Random, loader: Loader, lines: list[str]) -> int | None:
    """A row of too many cells."""
    row = rng.randrange(loader.header, len(lines))
    lines[row] += loader.separator + "7" + loader.separator + "7"
    return row + 1


def fewer(rng: random.Random, loader: Loader, lines: list[str]) -> int | None:
    """A row that is cut in its first cell, or a line too many of a list."""
    row = rng.randrange(loader.header, len(lines))
    lines[row] = "?"
    return row + 1


def twice(rng: random.Random, loader: Loader, lines: list[str]) -> int | None:
    """A row that was there before."""
    lines.append(rng.choice(lines[loader.header :]))
    return len(lines) if loader.good.startswith(("source", "sender", "1\t")) else None


def long(rng: random.Random, loader: Loader, lines: list[str]) -> int | None:
    """A line without an end."""
    row = rng.randrange(loader.header, len(lines))
    lines[row] += loader.separator + "7" * 2**21
    return row + 1


def raw(rng: random.Random, loader: Loader, lines: list[str]) -> int | None:
    """A line that is no text."""
    row = rng.randrange(loader.header, len(lines))
    lines[row] = "\udcff" + lines[row]
    return row + 1


WAYS: list[Callable[[random.Random, Loader, list[str]], int | None]] = [cell, cell, cell, more, fewer, twice, long, raw]
SPECIAL = ("pipe", "folder", "device", "sparse", "loop", "nothing", "empty", "bytes")


def special(path: Path, kind: str, rng: random.Random) -> None:
    """Make what is no file of any kind."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind in ("device", "loop"):
        path.symlink_to("/dev/zero" if kind == "device" else path)
    elif kind == "sparse":
        with path.open("wb") as stream:
            stream.truncate(2**41)
    elif kind in ("empty", "bytes"):
        path.write_bytes(rng.randbytes(200) if kind == "bytes" else b"")


def attempt(rng: random.Random, folder: Path, loud: bool) -> tuple[str, list[str]]:
    """Break a file and run a scenario that names it."""
    name = rng.choice(sorted(LOADERS))
    loader = LOADERS[name]
    path, blamed = folder / loader.file, None
    path.parent.mkdir(exist_ok=True)
    if rng.random() < 0.25:
        what = rng.choice(SPECIAL)
        special(path, what, rng)
    else:
        lines = loader.good.splitlines()
        way = rng.choice(WAYS)
        blamed, what = way(rng, loader, lines), way.__name__
        path.write_bytes(("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
    if name == "libsvm":
        (folder / "folder" / "a9a.t").write_text(loader.good)
    if name == "adult":
        (folder / "folder" / "adult.test").write_text("|1x3 Cross validator\n" + loader.good)
    text = {**BASE, loader.field: loader.value}
    (folder / "s.yaml").write_text("".join(f"{key}: {value}\n" for key, value in text.items()))
    code, said, wrong = command(["run", str(folder / "s.yaml"), "--out", str(folder / "out"), "--quiet"])
    if loud:
        print(f"{name}, {what}, line {blamed}: {code} {said}")
    if code == 2:
        if len(said.splitlines()) != 1 or len(said) > 700:
            wrong.append(f"says {len(said.splitlines())} lines, {len(said)} characters: {said[:200]}")
        if path.name not in said:
            wrong.append(f"does not name the file: {said[:300]}")
        if blamed is not None and f"{path.name}:{blamed}: " not in said:
            wrong.append(f"does not name line {blamed}: {said[:300]}")
    elif blamed is not None or what in SPECIAL:
        wrong.append(f"ends with code {code} {said[:200]}")
    return f"{name} {'refused' if code == 2 else 'read' if code == 0 else code}", [
        f"{name}, {what}: {failure}" for failure in wrong
    ]


if __name__ == "__main__":
    exit_with(campaign("data files", attempt, cases=300))
