"""Users' own files that misbehave in every way: one sentence with the author's line, and the other runs go on."""

import importlib.metadata
import json

import pytest
from hushnet.simulator.cli import main
from hushnet.simulator.experiment import run_once

SCENARIO = """\
schema: 1
scenario: hostile
task: {kind: linear_classification, agents: 5, dimension: 2, samples: [4, 6]}
topology: {kind: ring}
engine: ENGINE
protocols: {local: {kind: local}, mine: {kind: "./mine.py:Mine"}, cd: {kind: coordinate_descent}}
record: {every: 1.0, metrics: [accuracy]}
stop: {time: 3.0}
"""
PLUGIN = """\
import atexit, ctypes, os, random, signal, sys, threading, time
import numpy as np
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.steps import average

COUNT = [0]
LIVE = threading.Event()


class Silent(Exception):
    def __str__(self):
        raise ValueError("not this either")


class Base(BaseException):
    pass


def counted():
    COUNT[0] += 1
    return COUNT[0]


#IMPORT
class Parameters(ProtocolParameters):
    step_size: float = 0.1
    #FIELD


class Mine(Protocol):
    Parameters = Parameters

    def layout(self):
        #LAYOUT
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        #START
        me.send("model", me.model, me.public("zeros"))

    @staticmethod
    def step(me):
        if me.degree > 0:
            me.model = (me.model + average(me)) / 2
        #STEP
        me.message = me.model
"""


def write(folder, place="", code="", *, engine="event", **changes):
    """The scenario and a plug-in that does something at a place; where the line is."""
    text = PLUGIN.replace(f"#{place}", code) if place else PLUGIN
    (folder / "mine.py").write_text(text)
    scenario = SCENARIO.replace("ENGINE", engine)
    for key, value in changes.items():
        scenario += f"{key}: {value}\n"
    (folder / "s.yaml").write_text(scenario)
    lines = text.splitlines()
    return f"mine.py:{lines.index(next(line for line in lines if code in line)) + 1}" if "\n" not in code else "mine.py"


def ran(folder, capsys, *more):
    """A run of it: the exit code, what it said, and which protocols there are runs of."""
    code = main(["run", str(folder / "s.yaml"), "--out", str(folder / "out"), "--quiet", "--trust-code", *more])
    there = {json.loads(path.read_text())["protocol"] for path in folder.glob("out/*/manifest.json")}
    return code, capsys.readouterr().err, there


STEPS = [
    ('raise Silent("x")', "Silent: no message, for its __str__ raises ValueError"),
    (r'raise ValueError("\ud83d half")', r"ValueError: \ud83d half"),
    ('raise ValueError("m" * 30_000_000)', "ValueError: mmm"),
    ('raise Base("mine")', "Base: mine"),
    ("sys.exit(3)", "SystemExit: 3"),
    ("os._exit(0)", "SystemExit: 0"),
    ("me.model = None", "TypeError: me.model takes real numbers, not NoneType"),
    ("me.model = [None, 1.0]", "TypeError: me.model takes real numbers, not list"),
    ("me.message = '1.5'", "TypeError: me.message takes real numbers, not str"),
    ("me.model = me.model * 1j", "TypeError: me.model takes real numbers, not an array of complex128"),
]
TELLING = ("Silent", "os._exit", "= None")
"""Whose steps are looked at by the contract as well, before they run on the event engine."""


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [(["batched", "--no-contract"], *case) for case in STEPS]
    + [
        pytest.param(["event"], *case, marks=[pytest.mark.slow] * (not any(word in case[0] for word in TELLING)))
        for case in STEPS
    ],
)
def test_what_a_step_does_is_one_failed_run_with_its_line(how, code, says, tmp_path, capsys):
    engine, *more = how
    where = write(tmp_path, "STEP", code, engine=engine)
    code, said, there = ran(tmp_path, capsys, *more)
    assert code == 1
    assert f"{where}, `" in said
    assert says in said
    assert len(said) < 3_000
    assert {"local", "cd"} <= there


