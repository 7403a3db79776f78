"""Environments of other programs: whatever one sets, closes or limits, every command says a sentence or does its work.

``python -m tests.campaigns.environments [--seed 0] [--cases 40] [--replay 17]``. A case composes an environment
(locale, backend, standard streams, terminal, zone, home, folders, names, threads, limits) and takes a small scenario
through ``list``, ``check``, ``run``, ``compare``, ``plot`` and ``report``, each a process of its own. Code 0 means that
the results are those of an ordinary environment, and any other needs an excuse. Started by root, commands run as
somebody else, who may read everything and write what is theirs: limits and permissions hold for nobody else.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from .campaign import CODES, PATIENCE, UNFORESEEN, asleep, campaign, exit_with

SECONDS = 200
"""Of processor time for a command, which may have to compile everything anew."""
SOMEBODY = 1_000_000 + os.getpid()
"""A user that nobody is, another one in each campaign: a limit on processes counts all of a user's."""
FULL = "/dev/full"
SCENARIO = """\
schema: 1
scenario: environment
task: {kind: linear_classification, agents: 4, dimension: 2, samples: [4, 6], test_samples: 3}
topology: {kind: edge_list, path: "EDGES"}
engine: event
stop: {time: 2}
seeds: 2
protocols:
  cd: {kind: coordinate_descent, label: "\N{GREEK SMALL LETTER EPSILON} \N{RIGHTWARDS ARROW} na\u00efve"}
  local: {kind: local}
record: {every: 1.0, metrics: [accuracy, objective]}
figures: [{y: accuracy, x: time, name: curve, style: {formats: [png], resolution: 60}}]
"""
EDGES = "source,target,weight\n0,1,1\n1,2,1\n2,3,1\n3,0,1\n"
NAMES = [
    "plain",
    "with spaces",
    "na\u00efve-\u65e5\u672c-\N{GREEK SMALL LETTER EPSILON}",
    "two\nlines",
    "-dash",
    "x" * 200,
    "100%s {a} $b",
]
TOO_LONG = "y" * 300

NO_ACCENTS = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""What leaves a locale of ASCII as it is, in which no file is called ``edges \u00e9.csv``."""

VARIABLES: dict[str, list[dict[str, str]]] = {
    "letters": [
        {"LC_ALL": "C", **NO_ACCENTS},
        {"LC_ALL": "POSIX", **NO_ACCENTS},
        {"LC_ALL": "C"},
        {"LC_ALL": "xx_YY.nonsense"},
        {"LANG": "", "LC_CTYPE": "C.UTF-8"},
        *({"PYTHONIOENCODING": name} for name in ("ascii", "cp1252", "latin-1:strict", "cp437", "utf-16")),
    ],
    "backend": [{"MPLBACKEND": name} for name in ("module://nowhere.to.be.found", "nonsense", "TkAgg", "")],
    "terminal": [
        {"TERM": "dumb"}, {"TERM": "nonsense", "NO_COLOR": "1"}, {"COLUMNS": "20"}, {"COLUMNS": "0", "LINES": "0"},
        {"COLUMNS": "nonsense"}, {"COLUMNS": "-5", "FORCE_COLOR": "1"}, {"COLUMNS": "1"},
    ],
    "zone": [{"TZ": name} for name in ("Nowhere/Else", ":/etc/passwd", "UTC+25", "", "Pacific/Apia")],
    "python": [
        {"PYTHONHASHSEED": "0"}, {"PYTHONHASHSEED": "4711"}, {"PYTHONDONTWRITEBYTECODE": "1"}, {"PYTHONOPTIMIZE": "2"},
        {"PYTHONUNBUFFERED": "1"}, {"PYTHONWARNINGS": "error"}, {"PYTHONDEVMODE": "1"},
    ],
    "threads": [
        *({"OMP_NUM_THREADS": value} for value in ("0", "nonsense", "-3", "1000")),
        {"OPENBLAS_NUM_THREADS": "nonsense"}, {"OPENBLAS_NUM_THREADS": "0"}, {"NUMBA_NUM_THREADS": "1"},
    ],
}  # fmt: skip
"""What other programs set, by what it is about."""


@dataclass
class Environment:
    """What a command finds.

    Parameters
    ----------
    variables : dict of str to str or None
        What is set, or with None is not.
    limits : dict of int to int
    streams : dict of int to str
        What stands in the place of standard input, output and error: ``closed``, ``full``, or by default a file.
    excuses : set of int
        Codes other than 0 with which a command may end here.
    words : list of str
    """

    variables: dict[str, str | None] = field(default_factory=dict)
    limits: dict[int, int] = field(default_factory=dict)
    streams: dict[int, str] = field(default_factory=dict)
    excuses: set[int] = field(default_factory=set)
    words: list[str] = field(default_factory=list)


def composed(rng: random.Random, folder: Path) -> Environment:
    """An environment of some oddities."""
    found = Environment()
    for what, choices in VARIABLES.items():
        if rng.random() < 0.5:
            chosen = rng.choice(choices)
            found.variables |= chosen
            found.words.append(f"{what}: {chosen}")
    for what, prepare, share in (("home", _home, 0.5), ("scratch", _scratch, 0.4), ("cache", _cache, 0.15)):
        if rng.random() < share:
            kind = prepare(rng, folder / what, found)
            found.words.append(f"{what}: {kind}")
    for stream, name in enumerate(("stdin", "stdout", "stderr")):
        if rng.random() < 0.3:
            kind = rng.choice(["closed", "closed", "full"]) if stream else "closed"
            found.streams[stream] = kind
            found.words.append(f"{name}: {kind}")
            found.excuses |= {5} if (stream, kind) == (1, "full") else set()
    if rng.random() < 0.3:
        which, most = rng.choice(
            [(resource.RLIMIT_NOFILE, (8, 16, 40, 100)), (resource.RLIMIT_NPROC, (1, 2, 4, 8, 30))]
        )
        found.limits[which] = rng.choice(most)
        found.words.append(
            f"limit {'files' if which == resource.RLIMIT_NOFILE else 'processes'}: {found.limits[which]}"
        )
        found.excuses.add(5)
    return found


def _folder(path: Path, kind: str) -> str:
    """Make something that a variable may name; its path."""
    if kind == "file":
        path.write_text("no folder\n")
    elif kind != "missing":
        path.mkdir()
        path.chmod(0o555 if kind == "read-only" else 0o755)
    return str(path)


def _home(rng: random.Random, path: Path, found: Environment) -> str:
    kind = rng.choice(["read-only", "missing", "file", "unset", "empty"])
    words = {"unset": None, "empty": ""}
    found.variables["HOME"] = words[kind] if kind in words else _folder(path, kind)
    return kind


def _scratch(rng: random.Random, path: Path, found: Environment) -> str:
    kind = rng.choice(["read-only", "missing", "file", "empty", "relative"])
    words = {"empty": "", "relative": "here"}
    found.variables["TMPDIR"] = words[kind] if kind in words else _folder(path, kind)
    return kind


def _cache(rng: random.Random, path: Path, found: Environment) -> str:
    """A cache that is not the campaign's; what is compiled is compiled anew."""
    kind = rng.choice(["read-only", "missing", "file", "relative", "default"])
    found.variables["HUSHNET_CACHE_DIR"] = None
    if kind != "default":
        found.variables["XDG_CACHE_HOME"] = "here" if kind == "relative" else _folder(path, kind)
    return kind


