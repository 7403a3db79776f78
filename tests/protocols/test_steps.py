"""A step is one text: Python and compiled do the same, and what is wrong with it is said with the author's line."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.special
from hushnet.agents.errors import InputError, StepFailure
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.noise import GradientNoise
from hushnet.protocols.steps import (
    Constants,
    add_scaled,
    average,
    heard_of,
    local_gradient,
    loss_gradient,
    perturbed,
    slopes,
    take_in,
)
from hushnet.protocols.steps.refusals import sentence_of
from hushnet.protocols.steps.rewriting import notes_found_model
from hushnet.protocols.steps.text import Text, most_draws
from hushnet.simulator.contract.bench import protocol_parameters, run_small
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.network.network import NetworkParameters

README = Path(__file__).parents[2] / "README.md"
TABLE = [0.5, 0.25]
SHARE = 0.5
NOISE = {"mechanism": "laplace", "multiplier": 2.0, "sensitivity": "clip", "clip": 1.0}


class Parameters(ProtocolParameters):
    """Of `Mine`."""

    step_size: float = 0.1
    rule: str = "mean"


class Mine(Protocol):
    """Blocks of several widths, constants of all kinds, an edge block."""

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

    def start(self, view, out):
        out.send("model", view.state["model"], out.public("zeros"))

    @staticmethod
    def step(me):
        gradient = local_gradient(me, me.model)
        around = np.zeros(len(me.model))
        for rank in range(me.degree):
            me.gap[rank] = heard_of(me, rank) - me.model
            me.count[rank] += 1.0
            around += me.trust[rank] * me.gap[rank]
        me.met += me.degree
        me.model = me.decay * me.model + me.step_size * (around - gradient) + helped(me.mu_c, me.target) - SHARE
        me.model -= 0.01 * me.centre * (me.updates + me.rows + me.tick)
        me.message = me.model


class Overflowing(Mine):
    """Numbers that leave their range, and a division by zero, without a trace in what is sent."""

    @staticmethod
    def step(me):
        huge = (1.0 + me.step_size) ** (10_000 * me.round) * me.mu_c
        endless = (me.met + 1.0) / (me.decay - me.decay)
        me.model = np.minimum(me.model + 1.0, huge) + 1.0 / endless
        me.met = 1.0
        me.message = me.model


def helped(mu_c, target):
    """A function of the author's own."""
    return mu_c * target


def both(protocol, fields=None, **settings):
    """What a protocol comes to on the event engine, in Python, and on the batched engine."""
    parameters = protocol_parameters(protocol, fields or {})
    settings = {"time": 12.0, **settings}
    if "network" in settings:
        settings["network"] = NetworkParameters.model_validate(settings["network"])
    return [run_small(protocol, parameters, engine=engine, **settings) for engine in (EventEngine(), BatchedEngine())]