@pytest.mark.parametrize(
    ("place", "code", "says"),
    [
        ("IMPORT", "os._exit(0)", "mine.py:24 raises SystemExit: 0"),
        ("IMPORT", 'raise Base("x")', "mine.py:24 raises Base: x"),
        ("IMPORT", 'raise Silent("x")', "mine.py:24 raises Silent: no message, for its __str__ raises ValueError"),
        ("IMPORT", r'raise ValueError("\ud83d half")', r"mine.py:24 raises ValueError: \ud83d half"),
        ("FIELD", "thing: object = object()", "s.yaml:6: protocols.mine.thing: is of the type object"),
        ("FIELD", "thing: float = Field(default_factory=lambda: 1 / 0)", "mine.py:27, `thing: float ="),
        ("LAYOUT", 'raise ValueError("x")', 'mine.py:34, `raise ValueError("x")`: ValueError: x'),
        ("LAYOUT", 'raise Base("x")', 'mine.py:34, `raise Base("x")`: Base: x'),
        ("LAYOUT", "os._exit(0)", "mine.py:34, `os._exit(0)`: SystemExit: 0"),
        ("START", 'raise Base("x")', 'mine.py:39, `raise Base("x")`: Base: x'),
    ],
)
def test_what_a_file_does_elsewhere_is_told_with_its_line(place, code, says, tmp_path, capsys):
    write(tmp_path, place, code)
    if "Field" in code:
        path = tmp_path / "mine.py"
        path.write_text(path.read_text().replace("import atexit", "from pydantic import Field; import atexit"))
    code, said, there = ran(tmp_path, capsys)
    assert (code, there) == ((1, {"local", "cd"}) if place in ("LAYOUT", "START") else (2, set()))
    assert says in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "code",
    [
        'me.model += hash("x") % 1000',
        pytest.param("me.model += id(me) % 997", marks=pytest.mark.slow),
        "me.model += time.time() % 1",
        pytest.param("me.model += random.random()", marks=pytest.mark.slow),
        "me.model += np.random.random()",
        "me.model += counted()",
        "for rank, letter in enumerate(set('abcdefghijkl')):\n            me.model += rank * ord(letter)",
    ],
)
def test_a_step_that_is_not_deterministic_is_called_so(code, tmp_path, capsys):
    write(tmp_path, "STEP", code)
    code, said, there = ran(tmp_path, capsys)
    assert code == 1
    assert "protocol mine, seed 0: mine.py:43, `def step(me):`: " in said
    assert "not deterministic: two runs with the same seed differ first at agent 4, time 0.223996" in said
    assert there == {"local", "cd"}


def test_a_step_that_sends_where_nothing_is_declared_is_found_before_its_first_run(tmp_path, capsys, monkeypatch):
    write(tmp_path)
    path = tmp_path / "mine.py"
    sends = "    def sends(self):\n        return {'model': Every(2)}\n\n    @staticmethod\n"
    text = path.read_text().replace("    @staticmethod\n", sends)
    path.write_text(text.replace("import average", "import Every, average"))
    usual, made = run_once.execute, []
    monkeypatch.setattr(run_once, "execute", lambda *given: made.append(given[1].protocol) or usual(*given))
    code, said, there = ran(tmp_path, capsys)
    assert (code, there) == (1, {"local", "cd"})
    assert made == ["local", "cd"]
    assert "sends message at its step 2, against what Mine declares by sends: Every(period=2, phase=0) for" in said


class Unloadable(importlib.metadata.EntryPoint):
    """An installed plug-in that raises when it is loaded."""

    def load(self):
        raise ZeroDivisionError("broken")


def test_a_broken_plugin_is_left_out_of_the_schema(monkeypatch, capsys):
    usual = importlib.metadata.entry_points
    broken = importlib.metadata.EntryPoints([Unloadable("broken", "gone:Gone", "hushnet.protocols")])
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda **of: broken.select(**of) if of.get("group") == "hushnet.protocols" else usual(**of),
    )
    with pytest.warns(UserWarning, match="broken is left out: the installed plug-in gone:Gone raises"):
        assert main(["schema"]) == 0
    definitions = json.loads(capsys.readouterr().out)["$defs"]
    assert definitions["CoordinateDescentParameters"]["properties"]["kind"]["const"] == "coordinate_descent"
