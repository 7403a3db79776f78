"""Steps of one agent and of many: what is assigned is written back, and what cannot be is said with its line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.special
from hushnet.agents.errors import InputError, StepFailure
from hushnet.protocols import steps
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.steps import Constants, accumulate, add_scaled, batched, heard_of, per_edge, segment_sum
from hushnet.simulator.contract.bench import protocol_parameters, run_small
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.network.network import NetworkParameters

from .noisy_steps import NoisyPairs
from .random_worlds import assert_same, check_engines_agree, random_setting

ENGINES = [EventEngine(), BatchedEngine()]
SEEN: list[dict[str, tuple[int, ...]]] = []


class Parameters(ProtocolParameters):
    kind: str = "together"
    step_size: float = 0.5


class Blocks(Protocol):
    """Blocks of several widths, constants of all kinds, and edges."""

    Parameters = Parameters

    def layout(self):
        p = self.problem.task.dimension
        return Layout(
            agent={"model": p, "met": 1}, edge={"gap": p, "count": 1}, messages={"model": MessageKind(p, "model")}
        )

    def constants(self):
        graph, task = self.problem.graph, self.problem.task
        return Constants(
            run={"decay": 0.9, "centre": np.arange(float(task.dimension))},
            agent={"mu_c": 1.0 / (1 + np.arange(graph.agents)), "target": np.ones((graph.agents, task.dimension))},
            edge={"trust": 1.0 / (1 + np.arange(len(graph.heads)))},
        )

    def start(self, me):
        me.send("model", me.model, me.public("zeros"))


class Alone(Blocks):
    """One agent after the other."""

    @staticmethod
    def step(me):
        me.gap = me.heard - me.model
        me.count += 1.0
        me.met += me.degree
        around = (me.trust[:, None] * me.gap).sum(axis=0) if me.degree else 0.0
        me.model = me.decay * me.model + me.step_size * (around + me.mu_c * me.target)
        me.model[0] += 1.0
        if me.agent % 2 == 1:
            me.met = -me.met
            me.gap *= 2.0
        if me.agent == 3:
            me.model /= 2
        me.message = me.model + 0.01 * me.centre * (me.updates + me.rows + me.tick + me.round)


class Together(Blocks):
    """The same of many agents."""

    @staticmethod
    @batched
    def step(me):
        names = "model met degree rows updates tick round now agent mu_c target gap count trust weights heard was_heard"
        SEEN.append({name: np.shape(getattr(me, name)) for name in [*names.split(), "step_size", "centre"]})
        me.gap = me.heard - per_edge(me, me.model)
        me.count += 1.0
        me.met += me.degree
        around = segment_sum(me, me.trust * me.gap)
        me.model *= me.decay
        me.model += me.step_size * (around + me.mu_c * me.target)
        me.model[:, 0] += 1.0
        odd = me.where(me.agent % 2 == 1)
        before = odd.met
        odd.met = -odd.met
        odd.gap = 2.0 * odd.gap
        assert (odd.met == -before).all()
        third = odd.where(odd.agent == 3)
        third.model = third.model / 2
        me.message = me.model + 0.01 * me.centre * (me.updates + me.rows + me.tick + me.round)


@pytest.mark.parametrize("schedule", ["async", "rounds"])
@pytest.mark.parametrize("seed", range(2))
def test_numbers_are_columns_and_what_is_assigned_is_written_back(seed, schedule):
    SEEN.clear()
    make = random_setting(seed, loss="logistic", dimension=3, easy=True)
    spec = Parameters(schedule={"kind": schedule})
    together = check_engines_agree(make, Together, spec)
    alone = check_engines_agree(make, Alone, spec, engine="batched (planned steps)")
    for kind in ("agent", "edge"):
        for name, block in getattr(alone.state, kind).items():
            found = getattr(together.state, kind)[name].values
            np.testing.assert_allclose(found, block.values, rtol=1e-12, atol=1e-12)
    steps = together.updates[together.setting.graph.tails]
    np.testing.assert_array_equal(together.state.edge["count"].values, steps)
    assert steps.max() > 5
    for shapes in SEEN:
        (agents, _), (edges, _) = shapes["model"], shapes["gap"]
        for name in ("met", "degree", "rows", "updates", "tick", "round", "now", "agent", "mu_c"):
            assert shapes[name] == (agents, 1), name
        for name in ("count", "trust", "weights", "was_heard"):
            assert shapes[name] == (edges, 1), name
        assert shapes["target"] == (agents, 3)
        assert shapes["heard"] == (edges, 3)
        assert (shapes["step_size"], shapes["centre"]) == ((), (3,))
    assert len({shapes["model"][0] for shapes in SEEN}) > 2


class Pairs(Protocol):
    """Edge variables of the edge that is met, and of all."""

    Parameters = Parameters
    traits = Traits(exchange="pairwise")

    def layout(self):
        p = self.problem.task.dimension
        return Layout(
            agent={"model": p},
            edge={"moved": p, "met": 1},
            messages={"request": MessageKind(p), "reply": MessageKind(p)},
        )

    def start(self, me):
        me.model = 1.0 + me.agent


class PairsAlone(Pairs):
    """One agent after the other."""

    @staticmethod
    def request(me, partner):
        me.met[partner] += me.weights[partner]
        me.message = me.model

    @staticmethod
    def respond(me, partner, heard):
        me.moved[partner] += (heard - me.model) / 2
        me.moved *= 0.5
        me.met[partner] = 7.0
        me.met += me.weights
        if me.agent % 2:
            me.met[partner] += me.weights[partner]
            me.moved[partner] += 1.0
        me.moved += 0.25
        me.message = me.moved[partner]
        me.model += me.moved[partner]

    @staticmethod
    def complete(me, partner, heard):
        me.moved[partner] -= heard
        me.model -= heard + 0.001 * me.moved.sum(axis=0)


class PairsTogether(Pairs):
    """The same of many agents."""

    @staticmethod
    @batched
    def request(me):
        me.here.met = me.here.met + me.here.weight
        me.message = me.model

    @staticmethod
    @batched
    def respond(me, heard):
        me.here.moved = me.here.moved + (heard - me.model) / 2
        me.moved *= 0.5
        me.here.met = 7.0
        me.met += me.weights
        odd = me.where(me.agent % 2 == 1)
        odd.here.met = odd.here.met + odd.here.weight
        odd.here.moved = odd.here.moved + 1.0
        me.moved += 0.25
        me.message = me.here.moved
        me.model += me.here.moved

    @staticmethod
    @batched
    def complete(me, heard):
        me.here.moved = me.here.moved - heard
        me.model = me.model - (heard + 0.001 * segment_sum(me, me.moved))


@pytest.mark.parametrize("seed", range(2))
def test_a_batch_has_the_edges_over_which_its_agents_meet_and_all_the_others(seed):
    make, spec = random_setting(seed, loss="logistic"), Parameters()
    together = check_engines_agree(make, PairsTogether, spec)
    alone = check_engines_agree(make, PairsAlone, spec, engine="batched (planned steps)")
    for kind in ("agent", "edge"):
        for name, block in getattr(alone.state, kind).items():
            found = getattr(together.state, kind)[name].values
            np.testing.assert_allclose(found, block.values, rtol=1e-12, atol=1e-12)
    assert together.activations > 20


def variant(folder, text, kind=Blocks, name="step", decorators="@batched\n", head="def step(me):\n"):
    """A class whose step is made of these lines, in a file of its own."""
    path = Path(folder) / "mine.py"
    source = decorators + head + "".join(f"    {line}\n" for line in text.splitlines())
    path.write_text(source)
    made: dict = {**{name: getattr(steps, name) for name in steps.__all__}, "np": np, "__name__": "mine"}
    exec(compile(source, str(path), "exec"), made)
    return type("Variant", (kind,), {name: staticmethod(made[name])})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "me.model = me.modle",
            r"`me.model = me.modle`: AttributeError: an agent has no 'modle'; did you mean 'model'",
        ),
        ("me.model = np.ones((len(me.model), 7))", r"me\.model is \(\d+, 3\) here, and was given \(\d+, 7\)"),
        ("me.met = np.ones((len(me.model) + 1, 1))", r"me\.met is \(\d+, 1\) here, and was given"),
        ("me.gap = np.ones((0, 3))", r"me\.gap is \(\d+, 3\) here, and was given \(0, 3\)"),
        ("me.message = np.ones((len(me.model), 2))", r"me\.message is \(\d+, 3\) here, and was given"),
        ("me.weights = 1.0", r"AttributeError: me\.weights is not for a step to change"),
        ("me.weights[0] = 1.0", r"ValueError: .*read-only; what is no block, or of a part of a batch, is there to be"),
        ("me.where(me.agent >= 0).met += me.degree", r"read-only; what is no block, or of a part of a batch, is"),
        ("me.target[0] = 1.0", r"read-only"),
        ("me.model -= me.features", r"AttributeError: a batch has no 'features', for agents have different numbers"),
        ("me.model = me.here.gap", r"AttributeError: an agent has no 'here'"),
        ("me.message = me.model\nme.where(me.agent >= 0).message = 1.0", r"me\.message is not for a part of the ag"),
        ("me.where(me.agent >= 0).model = np.ones((len(me.model), 2))", r"me\.model is \(\d+, 3\) here, and was giv"),
        ("me.where(me.agent >= 0).model[:] = 0.0", r"read-only"),
        ("me.where(np.ones(len(me.model) + 1)).model = 0.0", r"a mask of \d agents, and not one of shape \(\d,\)"),
    ],
)
def test_what_a_batch_cannot_do_is_said_with_the_author_s_line(text, said, engine, tmp_path):
    kind = variant(tmp_path, text)
    with pytest.raises(StepFailure) as failure:
        run_small(kind, protocol_parameters(kind, {}), engine=engine, time=3.0)
    sentence = str(failure.value)
    assert re.search(said, sentence), sentence
    assert re.search(r"agent \d at time \S+, after 0 updates: the step of Variant failed at mine\.py:[34], `", sentence)
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("me.here.model = 1.0\nme.message = me.model", r"AttributeError: me\.here\.model is not for a step to change"),
        ("me.message = me.here.gap", r"AttributeError: an edge has no 'gap'; it has moved, met and weight"),
        ("me.here.moved = np.ones((9, 1, 2))\nme.message = 0.0", r"me\.here\.moved is \(\d+, 3\) here, and was given"),
        ("me.model = me.model", r"it sends exactly one message, and has not assigned me\.message"),
    ],
)
def test_what_an_exchange_in_batches_cannot_do_is_said_alike_on_both_engines(text, said, tmp_path):
    kind, sentences = variant(tmp_path, text, PairsTogether, "request", head="def request(me):\n"), []
    for engine in ENGINES:
        with pytest.raises(StepFailure, match=said) as failure:
            run_small(kind, protocol_parameters(kind, {}), engine=engine, time=3.0)
        sentences.append(str(failure.value))
    assert sentences[0] == sentences[1]


SHARE = 0.5


def both(kind, fields=None, *, engine="batched (planned steps)", **settings):
    """What a protocol comes to on the event engine and on the batched one, which is the same."""
    settings = {"time": 12.0, **settings}
    if "network" in settings:
        settings["network"] = NetworkParameters.model_validate(settings["network"])
    spec = protocol_parameters(kind, fields or {})
    event, batched = (run_small(kind, spec, engine=one, **settings) for one in ENGINES)
    assert batched.engine.startswith(engine), batched.engine
    assert_same(batched, event)
    return batched


class Totals(Alone):
    """Running totals, of which the receiver takes in what is new."""

    @staticmethod
    def step(me):
        for rank in range(me.degree):
            accumulate(me.model, heard_of(me, rank), me.gap[rank])
            me.met += np.abs(me.gap[rank] - heard_of(me, rank)).sum()
        add_scaled(me.model, 1.0, me.target)
        me.message = 0.1 * me.model


def test_a_total_is_taken_in_once():
    """All that an agent has is what it made itself, once a step, and the last total of each of its neighbours."""
    world = both(Totals)
    graph, models = world.setting.graph, world.state.agent["model"].rows
    taken = np.zeros_like(models)
    np.add.at(taken, graph.tails, world.state.edge["gap"].rows)
    np.testing.assert_allclose(models, taken + world.updates[:, None], rtol=1e-12)
    assert np.any(taken)
    assert not np.any(world.state.agent["met"].values)


COUNTED = {"calls": 0}


def halved(vector, times):
    """Calls itself."""
    return vector if times == 0 else halved(vector / 2, times - 1)


class AnyPython(Alone):
    """Recursion, texts, mappings, sets, a file, another library, whole numbers of any size, and state outside."""

    @staticmethod
    def step(me):
        global SHARE
        SHARE = SHARE + 0.0
        COUNTED["calls"] += 1
        seen = {"a": me.model, 1: 2**70 % 7}
        with open(__file__) as handle:
            first = handle.readline()
        x = sum(w * scipy.special.expit(seen["a"]) for w in me.weights) if (n := me.degree) else len(first)
        del seen
        me.met, (me.model[0], *_) = n, (len(f"{me.met:.3f}"), 2.0)
        me.model += halved(np.array(x), 3) + len({1, 2} | {3})
        me.message = me.model


def test_a_step_may_be_any_python(monkeypatch):
    monkeypatch.setitem(COUNTED, "calls", 0)
    world = both(AnyPython, time=3.0)
    assert COUNTED["calls"] == 2 * world.activations > 0


LATER = "me.message = me.model\nif me.updates == 2:\n    "


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("me.model -= me.stepsize", 2, r"AttributeError: an agent has no 'stepsize'; did you mean 'step_size'"),
        ("me.model -= stepsize", 2, r"NameError: name 'stepsize' is not defined"),
        ("me.rate = 1.0", 2, r"AttributeError: me\.rate is not for a step to change"),
        ("me.features = me.features", 2, r"AttributeError: me\.features is not for a step to change"),
        ("me.weights[0] = 1.0", 2, r"ValueError: .*read-only"),
        ("me.labels[:] = 1.0", 2, r"ValueError: .*read-only"),
        ("me.target[0] = 1.0", 2, r"ValueError: .*read-only"),
        ("me.model = me.message", 2, r"AttributeError: me\.message is assigned as a whole, and never read"),
        ("me.message = me.model\nme.message[0] = 1.0", 3, r"me\.message is assigned as a whole, and never read"),
        (f"{LATER}me.model[len(me.model)] = 1.0", 4, r"IndexError: index 3 is out of bounds"),
        (f"{LATER}me.gap[me.degree] = 1.0", 4, r"IndexError"),
        (f"{LATER}me.model[:2] = np.linalg.solve(np.zeros((2, 2)), np.ones(2))", 4, r"LinAlgError: Singular matrix"),
        (f"{LATER}me.message = me.heard[me.degree]", 4, r"IndexError"),
        (f"{LATER}me.message = np.zeros(len(me.model) + 1)", 4, r"ValueError: me"),
        (f"{LATER}me.model = np.zeros(len(me.model) + 1)", 4, r"ValueError: me"),
        (f"{LATER}add_scaled(me.model, 0.5, me.model[:1])", 4, r"ValueError: what is added to a sum"),
        (f"{LATER}raise ValueError('no such luck')", 4, r"ValueError: no such luck"),
        (f"{LATER}assert False", 4, r"AssertionError: no message"),
    ],
)
def test_a_step_that_fails_says_who_and_when_and_where_on_both_engines(text, line, said, tmp_path):
    kind, sentences = variant(tmp_path, text, Alone, decorators=""), []
    for engine in ENGINES:
        with pytest.raises(StepFailure) as failure:
            run_small(kind, protocol_parameters(kind, {}), engine=engine, time=12.0)
        sentences.append(str(failure.value))
    assert sentences[0] == sentences[1]
    after = 2 if line == 4 else 0
    assert re.match(rf"agent \d at time [\d.]+, after {after} updates: the step of Variant failed at ", sentences[0])
    assert re.search(said, sentences[0]), sentences[0]
    assert "LinAlgError" in said or f"failed at mine.py:{line}, `" in sentences[0]
    assert "\n" not in sentences[0]


class ShortPairs(NoisyPairs):
    """A response that nobody tells what was heard."""

    @staticmethod
    def respond(me, partner):
        """Take too little."""
        me.message = me.model


@pytest.mark.parametrize("engine", ENGINES)
def test_a_function_that_takes_something_else_is_refused_before_the_first_step_with_its_line(engine):
    line = r"test_batches\.py:\d+, `def respond\(me, partner\):`"
    said = line + r": takes \(me, partner\); admissible: respond\(me, partner, heard\)"
    with pytest.raises(InputError, match=said):
        run_small(ShortPairs, protocol_parameters(ShortPairs, {}), engine=engine)