@cache
def ground() -> Path:
    """A folder for the usual home, compiled code and reference results, theirs who run commands."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="hushnet-environments-"))
    _given(folder)
    return folder


@cache
def reference() -> dict[str, bytes]:
    """The measurements that an ordinary environment gives."""
    scenario = _written(ground(), "s.yaml")
    for arguments in commands(scenario, "out"):
        ended = start(arguments, ground(), Environment(), ground() / "said")
        assert ended.code == 0, (arguments, ended)
    return tables(ground() / "out")


def commands(scenario: str, out: str) -> list[list[str]]:
    """What is asked in every environment; a name that begins with a dash is given after two."""
    return [
        ["list"],
        ["check", "--", scenario],
        ["run", f"--out={out}", "--quiet", "--", scenario],
        ["compare", "--", out],
        ["plot", "--", out],
        ["report", "--", out],
    ]


def _written(where: Path, name: str) -> str:
    (where / "edges \u00e9.csv").write_text(EDGES)
    (where / name).write_text(SCENARIO.replace("EDGES", "edges \u00e9.csv"), encoding="utf-8")
    return name


def _given(path: Path) -> None:
    """Make a folder theirs who run the commands."""
    if os.geteuid() == 0:
        os.chown(path, SOMEBODY, SOMEBODY)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its code, what it said on both streams, and whether it had to be ended."""

    code: int
    out: str
    err: str
    hangs: bool


def start(arguments: list[str], where: Path, environment: Environment, said: Path) -> Ended:
    """Run ``hushnet`` in an environment, as somebody who has no rights but to read."""
    as_somebody = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]
    as_somebody += [f"--{which}-caps=-all,+dac_read_search" for which in ("inh", "ambient")]
    shell = [str(Path(sys.executable).with_name("hushnet")), *arguments]
    said.mkdir(exist_ok=True)
    outputs = [said / "out", said / "err"]
    with outputs[0].open("wb") as out, outputs[1].open("wb") as err, open(FULL, "wb") as full:
        targets = [full if environment.streams.get(k) == "full" else kept for k, kept in ((1, out), (2, err))]
        process = subprocess.Popen(
            [*(as_somebody if os.geteuid() == 0 else []), *shell],
            cwd=where,
            env=_variables(environment.variables),
            stdin=subprocess.DEVNULL,
            stdout=targets[0],
            stderr=targets[1],
            preexec_fn=_prepared(environment),
        )
        hangs = not _ends(process)
    return Ended(process.returncode, *(path.read_bytes().decode(errors="replace") for path in outputs), hangs)


