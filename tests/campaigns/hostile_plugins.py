"""Hostile plug-ins: whatever a user's own protocol does, wherever, one failed run says so and the others go on.

``python -m tests.campaigns.hostile_plugins [--seed 0] [--cases 120] [--first 0] [--replay 17]``. A case is a file with
one protocol that misbehaves in one way at one place, in a sweep with two others, on one engine and with one number of
jobs. A failure is a traceback, a hang, exit code 70 or a signal, a run of another protocol that is not complete, more
than two lines for two failed runs, a sentence without the file and, where it is known, the line.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .campaign import CODES, campaign, exit_with
from .forked import FROM_A_FORK, Server

PATIENCE = 900
"""Seconds after which a command is taken for one that hangs, on however busy a machine."""
SCENARIO = """\
schema: 1
scenario: hostile
task: {{kind: linear_classification, agents: 5, dimension: 2, samples: [4, 6]}}
topology: {{kind: ring}}
engine: {engine}
protocols: {{local: {{kind: local}}, mine: {{kind: "./mine.py:Mine"}}, cd: {{kind: coordinate_descent}}}}
record: {{every: 1.0, metrics: [accuracy]}}
stop: {{time: 3.0}}
seeds: 2
limits: {{seconds: 20, memory: 1 GiB}}
"""
HEAD = """\
import atexit, ctypes, gc, os, random, signal, sys, threading, time, warnings
import numpy as np
from pydantic import Field
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import average

COUNT, KEPT = [0], []


class Silent(Exception):
    def __str__(self):
        SAID


class Base(BaseException):
    pass


class Argued(Exception):
    def __init__(self, one, two):
        super().__init__()


class Buried:
    def __del__(self):
        raise ValueError("nobody can catch")


def circle():
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    raise one


def counted():
    COUNT[0] += 1
    return COUNT[0]


def done():
    DONE
    return 0.1


IMPORT


class Parameters(ProtocolParameters):
    step_size: float = 0.1
    FIELD


class Mine(Protocol):
    Parameters = Parameters
    BODY

    def layout(self):
        LAYOUT
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        START
        me.send("model", me.model, me.public("zeros"))
"""
STEP = """
    @staticmethod
    def step(me):
        if me.degree > 0:
            me.model = (me.model + average(me)) / 2
        STEP
        me.message = me.model
"""
REACT = """
    decides = True
    traits = Traits(trigger="message")

    def step(self, me):
        me.send("model", me.model, me.public("zeros"))

    def react(self, me, message):
        REACT
        me.model = (me.model + message.vector) / 2
"""
RAISING = {
    "an error": 'raise KeyError("x")',
    "__str__ that raises": 'raise Silent("x")',
    "half a surrogate": 'raise ValueError("\\ud83d half")',
    "no Exception": 'raise Base("mine")',
    "30 MB": 'raise ValueError("m" * 30_000_000)',
    "an error with arguments": "raise Argued(1, 2)",
    "a circle of causes": "circle()",
    "many lines": 'raise ValueError("a\\n\\x00\\x1b[2J\\n" * 50)',
    "sys.exit": "sys.exit(3)",
    "os._exit": "os._exit(0)",
    "a generator's end": 'raise GeneratorExit("x")',
    "recursion": "(lambda f: f(f))(lambda f: f(f))",
    "a group": 'raise ExceptionGroup("some", [ValueError("one"), KeyError("two")])',
}
"""What is raised, as an author may do anywhere."""
DEADLY = {"native crash": "ctypes.string_at(0)", "abort": "os.abort()", "kill": "os.kill(os.getpid(), 9)"}
RANDOM = {
    "hash": 'me.model += hash("x") % 1000',
    "id": "me.model += id(me) % 997",
    "time": "me.model += time.time() % 1",
    "random": "me.model += random.random()",
    "numpy's random": "me.model += np.random.random()",
    "count": "me.model += counted()",
}
STATE = {
    "None": "me.model = None",
    "text": 'me.model = "x"',
    "shape": "me.model = np.zeros(7)",
    "complex": "me.model = me.model * 1j",
    "message None": "me.message = None",
    "mapping": "me.model = {}",
}
SIDE = {
    "thread": "threading.Thread(target=time.sleep, args=(3000,)).start()",
    "failing thread": "threading.Thread(target=counted, args=(1,)).start()",
    "print": 'print("x" * 1000)',
    "no stdout": "sys.stdout = None",
    "closed stderr": "sys.stderr.close()",
    "elsewhere": 'os.chdir("/")',
    "strict NumPy": 'np.seterr(all="raise")',
    "leak": "KEPT.append(np.ones(10_000_000))",
    "buried": "Buried()",
    "warning": 'warnings.warn("careful")',
    "no collector": "gc.disable()",
}
"""What is no error of its own; whatever becomes of it, others must not suffer."""
PLACES = ("IMPORT", "BODY", "FIELD", "LAYOUT", "START", "STEP", "LATE", "REACT")
EARLY = ("IMPORT", "BODY", "FIELD")
"""Places that are reached before there are runs: the scenario is refused."""


class Made(NamedTuple):
    """A file that misbehaves."""

    text: str
    line: int
    what: str
    place: str
    kind: str


def compose(rng: random.Random) -> Made:
    """Draw what is done, and where."""
    group = rng.choice(["raise"] * 6 + ["random", "random", "state", "deadly", "side", "side", "say", "end", "object"])
    place, said, done = rng.choice(PLACES), "raise ValueError('not this either')", "pass"
    if group == "raise":
        what = rng.choice(sorted(RAISING))
        code = RAISING[what]
    elif group in ("random", "state"):
        place = rng.choice(["STEP", "LATE"])
        what = rng.choice(sorted(RANDOM if group == "random" else STATE))
        code = {**RANDOM, **STATE}[what]
    elif group == "deadly":
        place = rng.choice(["START", "STEP", "LATE", "REACT"])
        what = rng.choice(sorted(DEADLY))
        code = DEADLY[what]
    elif group == "side":
        what = rng.choice(sorted(SIDE))
        code = SIDE[what]
    elif group == "say":
        what = rng.choice(sorted(set(RAISING) - {"__str__ that raises"}))
        said, code = RAISING[what], 'raise Silent("x")'
        what = f"__str__ that does {what}"
    elif group == "end":
        place, what = "IMPORT", f"at exit, {rng.choice(sorted(RAISING))}"
        done, code = RAISING[what.removeprefix("at exit, ")], "atexit.register(done)"
    else:
        place, what, code = "FIELD", "object", "thing: object = object()"
    if place == "FIELD" and group != "object":
        done, code = code, "thing: float = Field(default_factory=done)"
    late = place == "LATE"
    filled = {
        **dict.fromkeys(("IMPORT", "FIELD", "BODY", "LAYOUT", "START", "STEP", "REACT"), "pass"),
        "STEP" if late else place: f"if me.now > 1.5: {code}" if late else code,
    }
    text = HEAD.replace("SAID", said).replace("DONE", done) + (REACT if place == "REACT" else STEP)
    for name, put in filled.items():
        text = text.replace(f"    {name}\n", f"    {put}\n").replace(f"\n{name}\n", f"\n{put}\n")
    lines = text.splitlines()
    put = done if done != "pass" else filled["STEP" if late else place]
    line = 1 + max(rank for rank, one in enumerate(lines) if one.strip() == put)
    return Made(text, line, what, place, group)


@cache
def server() -> Server:
    """What commands are forked from, warmed by a good plug-in."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="hushnet-plugins-"))
    text = HEAD.replace("SAID", "pass").replace("DONE", "pass") + STEP
    for name in ("IMPORT", "FIELD", "BODY", "LAYOUT", "START", "STEP"):
        text = text.replace(f"    {name}\n", "    pass\n").replace(f"\n{name}\n", "\n\n")
    (folder / "mine.py").write_text(text)
    (folder / "s.yaml").write_text(SCENARIO.format(engine="event"))
    given = ["run", str(folder / "s.yaml"), "--out", str(folder / "out"), "--trust-code", "--quiet"]
    made = Server(folder / "server", given, {FROM_A_FORK: "forkserver"})
    assert made.warmed.code == 0, made.warmed
    return made