def assert_same(python, compiled):
    assert compiled.engine == "batched (compiled step)"
    assert np.array_equal(python.updates, compiled.updates)
    assert python.ledger.to_frame().equals(compiled.ledger.to_frame())
    for kind in ("agent", "edge"):
        for name, block in getattr(python.state, kind).items():
            np.testing.assert_allclose(getattr(compiled.state, kind)[name].values, block.values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("schedule", ["async", "rounds"])
def test_both_forms_of_a_text_do_the_same(schedule):
    python, compiled = both(Mine, {"schedule": schedule})
    assert_same(python, compiled)
    assert python.updates.max() > 5
    assert python.state.edge["count"].values.max() == python.updates.max()


@pytest.mark.parametrize("schedule", ["async", "rounds"])
def test_an_agent_without_any_neighbour_may_say_nothing(schedule):
    assert_same(*both(Quiet, {"schedule": schedule}, agents=1))


class Accumulates(Mine):
    """A sum over neighbours that is made in place."""

    @staticmethod
    def step(me):
        around = np.zeros(len(me.model))
        for rank in range(me.degree):
            add_scaled(around, me.trust[rank], heard_of(me, rank))
        add_scaled(me.model, 0.25, around)
        add_scaled(me.model, 0.5, me.model)
        add_scaled(me.gap[0], -1.0, me.target)
        me.message = 0.1 * me.model + me.target


def test_a_multiple_is_added_in_place_in_both_forms():
    python, compiled = both(Accumulates)
    assert_same(python, compiled)
    assert (python.state.edge["gap"].values.min(), python.state.agent["model"].values.min() > 0) == (
        -python.updates.max(),
        True,
    )


class Totals(Mine):
    """Running totals: what has been told in all, of which the receiver takes in what is new."""

    @staticmethod
    def step(me):
        for rank in range(me.degree):
            take_in(me.model, heard_of(me, rank), me.gap[rank])
            me.met += np.abs(me.gap[rank] - heard_of(me, rank)).sum()
        me.model += me.target
        me.message = 0.1 * me.model


def test_a_total_is_taken_in_once_in_both_forms():
    """All that an agent has is what it made itself, once a step, and the last total of each of its neighbours."""
    python, compiled = both(Totals)
    assert_same(python, compiled)
    for run in (python, compiled):
        blocks, graph = run.state.agent, run.protocol.problem.graph
        taken = np.zeros_like(blocks["model"].rows)
        np.add.at(taken, graph.tails, run.state.edge["gap"].rows)
        np.testing.assert_allclose(blocks["model"].rows, taken + run.updates[:, None], rtol=1e-12)
        assert np.any(taken)
        assert not np.any(blocks["met"].values)


def test_numbers_that_leave_their_range_become_infinite_in_both_forms():
    python, compiled = both(Overflowing, time=3.0)
    assert_same(python, compiled)
    models = python.state.agent["model"].rows
    np.testing.assert_array_equal(models, np.broadcast_to(python.updates[:, None], models.shape))


def test_the_protocol_of_the_readme_is_compiled_and_does_what_its_python_does():
    (text,) = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    path = Path(__file__).with_name("readme_protocol_.py")
    assert len(text.strip().splitlines()) <= 28
    path.write_text(text)
    try:
        space: dict = {"__name__": "readme_protocol_"}
        exec(compile(text, str(path), "exec"), space)
        assert_same(*both(space["Mine"], network={"loss": 0.2, "latency": {"kind": "exponential", "mean": 0.3}}))
    finally:
        path.unlink()


class Quiet(Mine):
    """Says nothing at every third step, and falls silent at its seventh."""

    @staticmethod
    def step(me):
        me.model += 1.0
        if me.updates % 3 != 2:
            me.message = me.model
        return me.updates >= 6


class Ends(Mine):
    """Falls silent without a word at its third step, which then is none."""

    @staticmethod
    def step(me):
        if me.updates == 2:
            return True
        me.model += 1.0
        me.message = me.model
        return False


@pytest.mark.parametrize("schedule", ["async", "rounds", {"kind": "rounds", "patience": 1.0}])
@pytest.mark.parametrize("loss", [0.0, 0.2])
@pytest.mark.parametrize(("protocol", "last"), [(Quiet, 7), (Ends, 2)])
def test_a_step_that_assigns_no_message_sends_none_and_one_that_returns_true_is_the_last(
    protocol, last, schedule, loss
):
    python, compiled = both(protocol, {"schedule": schedule}, network={"loss": loss}, time=40.0)
    assert_same(python, compiled)
    assert (python.updates == last).all()
    assert python.traffic == compiled.traffic


class Several(Mine):
    """Two kinds of messages of different widths, one of which differs from neighbour to neighbour."""

    traits = Traits(trigger="round", inbox="per_round")

    def layout(self):
        p = self.problem.task.dimension
        return Layout(
            agent={"model": p, "seen": 1},
            edge={"share": 2 * p},
            messages={
                "start": MessageKind(p, "model"),
                "share": MessageKind(2 * p, addressed=True, vectors=2),
                "sum": MessageKind(1),
            },
        )

    def start(self, view, out):
        view.state["model"][:] = view.agent
        out.send("start", view.state["model"], out.public("a number"))

    def constants(self):
        return Constants()

    @staticmethod
    def step(me):
        p = len(me.model)
        for rank in range(me.degree):
            if me.was_heard_share[rank]:
                me.seen += me.heard_share[rank].sum() + me.heard_sum[rank, 0]
            me.share[rank, :p] = me.model * (rank + 1)
            me.share[rank, p:] = me.heard_start[rank] + me.updates
        me.model = 0.5 * me.model - 0.01 * local_gradient(me, me.model)
        if me.updates % 3 != 1:
            me.message_share = me.share
        if me.updates % 2 == 0:
            me.message_sum = me.seen / 100.0
        return me.updates >= 7


@pytest.mark.parametrize("network", [{}, {"loss": 0.3}, {"latency": {"kind": "exponential", "mean": 0.4}}])
@pytest.mark.parametrize("schedule", ["rounds", {"kind": "rounds", "patience": 1.5}])
def test_steps_in_rounds_send_several_kinds_and_something_else_to_every_neighbour(network, schedule):
    python, compiled = both(Several, {"schedule": schedule}, network=network, time=60.0)
    assert_same(python, compiled)
    assert (python.updates == 7).all()
    assert python.traffic == compiled.traffic
    for kind in ("start", "sum"):
        (told, known), (expected, expected_known) = compiled.transport.told(kind), python.transport.told(kind)
        assert np.array_equal(known, expected_known)
        np.testing.assert_allclose(told[known], expected[known], rtol=1e-12)
    assert np.ptp(python.state.agent["seen"].values) > 0.0


class Tells(CoordinateDescent):
    """Draws its noise at its first step, and none later."""

    @staticmethod
    def step(me):
        gradient = local_gradient(me, me.model)
        if me.updates == 0:
            gradient = perturbed(me, gradient)
        me.model = 0.9 * me.model - 0.1 * gradient
        me.message = me.model


def test_what_leaves_without_noise_that_was_to_be_drawn_is_charged_as_plain():
    python, compiled = both(Tells, {"mu": 0.5, "privacy": NOISE})
    assert_same(python, compiled)
    charged = python.ledger.to_frame()
    assert {"laplace", "none"} == set(charged["mechanism"])
    assert np.isinf(compiled.ledger.epsilon("verified", 1e-5)).any()


class TwiceNoisy(CoordinateDescent):
    """Draws twice a step."""

    @staticmethod
    def step(me):
        me.model -= 0.1 * (perturbed(me, local_gradient(me, me.model)) + perturbed(me, me.model))
        me.message = me.model


def test_noise_that_is_drawn_twice_is_charged_twice():
    python, compiled = both(TwiceNoisy, {"mu": 0.5, "privacy": NOISE})
    assert_same(python, compiled)
    counts = python.ledger.to_frame().set_index("agent")["count"]
    alone = python.setting.graph.degrees == 0
    for agent, count in counts.items():
        assert count == 2 * python.updates[agent]
        assert not alone[agent]


def test_a_budget_that_counts_draws_of_a_text_that_may_draw_twice_runs_in_python():
    budget = {"epsilon": 20.0, "delta": 1e-3, "by": "advanced_composition"}
    privacy = {key: value for key, value in NOISE.items() if key != "multiplier"} | {"budget": budget, "updates": 6}
    python, batched = both(TwiceNoisy, {"mu": 0.5, "privacy": privacy})
    assert "Python step, because its text may draw noise more than once in a step" in batched.engine
    assert python.ledger.to_frame().equals(batched.ledger.to_frame())


class TellsNoisyStart(CoordinateDescent):
    """Its start is a release like those of its steps, and counts among them."""

    def start(self, view, out):
        super().start(view, out)
        out.sent.clear()
        release = self.step_noise.release(view)
        noisy = release.perturb(view.state["model"], rng=view.stream("noise"))
        out.send("model", noisy, release)


def test_a_start_that_was_told_is_no_longer_there_for_steps():
    budget = {"epsilon": 20.0, "delta": 1e-3, "by": "advanced_composition"}
    privacy = {key: value for key, value in NOISE.items() if key != "multiplier"} | {"budget": budget, "updates": 6}
    python, compiled = both(TellsNoisyStart, {"mu": 0.5, "privacy": privacy}, time=30.0)
    assert_same(python, compiled)
    assert python.updates.min() == 5


def plain(me):
    gradient = local_gradient(me, me.model)
    me.model -= gradient


def at_once(me):
    me.model -= 0.1 * local_gradient(me, me.model)


def moved(me):
    me.model += 1.0
    me.model -= local_gradient(me, me.model)


def moved_by_another_name(me):
    model = me.model
    model += 1.0
    me.model -= local_gradient(me, me.model)


def moved_by_a_helper(me):
    moved(me)
    me.model -= local_gradient(me, me.model)


def moved_in_the_same_line(me):
    me.model -= np.float64(changed(me.model)) * local_gradient(me, me.model)


def changed(model):
    model += 1.0
    return 1.0


def moved_by_a_word_of_the_same_name(me):
    local_gradient = moved
    me.model -= local_gradient(me, me.model)


def moved_in_place(me):
    np.add(me.model, 1.0, me.model)
    me.model -= local_gradient(me, me.model)


def moved_by_a_walrus(me):
    me.model -= 0.1 * changed(them := me.model) * local_gradient(me, me.model) + them


def moved_by_another_me(me):
    other = me
    other.model += 1.0
    me.model -= local_gradient(me, me.model)


def moved_afterwards(me):
    me.model -= 0.5 * me.model + me.alpha * local_gradient(me, me.model)
    moved(me)


def again_and_again(me):
    for _ in range(2):
        me.model -= local_gradient(me, me.model)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (plain, True),
        (at_once, True),
        (CoordinateDescent.step, True),
        (moved, False),
        (moved_by_another_name, False),
        (moved_by_a_helper, False),
        (moved_in_the_same_line, False),
        (moved_by_a_word_of_the_same_name, False),
        (moved_in_place, False),
        (moved_by_a_walrus, False),
        (moved_by_another_me, False),
        (again_and_again, False),
        (moved_afterwards, True),
    ],
)
def test_the_loss_is_noted_only_at_the_model_that_a_step_finds(text, found):
    assert notes_found_model(Text.of(text)) is found


