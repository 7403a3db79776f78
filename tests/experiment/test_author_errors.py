"""A mistake in a protocol of exchanges is said with a line of the author's, by `check` and by `run`."""

import runpy

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.objectives.minima import cached_minimum
from hushnet.agents.objectives.objectives import Objective
from hushnet.agents.tasks.task_registry import TASKS
from hushnet.protocols.privacy.mechanisms import Noise, register
from hushnet.simulator.api import run
from hushnet.simulator.cli import main
from hushnet.simulator.network.graphs import TOPOLOGIES
from hushnet.simulator.recording.own_numbers import number_of

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


OWN_TASK = """\
from itertools import count
from typing import ClassVar, Literal
import numpy as np
from hushnet.agents.losses import LOSSES
from hushnet.agents.tables import Table
from hushnet.agents.tasks.extent import Extent
from hushnet.agents.tasks.outline import Outline
from hushnet.agents.tasks.task import Task
from hushnet.agents.tasks.task_registry import TASKS, TaskKind
from hushnet.simulator.network.graphs import TOPOLOGIES, Topology
import networkx as nx

CALLS = count()

class Camps(TaskKind):
    kind: Literal["camps"]
    draws_data: ClassVar[bool] = True

    def outline(self):
        return Outline(self.kind, "logistic", agents=4)

    def extent(self, files):
        return Extent(4, 2, 1000.0)

    def build(self, *, rng, data_dir, base=None):
        owners, rows = np.repeat(np.arange(4), 5), rng.normal(size=(20, 2))
        labels, weights = np.where(rows[:, 0] > 0, 1.0, -1.0), np.full(4, 0.1)
        table = Table.from_owners(rows, labels, owners, 4)
        return Task("camps", list(range(4)), table, table, LOSSES["logistic"], weights, "accuracy")

class Wheel(Topology):
    kind: Literal["own_wheel"]

    def expected_edges(self, extent, files):
        return 6.0

    def edges(self, task, *, rng, base):
        return nx.fast_gnp_random_graph(4, 0.9, seed=int(rng.integers(99)))

TASKS.register(Camps)
TOPOLOGIES.register(Wheel)
"""
CAMPS = {
    "schema": 1,
    "scenario": "camps",
    "task": {"kind": "camps"},
    "topology": {"kind": "own_wheel", "allow_disconnected": True, "allow_isolated": True},
    "protocols": {"local": {"kind": "local"}},
    "stop": {"time": 1},
    "record": {"every": 1.0, "metrics": ["accuracy"]},
}


@pytest.mark.parametrize(
    ("given", "instead", "said"),
    [
        (
            "np.arange(4), 5)",
            "np.arange(1, 5), 5)",
            "build.*owned by agents 0 to 4; admissible: 0 to 3, for there are 4 id",
        ),
        ("np.full(4", "np.full(3", r"build.*regularisation is of shape \(3,\); it must be 4 numbers >= 0"),
        ("0, 1.0, -1.0)", "0, 1.0, 0.0)", "build.*a training label is 0; admissible for logistic: -1 and [+]1"),
        ("rng.normal", "np.random.normal", "build.*called again with the same rng; draw from rng alone"),
        (
            "fast_gnp_random_graph(4, 0.9, seed=int(rng.integers(99)))",
            "star_graph(3) if next(CALLS) else nx.path_graph(4)",
            "edges.*called again with the same rng; draw from rng alone",
        ),
    ],
)
def test_a_task_or_graph_that_does_not_fit_together_is_said_with_its_line(given, instead, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "camps_of_mine.py").write_text(OWN_TASK.replace(given, instead))
    try:
        runpy.run_path("camps_of_mine.py")
        with pytest.raises(InputError, match=f"camps_of_mine.py:.*{said}"):
            run(CAMPS)
    finally:
        TASKS.remove("camps")
        TOPOLOGIES.remove("own_wheel")


class ToPoint(Objective):
    """Half of the squared distances of two models from 1, with a mistake."""

    slope, lowest, place = 1.0, 0.0, 1.0

    @property
    def fingerprint(self):
        return f"{self.slope} {self.lowest} {self.place}"

    def value(self, models):
        return float(((models - 1.0) ** 2).sum() / 2)

    def value_and_gradient(self, models):
        return self.value(models), self.slope * (models - 1.0)

    def minimise(self):
        return np.full((2, 3), self.place), self.lowest


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ({"slope": 0.5}, "def value_and_gradient.*the gradient must be that of value"),
        ({"slope": -1.0}, "def value_and_gradient.*the gradient must be that of value"),
        ({"lowest": -1.0}, "def minimise.*the minimum is said to be -1; value.. at the minimiser is 0"),
        ({"place": 1.1, "lowest": 0.03}, "def minimise.*models near the minimiser have a value below 0.03"),
    ],
)
def test_an_objective_whose_parts_do_not_belong_together_is_refused(mistake, said):
    assert cached_minimum(ToPoint(), None)[1] == 0.0
    wrong = ToPoint()
    vars(wrong).update(mistake)
    with pytest.raises(InputError, match=f"test_author_errors.py:.*{said}"):
        cached_minimum(wrong, None)


def test_a_truth_value_is_no_number_of_a_metric_and_a_mechanism_without_a_name_is_refused():
    with pytest.raises(TypeError, match=r"is True \(bool\); must be a number, such as float"):
        number_of(True, "own", "value", number_of)
    with pytest.raises(TypeError, match="Nameless has no name: what scenarios call it"):
        register(type("Nameless", (Noise,), {"draw": 0, "log_density": 0, "loss": 0})())
