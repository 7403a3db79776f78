"""Whatever a custom protocol raises is one failed run with the author's line, and the others go on."""

import sys

import pytest
from hushnet.agents.errors import RunFailure
from hushnet.protocols.base import Layout, MessageKind, Protocol
from hushnet.simulator.api import Result, run
from hushnet.simulator.cli import main

SCENARIO = {
    "schema": 1,
    "scenario": "hostile",
    "task": {"kind": "linear_classification", "agents": 3, "dimension": 2, "samples": [4, 6]},
    "topology": {"kind": "complete"},
    "engine": "event",
    "protocols": {"local": {"kind": "local"}, "own": {"kind": "own"}, "cd": {"kind": "coordinate_descent"}},
    "record": {"every": 1.0, "metrics": ["accuracy"]},
    "stop": {"time": 2.0},
}


class Broken(Exception):
    """Cannot be said."""

    def __str__(self):
        raise ValueError("not this either")


class Base(BaseException):
    """Not an Exception."""


RAISED = {
    "__str__ that raises": (Broken("x"), "Broken: no message, for its __str__ raises ValueError"),
    "half a surrogate": (ValueError("\ud83d half"), r"ValueError: \ud83d half"),
    "a message of 30 MB": (ValueError("m" * 30_000_000), "ValueError: mmm"),
    "no Exception": (Base("mine"), "Base: mine"),
    "a generator's end": (GeneratorExit("x"), "GeneratorExit: x"),
    "a stop": (StopIteration("x"), "x"),
    "leaving": (SystemExit("bye"), "SystemExit: bye"),
    "many lines": (ValueError("a\n\x00b\n" * 50), "ValueError: a"),
}


def protocol_that(raises):
    class Own(Protocol):
        """Raises at its first step."""

        decides = True

        def layout(self):
            return Layout(agent={"model": 2}, messages={"model": MessageKind(2, mirrors="model")})

        def start(self, me):
            pass

        def step(self, me):
            raise raises

    return Own


@pytest.mark.parametrize(("raises", "says"), RAISED.values(), ids=RAISED)
def test_what_an_author_raises_is_one_failed_run(raises, says, tmp_path):
    with pytest.raises(RunFailure) as failed:
        run(SCENARIO, protocols={"own": protocol_that(raises)}, out=tmp_path / "out", contract=False)
    said = str(failed.value)
    assert says in said
    assert "test_hostile_protocols.py:" in said
    assert len(said) < 3_000
    assert said.isprintable()
    assert {"local", "cd"} <= set(Result.open(tmp_path / "out").trace["protocol"]), "the others go on"


def test_a_crash_in_native_code_says_where_it_was():
    import subprocess

    code = "from hushnet.simulator.cli import main; import ctypes; main(['list', 'clocks']); ctypes.string_at(0)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode < 0
    assert "Fatal Python error: Segmentation fault" in ended.stderr
    assert main(["list", "clocks"]) == 0
