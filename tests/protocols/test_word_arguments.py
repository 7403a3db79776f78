"""What words are given: both forms take the same, and refuse the same with the same sentence."""

from __future__ import annotations

import importlib.util
from itertools import product

import numpy as np
import pytest
from hushnet.agents.errors import StepFailure
from hushnet.protocols import steps
from hushnet.simulator.contract.bench import protocol_parameters, run_small
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine

HEAD = """import numpy as np
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.steps import *


class Mine(Protocol):
    Parameters = ProtocolParameters

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p, "found": 1}, messages={"model": MessageKind(p, "model")})

    def start(self, view, out):
        out.send("model", view.state["model"], out.public("zeros"))

    def step(me):
        p, rows = len(me.model), me.rows
        me.model = me.model + 0.125 * (1.0 + np.arange(p))
        me.message = me.model
"""

PLACE = f"mine.py:{len(HEAD.splitlines()) + 1}"
"""Of the first line that a test gives."""
VECTORS = (
    "np.ones(p)",
    "np.ones(p + 1)",
    "np.ones(p - 1)",
    "np.ones(1)",
    "np.ones(0)",
    "np.arange(p)",
    "np.sqrt(np.arange(p))[::-1]",
    "np.ones((p, p))",
    "1.0",
)
BY_ROW = (
    "np.ones(rows)",
    "np.ones(rows + 1)",
    "np.ones(max(rows - 1, 0))",
    "np.ones(1)",
    "np.arange(rows)",
    "np.ones(2 * rows)[::2]",
    "1.0",
)
RANKS = (
    "np.array([rows])",
    "np.array([-1])",
    "np.array([-rows - 1])",
    "np.array([rows - 1, 0])",
    "np.zeros(0, dtype=np.int64)",
    "np.ones(rows, dtype=np.bool_)",
    "me.labels > 0",
    "np.ones(rows + 1, dtype=np.bool_)",
    "np.array([0.0])",
    "np.array([0, 0])[::-1]",
    "np.array([0], dtype=np.int32)",
    "np.array([[0]])",
    "np.arange(rows)",
    "range(rows)",
    "[0, 1]",
    "0",
    "None",
)
BY_NEIGHBOUR = (
    "np.ones(me.degree)",
    "np.ones(me.degree + 1)",
    "np.ones(me.degree - 1)",
    "np.ones(1)",
    "np.arange(me.degree)",
    "np.ones(2 * me.degree)[::2]",
    "1.0",
)
NEIGHBOURS = (
    "me.degree",
    "me.degree - 1",
    "-1",
    "-me.degree",
    "-me.degree - 1",
    "10**6",
    "0.0",
    "np.int32(0)",
    "True",
    "None",
)
CALLS = {
    "add_scaled": [f"add_scaled(me.model, 0.5, {one})" for one in VECTORS],
    "affords": ["affords(me)"],
    "average": ["average(me)"],
    "bends": [f"bends(me, {one})" for one in BY_ROW],
    "clipped": [f"clipped({one}, {bound})" for one, bound in product(VECTORS, ("0.5", "1", "np.inf"))],
    "draw_each": [f"draw_each(me, {one})" for one in ("0.5", "0", "2.0", "-1.0")],
    "draw_rows": [f"draw_rows(me, {one})" for one in ("1", "2", "0", "-1", "10**6", "1.5")],
    "heard_of": [f"heard_of(me, {one})" for one in NEIGHBOURS],
    "heard_sum": ["heard_sum(me)"],
    "local_gradient": [f"local_gradient(me, {one})" for one in VECTORS],
    "loss_gradient": [
        *(f"loss_gradient(me, {one})" for one in VECTORS),
        *(f"loss_gradient(me, me.model, {one})" for one in RANKS),
    ],
    "minimised": [
        *(f"minimised(me, 1.0, 1.0, {one}, me.model, 1e-9)" for one in VECTORS),
        *(f"minimised(me, 1.0, 1.0, me.model, {one}, 1e-9)" for one in VECTORS),
    ],
    "perturbed": [f"perturbed(me, {one})" for one in VECTORS],
    "perturbed_minimiser": [
        *(f"perturbed_minimiser(me, 1.0, 1.0, {one}, me.model, 1e-9, 0.5)" for one in VECTORS),
        *(f"perturbed_minimiser(me, 1.0, 1.0, me.model, {one}, 1e-9, 0.5)" for one in VECTORS),
    ],
    "post_processed": ["post_processed(me)"],
    "rows_minimised": [f"rows_minimised(me, 1.0, {one})" for one in BY_ROW],
    "scores_of": [
        *(f"scores_of(me, {one})" for one in VECTORS),
        *(f"scores_of(me, me.model, {one})" for one in RANKS),
    ],
    "slopes": [
        *(f"slopes(me, {one})" for one in BY_ROW),
        *(f"slopes(me, np.ones(1), {one})" for one in RANKS),
        *(f"slopes(me, np.ones(rows), {one})" for one in RANKS),
    ],
    "solved_by": [f"solved_by(np.ones(p * p), {one})" for one in VECTORS],
    "sum_of_rows": [
        *(f"sum_of_rows(me, {one})" for one in BY_ROW),
        *(f"sum_of_rows(me, np.ones(1), {one})" for one in RANKS),
        *(f"sum_of_rows(me, np.ones(rows), {one})" for one in RANKS),
    ],
    "take_in": [
        *(f"take_in(me.model, np.ones(p), {one})" for one in VECTORS),
        *(f"take_in(me.model, {one}, np.ones(p))" for one in VECTORS),
    ],
    "weighted_sum": [f"weighted_sum(me, {one})" for one in BY_NEIGHBOUR],
}
RIGHT = (
    "heard_of(me, -1)",
    "local_gradient(me, np.ones(p))",
    "loss_gradient(me, me.model, me.labels > 0)",
    "loss_gradient(me, me.model, np.arange(rows))",
    "minimised(me, 1.0, 1.0, np.ones(p), me.model, 1e-9)",
    "scores_of(me, me.model, me.labels > 0)",
    "slopes(me, np.ones(rows), np.arange(rows))",
    "sum_of_rows(me, np.ones(rows), np.ones(rows, dtype=np.bool_))",
    "weighted_sum(me, np.ones(me.degree))",
)
"""Some of those that nobody refuses and that are compiled."""
WRONG = (
    "bends(me, np.ones(1))",
    "clipped(np.arange(p), 0.5)",
    "heard_of(me, me.degree)",
    "heard_of(me, -me.degree - 1)",
    "heard_of(me, 10**6)",
    "local_gradient(me, np.ones(p + 1))",
    "loss_gradient(me, np.ones(p + 1))",
    "loss_gradient(me, me.model, np.array([rows]))",
    "loss_gradient(me, me.model, np.array([-rows - 1]))",
    "loss_gradient(me, me.model, np.array([0.0]))",
    "minimised(me, 1.0, 1.0, np.ones(p + 1), me.model, 1e-9)",
    "minimised(me, 1.0, 1.0, np.arange(p), me.model, 1e-9)",
    "minimised(me, 1.0, 1.0, me.model, np.ones(p - 1), 1e-9)",
    "perturbed_minimiser(me, 1.0, 1.0, me.model, np.ones(p + 1), 1e-9, 0.5)",
    "rows_minimised(me, 1.0, np.ones(1))",
    "scores_of(me, me.model, np.ones(rows + 1, dtype=np.bool_))",
    "slopes(me, np.ones(1))",
    "sum_of_rows(me, np.ones(rows), np.array([rows]))",
    "weighted_sum(me, np.ones(me.degree - 1))",
)
"""What read or wrote where nothing is once, or differed between forms."""
IN_PLACE = ("add_scaled", "post_processed", "take_in")