class PrivatePairs(Mine):
    """Draws in both halves of an exchange."""

    Parameters = CoordinateDescent.Parameters
    traits = Traits(exchange="pairwise")

    def prepare(self):
        self.step_noise = GradientNoise(self.parameters.privacy, self.problem.task)

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"request": MessageKind(p), "reply": MessageKind(p)})

    def constants(self):
        return Constants()

    def start(self, view, out):
        """Begin at zero."""

    @staticmethod
    def request(me, partner):
        me.message = perturbed(me, me.model)

    @staticmethod
    def respond(me, partner, heard):
        me.message = perturbed(me, me.model)
        me.model = (me.model + heard) / 2

    @staticmethod
    def complete(me, partner, heard):
        me.model = (me.model + heard) / 2


def test_draws_within_an_exchange_run_in_python():
    fields = {"kind": "coordinate_descent", "privacy": NOISE}
    python, batched = both(PrivatePairs, fields)
    assert batched.engine == "batched (Python step, because draws within an exchange have no compiled form)"
    assert np.array_equal(python.state.agent["model"].values, batched.state.agent["model"].values)


class ShortPairs(PrivatePairs):
    """A response that nobody tells what was heard."""

    @staticmethod
    def respond(me, partner):
        """Take too little."""
        me.message = me.model


