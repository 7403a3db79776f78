"""Runs whose steps are made in the same batches have the bits that each has alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.protocols.steps import (
    Every,
    average,
    batched,
    choice,
    draw_rows,
    loss_gradient,
    normal,
    segment_sum,
    uniform,
)
from hushnet.simulator.contract.bench import protocol_parameters
from hushnet.simulator.engine.batched.planned_batches import StepsInBatches
from hushnet.simulator.engine.batched.side_by_side import Apart, run_side_by_side
from hushnet.simulator.recording.recorder import Recorder

from ..protocols.random_worlds import assert_same, joining, random_setting
from ..protocols.test_engines_agree import CASES
from ..protocols.test_plans import Alone, Parameters, Together
from .driving import drive, driver_of, fast_world


def side_by_side(worlds):
    """Run worlds together."""
    run_side_by_side([driver_of(world) for world in worlds])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("protocol", "fields", "losses"), CASES)
def test_runs_side_by_side_are_those_that_they_are_alone(protocol, fields, losses, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    given = dict(fields(seed, rng))
    spec = protocol_parameters(protocol, {k: v(rng, 6) if callable(v) else v for k, v in given.items()})
    world = {"loss": losses[seed % len(losses)], "easy": bool(seed % 2), "dimension": 3, "agents": 6}
    settings = [random_setting(10 * seed + k, **world)() for k in range(4)]
    start = {"start": settings[0].network.start}
    settings = [replace(one, network=one.network.model_copy(update=start)) for one in settings]

    def made():
        recorders = [Recorder(("objective", "traffic"), protocol="p", seed=k) for k in range(4)]
        both = zip(settings, recorders, strict=True)
        worlds = [fast_world(one, protocol, spec, recorder=its, every=2.5) for one, its in both]
        return worlds, recorders

    (alone, seen_alone), (together, seen) = made(), made()
    if protocol is PushSumDualAveraging and together[0].ledger.limited:
        assert all(world.engine.startswith("event, because") for world in together)
        return
    for one in alone:
        drive(one)
    made_alone, make = [], StepsInBatches._make
    monkeypatch.setattr(
        StepsInBatches, "_make", lambda self, total, plain: made_alone.append(total) or make(self, total, plain)
    )
    side_by_side(together)
    assert sum(made_alone) < sum(world.activations for world in together) / 4
    for one, other in zip(together, alone, strict=True):
        assert_same(one, other)
        assert one.now == other.now
    for one, other in zip(seen, seen_alone, strict=True):
        assert one.trace().equals(other.trace())


def worlds_of(*specs, **fields):
    """Worlds of coordinate descent that differ in what is given alone."""
    make = random_setting(1, **{"loss": "logistic", "easy": True, "dimension": 3, "agents": 6, **fields})
    return [fast_world(make(), CoordinateDescent, protocol_parameters(CoordinateDescent, one)) for one in specs]


@pytest.mark.parametrize(
    ("worlds", "why"),
    [
        (lambda: worlds_of({"mu": 0.5}, {"mu": 0.6}), "parameters or constants differ"),
        (lambda: [*worlds_of({"mu": 0.5}), *worlds_of({"mu": 0.5}, dimension=2)], "differ in width"),
        (lambda: [*worlds_of({"mu": 0.5}), *worlds_of({"mu": 0.5}, loss="squared")], "differ in code"),
    ],
)
def test_runs_of_which_steps_may_read_something_else_stay_apart(worlds, why):
    with pytest.raises(Apart, match=why):
        side_by_side(worlds())


class Reads(Alone):
    """Steps that read and draw whatever a batch may, and send at every third step."""

    asks_what_is_new = True

    def sends(self):
        return {"model": Every(3)}

    def most_steps(self):
        return 3.0 + np.arange(self.problem.task.agents)

    @staticmethod
    @batched
    def step(me):
        shown = segment_sum(me, np.where(me.is_new, 1.0, 0.5) * np.exp(-np.minimum(me.age, 9.0)))
        drawn = normal(me, 3) + uniform(me) + choice(me, 1 + me.degree) + me.rows * me.regularisation
        rows = me.where(me.rows > 0)
        if len(rows.agent):
            rows.model = rows.model - 0.1 * loss_gradient(rows, rows.model, draw_rows(rows, 1))
        me.model = (me.model + average(me)) / 2 + 0.1 * shown + 0.01 * drawn
        if me.updates[0] % 3 == 0:
            me.message = me.model


@pytest.mark.parametrize("schedule", ["async", "rounds"])
@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_batch_may_read_or_draw_is_of_its_own_run(schedule, seed):
    """Of runs with unequally many agents, some of whom join late."""
    world = {"loss": "logistic", "easy": True, "dimension": 3}
    makes = [random_setting(9 * seed + k, agents=4 + k, **world) for k in range(4)]
    settings = [(joining(make) if seed % 2 and schedule == "async" else make)() for make in makes]
    start = {"start": settings[0].network.start}
    settings = [replace(one, network=one.network.model_copy(update=start)) for one in settings]
    alone, together = ([fast_world(one, Reads, Parameters(schedule=schedule)) for one in settings] for _ in range(2))
    for one in alone:
        drive(one)
    side_by_side(together)
    for one, other in zip(together, alone, strict=True):
        assert_same(one, other)
    assert len({one.activations for one in together}) > 1


class Explodes(Together):
    """Steps that leave all bounds."""

    @staticmethod
    @batched
    def step(me):
        me.model = 1e60 * (me.model + 1.0)
        me.message = me.model


class Fails(Together):
    """Steps that fail after a while."""

    @staticmethod
    @batched
    def step(me):
        if (me.updates > 3).any():
            raise ValueError("too many")
        me.message = me.model


@pytest.mark.parametrize(
    ("kind", "why"), [(Explodes, "diverge|became"), (Fails, "a step of one of them failed|a step ends it")]
)
def test_runs_of_which_one_ends_with_an_error_are_to_be_made_apart(kind, why):
    make = random_setting(1, loss="logistic", easy=True, dimension=3, agents=6)
    with pytest.raises(Apart):
        side_by_side([fast_world(make(), kind, Parameters()) for _ in range(3)])
