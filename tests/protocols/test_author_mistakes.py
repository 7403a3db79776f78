"""Mistakes of authors and what a protocol cannot take: the field or line, and the sentence."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.errors import HushnetError, InputError, StepFailure
from hushnet.agents.losses import LOSSES
from hushnet.protocols import steps
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.catalog import resolve
from hushnet.simulator.contract import check_contract
from hushnet.simulator.contract.bench import protocol_parameters, run_small, small_task
from hushnet.simulator.contract.violation import ContractViolation
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.world.world import World
from pydantic import ValidationError

from .columns import ISOTROPIC, split_task, star
from .test_perturbed_admm import ring, task_of
from .worlds import setting_of

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
            r"step of agent \d draws from np.random, which no rerun repeats; draw by uniform, normal or choice",
        ),
        (
            [step("me.model = me.model + np.random.standard_normal(me.model.shape)", many=True)],
            r"step of agent \d draws from np.random, which no rerun repeats; draw by uniform, normal or choice",
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


BUDGET, TARGET = {"epsilon": 1.0, "delta": 1e-3}, {"verified": 4.0, "delta": 1e-3}
LAPLACE = {"mechanism": "laplace", "budget": {**BUDGET, "epsilon": 1.5}, "updates": 3, "clip": 1.0}
GAUSSIAN = {"mechanism": "gaussian", "multiplier": 5.0, "clip": 1.0}
THEOREM = {"mechanism": "gaussian", "budget": {**BUDGET, "delta": 0.01, "by": "basic_composition"}, "updates": 5}
CLAIMED = {**THEOREM, "sensitivity": "claimed"}
ONCE = {"mechanism": "laplace", "budget": {"epsilon": 2.0, "delta": 0.0}, "updates": 1, "clip": 1.0}
START = {"kind": "private_propagation", "epsilon": 0.5}
FAR = {**LAPLACE, "budget": None, "target": TARGET}
NEAR = {**FAR, "target": {**TARGET, "verified": 0.4}}
CHECKED = {**LAPLACE, "sensitivity": "data_check", "clip": None, "radius": 0.1}
NOISE = {"target": {"verified": 0.1, "delta": 1e-5}, "updates": 50}
ALPHA = {"noise": {"alpha": 3.0}}
TASKS = {
    "": small_task(),
    "full": small_task(empty=False),
    "hinge": replace(small_task(), loss=LOSSES["hinge"]),
    "squared": replace(small_task(), loss=LOSSES["squared"]),
    "unbounded": replace(small_task(), bounds={}),
    "not regularised": replace(small_task(), regularisation=np.zeros(6)),
    "ball": task_of([3] * 5, 2),
    "ball, unbounded": task_of([3] * 5, 2, bounds={}),
    "columns": split_task(),
    "columns, hinge": split_task(loss="hinge"),
}
UNCLIPPED = {**ISOTROPIC, "sensitivity": "claimed", "clip": None}
P = ("privacy",)
REFUSED = [
    ("model_propagation", {"alpha": 0.5, "mu": 1.0}, "", None, "give one of alpha and mu"),
    ("model_propagation", {"closed_form": True, "schedule": "rounds"}, "", None, "has no schedule"),
    ("model_propagation", {"partners": "weighted", "schedule": "async"}, "", None, "partners belongs to sessions"),
    ("model_propagation", {"solitary": {"steps": 3}, "privacy": ONCE}, "", None, "noise is scaled for exact"),
    ("collaborative_admm", {"local_steps": 0}, "", None, "greater than or equal to 1"),
    ("decentralised_sgd", {"local_steps": 2}, "", None, "adapt_then_combine"),
    ("stale_feature_sharing", {"staleness": 0}, "columns", None, "greater than or equal to 1"),
    ("stale_feature_sharing", {"staleness": "forever"}, "columns", None, "unbounded"),
    ("stale_feature_sharing", {"damping": -1.0}, "columns", None, "greater than or equal to 0"),
    ("stale_feature_sharing", {"privacy": {**ISOTROPIC, "mechanism": "laplace"}}, "columns", None, "Gaussian noise"),
    ("feature_sharing", {"privacy": {**ISOTROPIC, "mechanism": "laplace"}}, "columns", None, "Gaussian noise"),
    ("feature_sharing", {"privacy": UNCLIPPED}, "columns", None, "use clip"),
    ("feature_sharing", {"privacy": ISOTROPIC, "noise": {"scale": 1.0}}, "columns", None, "one of noise"),
    ("feature_sharing", {"noise": {"scale": 0.0}}, "columns", None, "greater than 0"),
    ("feature_sharing", {}, "columns, hinge", None, "'hinge' is not"),
    ("dual_averaging", {"privacy": {**CLAIMED, "mechanism": "laplace"}}, "", None, "Gaussian"),
    ("dual_averaging", {"privacy": {**CLAIMED, "budget": {**THEOREM["budget"], "epsilon": 2.0}}}, "", None, "n <= 1"),
    ("dual_averaging", {"privacy": {**CLAIMED, "budget": {**THEOREM["budget"], "delta": 0.5}}}, "", None, "a <= 1/3"),
    ("dual_averaging", {"privacy": {**CLAIMED, "budget": BUDGET}}, "", None, "use by: basic_composition"),
    ("dual_averaging", {"privacy": {**CLAIMED, "allocation": "late"}}, "", None, "use uniform"),
    ("consensus_admm", {}, "hinge", None, "'hinge' of the task .* has a kink"),
    ("edge_consensus_admm", {}, "hinge", None, "has a kink"),
    # 2 c1 = .5 against (B/C) (rho/N + 2 theta V) = (3/14) (1/5 + 2) = .471, the condition of algorithm 1.
    ("perturbed_admm", {"loss_weight": 14.0, **ALPHA}, "ball", ("loss_weight",), r"B = 3 rows and V = 2 .* 0\.471429"),
    ("perturbed_admm", {"noise": {"alpha": [1.0]}}, "ball", ("noise", "alpha"), "has 1 values; one for each of the 5"),
    ("perturbed_admm", {"noise": {"alpha": 1.0, **NOISE}}, "ball", None, "exactly one of alpha, target and claimed"),
    ("perturbed_admm", {"noise": {}}, "ball", None, "exactly one of alpha, target and claimed"),
    ("perturbed_admm", {"noise": {"target": TARGET}}, "ball", None, "is required with target"),
    ("perturbed_admm", {"noise": NOISE}, "ball", ("noise", "target", "verified"), "the determinants of 50 rounds of"),
    ("coordinate_descent", {"privacy": CHECKED}, "full", (*P, "radius"), r"above the declared radius 0\.1"),
    (
        "coordinate_descent",
        {"start": "local", "privacy": LAPLACE},
        "",
        None,
        "holds only for a start that does not",
    ),
    ("coordinate_descent", {"start": START, "privacy": NEAR}, "", ("start", "epsilon"), "the start alone spends"),
    (
        "coordinate_descent",
        {"start": START, "privacy": GAUSSIAN},
        "",
        ("start", "mechanism"),
        "no place for gamma",
    ),
    ("coordinate_descent", {"start": START}, "unbounded", None, "needs a bound on the rows"),
    (
        "coordinate_descent",
        {"start": {**START, "lipschitz": 1.0}, "privacy": FAR},
        "",
        None,
        "cannot reach a verified",
    ),
    ("coordinate_descent", {"start": {**START, "delta": 1e-5}}, "", None, "delta above 0"),
    ("coordinate_descent", {"start": {**START, "mechanism": "gaussian"}}, "", None, "delta above 0"),
    ("local_dp_descent", {"privacy": ONCE, "mu": 0.5}, "hinge", None, "needs a smooth loss"),
]


@pytest.mark.parametrize(("kind", "fields", "task", "field", "says"), REFUSED)
def test_what_a_protocol_cannot_take_is_refused_with_its_field(kind, fields, task, field, says):
    protocol, data = resolve(kind), TASKS[task]
    graph = star(data) if "columns" in task else ring(5) if "ball" in task else None
    with pytest.raises((InputError, ValidationError), match=says) as error:
        World(setting_of(task=data, graph=graph), protocol, protocol_parameters(protocol, fields))
    assert field is None or error.value.field == field


@pytest.mark.parametrize(
    ("fields", "task"),
    [
        ({"start": START, "radius": 1.0}, "unbounded"),
        ({"start": {**START, "lipschitz": 1.0}}, "unbounded"),
        ({"start": {**START, "regularisation": 1.0}}, "not regularised"),
        ({"start": START, "privacy": {**GAUSSIAN, "mechanism": "laplace"}}, ""),
        ({"start": START, "privacy": {**GAUSSIAN, "multiplier": 0.0}}, ""),
        ({"start": "local", "privacy": {"mechanism": "laplace", "multiplier": 0.0, "sensitivity": "claimed"}}, ""),
        ({"privacy": {**CHECKED, "radius": 3.0}}, "full"),
    ],
)
def test_what_coordinate_descent_can_take_it_takes(fields, task):
    kind = resolve("coordinate_descent")
    World(setting_of(task=TASKS[task]), kind, protocol_parameters(kind, fields))