def test_a_text_that_takes_something_else_is_refused_before_the_first_step_with_its_line():
    said = r"test_steps\.py:\d+, `def respond\(.*`: takes \(me, partner\); admissible: respond\(me, partner, heard\)"
    for engine in (EventEngine(), BatchedEngine()):
        with pytest.raises(InputError, match=said):
            run_small(ShortPairs, protocol_parameters(ShortPairs, {}), engine=engine)


def noisy(me):
    """A helper that draws."""
    return perturbed(me, me.model)


def in_a_loop(me):
    """Calls a helper that draws, again and again."""
    for _ in range(3):
        me.model += noisy(me)


def by_another_name(me):
    """Draws under another name."""
    other = perturbed
    me.model += other(me, other(me, me.model))


def once(me):
    """Draws once, by a helper, and has a loop beside it."""
    for rank in range(me.degree):
        me.model[0] += rank
    me.model += noisy(me)


def endless(me):
    """Calls itself."""
    endless(me)
    me.model += noisy(me)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        (noisy, 1),
        (once, 1),
        (in_a_loop, math.inf),
        (by_another_name, math.inf),
        (endless, math.inf),
        (TwiceNoisy.step, 2),
        (Mine.step, 0),
    ],
)
def test_how_often_a_text_draws_at_most_is_read_from_it_and_its_helpers(text, most):
    assert most_draws(text) == most


