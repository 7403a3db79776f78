"""Ten mistakes of authors, and the sentence that each comes to, with the author's line."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hushnet.agents.errors import HushnetError
from hushnet.protocols import steps
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.simulator.contract import check_contract
from hushnet.simulator.contract.bench import protocol_parameters, run_small
from hushnet.simulator.contract.violation import ContractViolation
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine

ENGINES = [EventEngine(), BatchedEngine()]
STEP = "step of Mine failed at mine.py"


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


RUNS = [
    (
        "a wrong axis",
        step("me.model = me.heard.sum(axis=1)"),
        rf"{STEP}:4, `me.model = me.heard.sum\(axis=1\)`: ValueError: me.model is \(3,\) here, and was given \(\d,\)",
    ),
    (
        "a wrong axis of a batch",
        step("me.model = me.model / np.linalg.norm(me.model + 1, axis=0, keepdims=True).T", many=True),
        rf"{STEP}:4, `me.model = me.model / np.linalg.norm.*`: ValueError: (operands could|me.model is)",
    ),
    (
        "another degree's shape",
        step("me.model = weighted_sum(me, np.ones(4))"),
        rf"{STEP}:4, `me.model = weighted_sum\(me, np.ones\(4\)\)`: ValueError: there are 4 weights, and \d edges",
    ),
    (
        "another degree's shape in a batch",
        step("me.gap = per_edge(me, me.model)[1:]", many=True),
        rf"{STEP}:4, `me.gap = per_edge\(me, me.model\)\[1:\]`: ValueError: me.gap is \(\d+, 3\) here, and was given",
    ),
    (
        "writing what is not one's own",
        step("me.weights[0] = 1.0"),
        rf"{STEP}:4, `me.weights\[0\] = 1.0`: ValueError: .* read-only; what is no block, .* is there to be read",
    ),
    (
        "writing what was heard",
        step("me.heard -= me.model"),
        rf"{STEP}:4, `me.heard -= me.model`: ValueError: .* read-only; what is no block, .* is there to be read",
    ),
    (
        "writing what was heard in a batch",
        step("me.heard[0] = 1.0", many=True),
        rf"{STEP}:4, `me.heard\[0\] = 1.0`: ValueError: .* read-only; what is no block, .* is there to be read",
    ),
    (
        "writing a parameter",
        step("me.step_size = 1.0"),
        rf"{STEP}:4, `me.step_size = 1.0`: AttributeError: me.step_size is not for a step to change; admissible: gap",
    ),
    (
        "branching on an array",
        step("if me.model > 0:", "    me.model = -me.model"),
        rf"{STEP}:4, `if me.model > 0:`: ValueError: The truth value of an array .* is ambiguous. Use a.any\(\) or",
    ),
    (
        "an unknown name",
        step("me.model = me.modle"),
        rf"{STEP}:4, `me.model = me.modle`: AttributeError: an agent has no 'modle'; did you mean 'model'\? it has",
    ),
    (
        "a counter on the record",
        step("me.count = 1"),
        rf"{STEP}:4, `me.count = 1`: AttributeError: me.count is not for a step to change; admissible: gap",
    ),
    (
        "a mean of no rows",
        step("me.model = me.features.sum(axis=0) / me.rows"),
        r"agent 0 \(without rows\) at time \S+: model became not a number after 0 updates",
    ),
    (
        "the first of no rows",
        step("me.model = me.features[0]"),
        rf"agent 0 \(without rows\) at time .*{STEP}:4, `me.model = me.features\[0\]`: IndexError",
    ),
    (
        "a mean of no rows in a batch",
        step("me.model = local_gradient(me, me.model) / me.rows", many=True),
        r"agent 0 \(without rows\) at time \S+: model became not a number after 0 updates",
    ),
]


@pytest.mark.parametrize(("text", "said"), [one[1:] for one in RUNS], ids=[one[0] for one in RUNS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_run_ends_with_one_sentence_and_the_author_s_line(text, said, tmp_path):
    for sentence in sentences(mine(tmp_path, text)):
        assert re.search(said, sentence), sentence


SENDS = 'def sends(self):\n    return {"model": Every(2)}'


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        (
            ["@batched\ndef step(me):\n    if (me.updates % 2 == 1).all():\n        me.message = me.model"],
            r"mine.py:3, `def step\(me\):`: agent 5 .* does not send message at its step 1, .* Every\(period=1, ",
        ),
        (
            ["@batched\ndef step(me):\n    me.message = me.model\n    return me.updates == 1"],
            r"mine.py:3, `def step\(me\):`: agent \d .* falls silent at its step 2, against .* most_steps, which is N",
        ),
        (
            [SENDS.replace("model", "modle"), step()],
            r"mine.py:2, `def sends\(self\):`: sends names the kind 'modle'; did you mean 'model'\? admissible: model",
        ),
        (
            [SENDS.replace("2", "2, 2"), step()],
            r"mine.py:2, `def sends\(self\):`: sends has Every\(period=2, phase=2\) for 'model'; admissible: whole",
        ),
    ],
)
def test_sending_against_the_declaration_is_said_on_either_engine(functions, said, tmp_path):
    for sentence in sentences(mine(tmp_path, *functions)):
        assert re.search(said, sentence), sentence


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
