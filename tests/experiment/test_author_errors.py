"""A mistake in a protocol of exchanges is said with a line of the author's, by `check` and by `run`."""

import pytest
from hushnet.simulator.cli import main

SCENARIO = """\
schema: 1
scenario: author
task: {kind: linear_classification, agents: 6, dimension: 3, samples: [4, 4], points: ball}
topology: {kind: ring}
protocols: {mine: {kind: "./mine.py:Mine"}}
stop: {time: 2}
record: {every: 1.0, metrics: [accuracy]}
seeds: 1
"""
PAIRS = """\
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits


class Mine(Protocol):
    Parameters = ProtocolParameters
    traits = Traits(exchange="pairwise")

    def layout(self):
        kinds = {"request": MessageKind(3), "reply": MessageKind(3)}
        return Layout(agent={"model": 3}, messages=kinds)

    def start(self, me):
        pass

    def request(me, partner):
        me.message = me.model

    def respond(me, partner, heard):
        me.message = me.model

    def complete(me, partner, heard):
        pass
"""


@pytest.mark.parametrize("command", [["check"], ["run", "--quiet", "--out", "out"]], ids=" ".join)
@pytest.mark.parametrize(
    ("given", "instead", "said"),
    [
        ('{"request": MessageKind(3), "reply"', '{"question": MessageKind(3), "answer"', "they are: question, answer"),
        ("def complete", "def conclude", "exchanges pairwise, but has no function complete"),
        ('exchange="pairwise"', "", "has request and no step, which nobody would call; set traits = Traits(exchange="),
    ],
)
def test_a_mistake_in_an_exchange_is_found_by_check_and_by_run(
    command, given, instead, said, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PAIRS.replace(given, instead))
    (tmp_path / "author.yaml").write_text(SCENARIO)
    assert main([command[0], "author.yaml", "--trust-code", *command[1:]]) == 2
    found = capsys.readouterr().err
    assert "author.yaml:5: protocols.mine: mine.py:8, `def layout(self):`: Mine " in found
    assert said in found


PRIVATE = "class Parameters(ProtocolParameters):\n        privacy: int = 3"
PLAIN = """\
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters


class Mine(Protocol):
    def layout(self):
        return Layout(agent={"model": 3}, messages={"model": MessageKind(3, mirrors="model")})

    def start(self, me):
        me.send("model", me.model, me.public("zeros"))

    def step(me):
        me.message = me.model
"""


@pytest.mark.parametrize(
    ("given", "instead", "said"),
    [
        ("me.message = me.model", "yield me.model", "mine.py:11, `def step(me):`: step must not wait"),
        ("def step", "async def step", "mine.py:11, `async def step(me):`: step must not wait"),
        ("def step", "@property\n    def step", "Mine.step is a property; it must be a function"),
        ('{"model": 3}', '{"model": "3"}', "mine.py:5, `def layout(self):`: a width must be an integer"),
        ('mirrors="model"', 'mirrors="modle"', "mine.py:5, `def layout(self):`: messages['model'] mirrors 'modle'"),
        ('{"model": 3}', '{"my model": 3}', "mine.py:5, `def layout(self):`: 'my model' cannot be read as me.my"),
        ('{"model": 3}', '{"model": 3, "age": 1}', "mine.py:5, `def layout(self):`: Mine: me.age is a block"),
        ("def step", "def stepp", "mine.py:5, `def layout(self):`: Mine has no step; did you mean stepp"),
        ("me.message = me.model", "return me.model", "failed: TypeError: mine.py:11, `def step(me):` returns ndarray"),
        ("def start(self, me)", "def start(self)", "`def start(self):`: Mine.start takes (self); admissible: (self,"),
        ("def start", "def __init__(self, n):\n        pass\n\n    def start", "takes (self, n); admissible: (self,"),
        ("def start", "def epoch(self):\n        pass\n\n    def start", "Mine.epoch is a property; write"),
        ("def start", "traits = {}\n\n    def start", "./mine.py:Mine has traits that are dict; they must be"),
        ("def start", f"{PRIVATE}\n\n    def start", "the parameter privacy is int; it must be Privacy | None"),
        ("Layout(agent=", "dict(agent=", "mine.py:5, `def layout(self):`: must return a Layout, not dict"),
    ],
)
def test_a_mistake_in_a_step_or_layout_is_said_with_its_line(given, instead, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PLAIN.replace(given, instead))
    (tmp_path / "author.yaml").write_text(SCENARIO)
    assert main(["run", "author.yaml", "--trust-code", "--quiet", "--no-contract", "--out", "out"]) in (1, 2)
    assert said in capsys.readouterr().err