def attempt(rng: random.Random, folder: Path, loud: bool) -> tuple[str, list[str]]:
    """Run a sweep with a plug-in that misbehaves."""
    made, engine, jobs = compose(rng), rng.choice(["event", "event", "batched"]), rng.choice(["1", "1", "1", "2"])
    (folder / "mine.py").write_text(made.text)
    (folder / "s.yaml").write_text(SCENARIO.format(engine=engine))
    name = f"{made.what} in {made.place}, {engine}, --jobs {jobs}"
    given = ["run", str(folder / "s.yaml"), "--out", str(folder / "out"), "--trust-code", "--quiet", "--jobs", jobs]
    process = server().start(given, folder)
    hung = threading.Event()

    def end() -> None:
        hung.set()
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)

    patience = threading.Timer(PATIENCE, end)
    patience.start()
    ended = server().end()
    patience.cancel()
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)  # what it has left behind
    if loud:
        print(f"{name}: code {ended.code}\n{ended.said}\n{made.text.splitlines()[made.line - 1]}")
    there: dict[str, int] = {}
    for path in (folder / "out").glob("*/manifest.json"):
        manifest = json.loads(path.read_text())
        there[manifest["protocol"]] = there.get(manifest["protocol"], 0) + (manifest["status"] == "complete")
    wrong = judged(made, ended.code, ended.out, ended.said, there, hung=hung.is_set())
    return f"{made.kind}: {ended.code}", [f"{name}: {one}" for one in wrong]


def judged(made: Made, code: int, out: str, said: str, there: dict[str, int], *, hung: bool) -> list[str]:
    """What is wrong with how a sweep has ended."""
    wrong = ["hangs"] if hung else []
    if not hung and code not in CODES | {1}:
        wrong.append(f"ends with code {code}: {said[-300:]}")
    if "Traceback" in out + said:
        wrong.append(f"shows a traceback: {said[:600]}")
    if len(said.splitlines()) > 6 or len(said) > 8_000:
        wrong.append(f"says {len(said.splitlines())} lines, {len(said)} characters: {said[:200]}")
    refused = made.place in EARLY and code == 2
    if not refused and (there.get("local"), there.get("cd")) != (2, 2):
        wrong.append(f"lost runs of others, {there}: {said[:300]}")
    if made.kind in ("raise", "say", "random", "state", "deadly", "object") and code not in (1, 2):
        wrong.append(f"ends with code {code}, as if nothing were wrong")
    elif made.kind in ("raise", "say", "random", "state") and f"mine.py:{made.line}" not in said:
        other = made.what.endswith(("a circle of causes", "an error with arguments", "count")) and "mine.py:" in said
        if not other:
            wrong.append(f"does not name mine.py:{made.line}: {said[:400]}")
    elif made.kind == "deadly" and made.what != "kill" and f"mine.py:{made.line}" not in said:
        wrong.append(f"does not name mine.py:{made.line}: {said[:400]}")
    return wrong


if __name__ == "__main__":
    try:
        exit_with(campaign("hostile plug-ins", attempt, cases=120, here=True))
    finally:
        server().close()
        shutil.rmtree(server().folder.parent, ignore_errors=True)