def variant(text, **space):
    """A class whose step is made of these lines, in a file of its own."""
    lines = "\n".join("    " + line for line in text.strip().splitlines())
    source = f"def step(me):\n{lines}\n"
    path = Path(variant.folder) / f"text{len(list(Path(variant.folder).iterdir()))}.py"
    path.write_text(source)
    made = {
        "np": np,
        "math": math,
        "scipy": scipy,
        "add_scaled": add_scaled,
        "average": average,
        "local_gradient": local_gradient,
        "loss_gradient": loss_gradient,
        "slopes": slopes,
        "take_in": take_in,
        "TABLE": TABLE,
        "ARRAY": np.array(TABLE),
        **space,
    }
    exec(compile(source, str(path), "exec"), made)
    return type("Variant", (Mine,), {"step": staticmethod(made["step"])})


@pytest.fixture(autouse=True)
def _folder(tmp_path):
    variant.folder = tmp_path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "me.model -= me.stepsize",
            r"text0.py:2, `me.model -= me.stepsize`: an agent has no 'stepsize'; it has .*step_size",
        ),
        (
            "me.model -= stepsize * me.model",
            r"text0.py:2, `me.model -= .*`: 'stepsize' is not defined",
        ),
        ("me.weights[0] = 1.0", r"text0.py:2, .*: me.weights is not for a step to change; it may assign count, gap, m"),
        ("me.features = me.features", r"me.features is not for a step to change"),
        ("me.model = me.message", r"me.message is assigned as a whole, and never read"),
        ("me.message += me.model", r"me.message is assigned as a whole, and never read"),
        ("me.message[0] = 1.0", r"me.message is assigned as a whole, and never read"),
        ("me.model *= TABLE[0]", r"'TABLE' is list outside the step, which others may change; give it by constants"),
        ("me.model[:2] = ARRAY", r"'ARRAY' is ndarray outside the step"),
        ("global SHARE\nSHARE = 1", r"a step cannot change SHARE"),
    ],
)
def test_what_no_step_can_do_is_refused_in_one_sentence_on_both_engines(text, said):
    kind = variant(text)
    for engine in (EventEngine(), BatchedEngine()):
        with pytest.raises(InputError, match=said):
            run_small(kind, protocol_parameters(kind, {}), engine=engine)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("me.model = scipy.special.expit(me.model)\nme.message = me.model", "text0.py:2"),
        ("seen = {'a': me.model, 1: 2}\nme.message = me.model", "text0.py:2"),
        ("g = 0\nif me.degree > 2:\n    g = average(me)\nme.model -= g\nme.message = me.model", "two types"),
        ("print(f'{me.model[0]:.3f}')\nme.message = me.model", "text0.py:2"),
        ("me.message = sum(w * me.model for w in me.weights)", "text0.py:2, .*no generators; a list in brackets has"),
        ("x = me.model\ndel x\nme.message = me.model", "text0.py:3, `del x`: compiled steps have no del"),
        ("if (n := me.degree) > 0:\n    me.met = n\nme.message = me.model", "text0.py:2, .*numba cannot tell of which"),
        ("me.met = 2**70 % 7\nme.message = me.model", r"text0.py:2, .*: compiled steps have whole numbers of 64 bits"),
        ("x = 2**63\nme.met = x % 7\nme.message = me.model", "text0.py:2, .*64 bits"),
    ],
)
def test_what_numba_cannot_compile_runs_as_python_and_says_which_line_stopped_it(text, why):
    kind = variant(text)
    python, batched = both(kind, time=3.0)
    assert batched.engine.startswith("batched (Python step, because ")
    assert re.search(why, batched.engine)
    assert "\n" not in batched.engine
    assert len(batched.engine) < 400
    assert batched.remarks
    for name in ("model", "met"):
        assert np.array_equal(python.state.agent[name].values, batched.state.agent[name].values)