def _variables(changed: Mapping[str, str | None]) -> dict[str, str]:
    ours = ("PATH", "LANG", "HUSHNET_DATA")
    usual = {name: os.environ[name] for name in ours if name in os.environ} | {"HOME": str(ground())}
    usual["HUSHNET_CACHE_DIR"] = str(ground() / "compiled")
    given = {**usual, **changed}
    return {name: value for name, value in given.items() if value is not None}


def _prepared(environment: Environment) -> Callable[[], None]:
    """What the child does before it becomes the command."""

    def prepare() -> None:
        for which, most in environment.limits.items():
            resource.setrlimit(which, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 10))
        for stream, kind in environment.streams.items():
            if kind == "closed":
                os.close(stream)

    return prepare


def _ends(process: subprocess.Popen[bytes]) -> bool:
    """Wait for a process; whether it ended by itself, which one that sleeps for good does not."""
    looks = 0
    while process.poll() is None:
        time.sleep(0.05)
        looks = looks + 1 if asleep(process.pid) else 0
        if looks > PATIENCE / 0.05:
            process.kill()
            process.wait()
            return False
    return process.returncode not in (-signal.SIGXCPU, -signal.SIGKILL)


def attempt(rng: random.Random, folder: Path, loud: bool) -> tuple[str, list[str]]:
    """Compose an environment, and ask for everything there."""
    folder.chmod(0o755)
    environment = composed(rng, folder)
    names = [rng.choice(NAMES) if rng.random() < 0.5 else "plain" for _ in range(3)]
    where = folder / f"{names[0]} work"
    where.mkdir()
    _given(where)
    scenario = _written(where, f"{names[1]}.yaml")
    out = f"{names[2]}" if rng.random() > 0.05 else TOO_LONG
    environment.excuses |= {2} if out == TOO_LONG or NO_ACCENTS.items() <= environment.variables.items() else set()
    environment.words += [f"names: {names[0]!r}, {names[1]!r}, {out[:40]!r}"]
    what = "; ".join(environment.words)
    if loud:
        print(what)
    wrong, codes = [], []
    for arguments in commands(scenario, out):
        ended = start(arguments, where, environment, folder / "said")
        codes.append(ended.code)
        if loud:
            print(arguments, ended.code, ended.out[-600:], ended.err[-1500:], sep="\n")
        wrong += [f"{arguments[0]} {failure}" for failure in failures(ended, environment, codes)]
        if ended.code == 0:
            wrong += [f"{arguments[0]} ends with code 0: {failure}" for failure in missing(arguments[0], where / out)]
    for path in folder.rglob("*"):  # so that it can be removed
        if path.is_dir() and not path.is_symlink():
            path.chmod(path.stat().st_mode | stat.S_IRWXU)
    return f"codes {' '.join(map(str, sorted(set(codes))))}", [f"{what}: {each}" for each in wrong]


def failures(ended: Ended, environment: Environment, codes: list[int]) -> list[str]:
    """What is wrong with how a command ended, the last of those that ended with these codes."""
    said = f"{ended.out}\n{ended.err}"
    wrong = ["hangs"] if ended.hangs else []
    # After a command that was refused with an excuse there is nothing to read.
    excuses = environment.excuses | ({2} if any(codes[:-1]) else set())
    if ended.code == UNFORESEEN:
        wrong.append(f"was not foreseen: {ended.err[-400:]}")
    elif ended.code and ended.code not in excuses & CODES:
        wrong.append(f"ends with code {ended.code}: {ended.err[-400:]}")
    wrong += [f"says {word}: {said[-700:]}" for word in ("Traceback", "interrupted") if word in said]
    if ended.code and not ended.err.strip() and 2 not in environment.streams:
        wrong.append(f"ends with code {ended.code} and says nothing")
    return wrong


def missing(command: str, out: Path) -> list[str]:
    """What a command that succeeded has not left, or left otherwise than in an ordinary environment."""
    files = {"compare": "compare/differences.csv", "plot": "figures/curve.png", "report": "report.html"}
    wrong = []
    if command in files and not ((out / files[command]).exists() and (out / files[command]).stat().st_size):
        wrong.append(f"{files[command]} is missing")
    if command == "run":
        ordinary, found = reference(), tables(out)
        wrong += [f"{name} is missing" for name in ordinary.keys() - found.keys()]
        wrong += [f"{name} is another" for name in found if found[name] != ordinary.get(name)]
    return wrong


def tables(out: Path) -> dict[str, bytes]:
    """The measurements of every run."""
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.glob("[0-9a-f]*/*.parquet"))}


if __name__ == "__main__":
    try:
        exit_with(campaign("environments", attempt, cases=40, here=True))
    finally:
        shutil.rmtree(ground(), ignore_errors=True)