def of_text(lines, folder):
    """A protocol in a file, whose step has these lines."""
    file = folder / "mine.py"
    file.write_text(HEAD + "".join(f"        {line}\n" for line in lines))
    spec = importlib.util.spec_from_file_location("mine", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Mine


def outcome(kind, engine):
    """What is said of its failure and nothing, or on which engine it ran and the agents' blocks."""
    try:
        world = run_small(kind, protocol_parameters(kind, {}), engine=engine, time=4.0)
    except StepFailure as error:
        return str(error).partition(" of Mine ")[2], None
    return world.engine, world.state.agent


EVERY = [one for calls in CALLS.values() for one in calls]
"""Nine in ten of them are for the slow tests: each compiles a step of its own."""
SLOW = {one: () if one in RIGHT + WRONG else pytest.mark.slow for one in EVERY}


@pytest.mark.parametrize("call", [pytest.param(one, marks=marks) for one, marks in SLOW.items()])
def test_both_forms_take_the_same_and_refuse_the_same(call, tmp_path):
    in_place = call.partition("(")[0] in IN_PLACE
    kind = of_text([call, "me.found = 1.0"] if in_place else [f"me.found = np.sum({call})"], tmp_path)
    (said, python), (also, batched) = outcome(kind, EventEngine()), outcome(kind, BatchedEngine())
    if python is None or batched is None:
        assert said == also
        assert f"{PLACE}, `{'' if in_place else 'me.found = np.sum('}{call}" in said
        return
    for name, block in python.items():
        np.testing.assert_allclose(batched[name].values, block.values, rtol=1e-10, atol=1e-10)
    assert also == "batched (compiled step)" or call not in RIGHT


def test_some_of_each_are_among_them():
    assert {*RIGHT, *WRONG} <= set(EVERY)
    assert len(EVERY) > 8 * len(RIGHT + WRONG)


def test_every_word_is_among_them():
    assert set(CALLS) == {name for name in steps.__all__ if hasattr(getattr(steps, name), "compiled_form")}