def halved(me, vector, times):
    """Calls itself."""
    return vector if times == 0 else halved(me, vector / 2, times - 1)


def test_helpers_that_call_themselves_run_in_python_and_say_so():
    kind = variant("me.model = halved(me, me.model + 1.0, 3)\nme.message = me.model", halved=halved)
    python, batched = both(kind, time=3.0)
    assert "halved calls itself; compiled steps have no recursion" in batched.engine
    assert re.search(r"test_steps.py:\d+, `def halved", batched.engine)
    assert np.array_equal(python.state.agent["model"].values, batched.state.agent["model"].values)


def test_whole_numbers_of_64_bits_are_compiled():
    text = "me.met = (2**62 - 1) % 1000 + -(2**62) % 7\nme.message = me.model"
    assert_same(*both(variant(text), time=3.0))


@pytest.mark.parametrize(
    ("text", "line", "error"),
    [
        ("me.message = me.model\nif me.updates == 2:\n    me.model[len(me.model)] = 1.0", 4, "IndexError"),
        ("me.message = me.model\nme.model[:2] = np.linalg.solve(np.zeros((2, 2)), np.ones(2))", 3, "LinAlgError"),
        ("me.message = me.heard[me.degree]", 2, "IndexError"),
        ("me.message = np.zeros(len(me.model) + 1)", 2, "ValueError"),
        ("me.message = me.model\nadd_scaled(me.model, 0.5, me.model[:1])", 3, "ValueError: what is added to a sum"),
        ("me.message = me.model\ntake_in(me.model, me.target, me.target[:1])", 3, "ValueError: a sum, the total"),
        ("me.model = np.zeros(len(me.model) + 1)\nme.message = me.model", 2, "ValueError"),
        ("me.message = me.model / (me.updates - 2)\nraise ValueError('no such luck')", 3, "ValueError: no such luck"),
    ],
)
def test_a_text_that_fails_says_where_on_both_engines(text, line, error):
    kind = variant(text)
    said = []
    for engine in (EventEngine(), BatchedEngine()):
        with pytest.raises(StepFailure) as failure:
            run_small(kind, protocol_parameters(kind, {}), engine=engine, time=12.0)
        said.append(str(failure.value))
        assert re.search(r"agent .* at time .*, after \d+ updates: the step of Variant failed", said[-1])
        assert error in said[-1]
        assert "\n" not in said[-1]
    assert f"text0.py:{line}, `" in said[0] or "ValueError" in error
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("The 'with (context manager) as (variable):' construct is not supported.. Raised from None", "'with'"),
        ("Use of unsupported opcode (IMPORT_NAME) found. Raised from {file} (4)", "import"),
        ("format spec in f-strings not supported yet. Raised from {file} (4)", "not supported yet"),
    ],
)
def test_refusals_that_name_no_line_of_their_own_end_up_at_the_author_s(tmp_path, error, said):
    file = tmp_path / "opens.py"
    file.write_text(
        "def step(me):\n    me.model = me.model\n    # a file\n    with open('x') as handle: handle.read()\n"
    )
    spec = importlib.util.spec_from_file_location("opens", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sentence = sentence_of(TypeError(error.format(file=file)), [Text.of(module.step)])
    assert sentence.startswith("opens.py:4, `with open('x')")
    assert said in sentence
    assert "Raised" not in sentence
