"""Ten mistakes of authors, and the sentence that each comes to, with the author's line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hushnet.agents.errors import HushnetError, StepFailure
from hushnet.protocols import steps
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.simulator.contract import check_contract
from hushnet.simulator.contract.bench import protocol_parameters, run_small
from hushnet.simulator.contract.violation import ContractViolation
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine

ENGINES = [EventEngine(), BatchedEngine()]


class MineParameters(ProtocolParameters):
    kind: str = "mine"
    step_size: float = 0.1


class Base(Protocol):
    """What is right of them: models of a broadcast."""

    Parameters = MineParameters
    made = 0

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, edge={"gap": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.send("model", me.model, me.public("zeros"))


def mine(folder, *functions):
    """The class whose functions have these lines, in a file of an author's."""
    path = folder / "mine.py"
    lines = [f"    {line}\n" for function in functions for line in function.splitlines()]
    path.write_text("class Mine(Base):\n" + "".join(lines))
    names = {**{name: getattr(steps, name) for name in steps.__all__}, "np": np, "Base": Base, "__name__": "mine"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["Mine"]


def step(*lines, many=False):
    """The text of a step, of one agent or of a batch."""
    body = "".join(f"    {line}\n" for line in (*lines, "me.message = me.model"))
    return f"{'@batched' if many else '@staticmethod'}\ndef step(me):\n{body}"


def sentences(kind, wrong=HushnetError, **fields):
    """What a run on either engine ends with: one sentence."""
    said = []
    for engine in ENGINES:
        with pytest.raises(wrong) as failure:
            run_small(kind, protocol_parameters(kind, fields), engine=engine, time=3.0)
        said.append(str(failure.value))
    assert not any("\n" in one for one in said)
    return said


def test_what_is_set_on_the_protocol_in_a_run_is_refused(tmp_path):
    text = "def release(self, me):\n    self.made += 1\n    return super().release(me)"
    kind = mine(tmp_path, text, step())
    for sentence in sentences(kind, AttributeError):
        assert "Mine.made is set in a run, and its agents share it: keep what changes in blocks" in sentence


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        (
            [step("me.model = me.model / (1 + np.linalg.norm(me.model)) + local_gradient(me, me.model)", many=True)],
            "steps in batches of 2 differ from steps one by one in model of agent .* reduces over agents, give axis",
        ),
        (
            [step("me.model = me.model - me.model.mean(axis=0) + local_gradient(me, me.model)", many=True)],
            "steps in batches of 2 differ from steps one by one in model of agent .* reduces over agents, give axis",
        ),
        (
            [step("me.model = me.model + np.random.normal(size=3)")],
            r"step of agent 0 draws from np.random, which no rerun repeats; draw by uniform, normal or choice",
        ),
        (
            [step("me.model = me.model + np.random.standard_normal(me.model.shape)", many=True)],
            r"step of agent 0 draws from np.random, which no rerun repeats; draw by uniform, normal or choice",
        ),
        (
            [step("me.model = me.model + np.random.default_rng().normal(size=3)")],
            "step of agent 0 sets model from something outside .* that its steps share, such as a counter of the class",
        ),
        (
            [step("Base.made += 1", "me.model = me.model + Base.made")],
            "step of agent 0 sets model from something outside .* that its steps share, such as a counter of the class",
        ),
    ],
    ids=["a norm over agents", "a mean over agents", "np.random", "np.random of a batch", "a generator", "a counter"],
)
def test_the_contract_says_what_a_run_cannot_see(functions, said, tmp_path):
    with pytest.raises(ContractViolation, match=said):
        check_contract(mine(tmp_path, *functions), {})


SENDS = 'def sends(self):\n    return {"model": Every(2)}'


UNDECLARED = (
    r"mine.py:5, `def step\(me\):`: agent \d at time \S+ sends message at its step 2, against what Mine declares by "
    r"sends: Every\(period=2, phase=0\) for 'model'; declare it, or set decides"
)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("schedule", ["async", "rounds"])
def test_sending_where_the_declaration_has_nothing_ends_the_run_alike_in_either_form_and_on_either_engine(
    schedule, many, tmp_path
):
    kind = mine(tmp_path, SENDS, step(many=many))
    said = sentences(kind, StepFailure, schedule=schedule)
    assert re.search(UNDECLARED, said[0]), said[0]
    assert said[0] == said[1]
