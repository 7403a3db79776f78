"""Steps of single agents: both engines make them, whatever Python they are, and say what is wrong with the line."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.special
from hushnet.agents.errors import InputError, StepFailure
from hushnet.protocols.steps import accumulate, add_scaled, heard_of
from hushnet.simulator.contract.bench import protocol_parameters, run_small
from hushnet.simulator.network.network import NetworkParameters

from .noisy_steps import NoisyPairs
from .random_worlds import assert_same
from .test_batches import ENGINES, variant
from .test_batches import Alone as Mine

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


class Totals(Mine):
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


class AnyPython(Mine):
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
    kind, sentences = variant(tmp_path, text, Mine, decorators=""), []
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
    line = r"test_steps\.py:\d+, `def respond\(me, partner\):`"
    said = line + r": takes \(me, partner\); admissible: respond\(me, partner, heard\)"
    with pytest.raises(InputError, match=said):
        run_small(ShortPairs, protocol_parameters(ShortPairs, {}), engine=engine)
