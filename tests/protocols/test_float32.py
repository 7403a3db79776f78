"""Models that agents keep and send in float32: as those in float64 up to rounding, with half of the memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hushnet.agents.errors import Divergence, InputError
from hushnet.simulator.api import run
from hushnet.simulator.engine.selection import BatchedEngine, EventEngine
from hushnet.simulator.language.loading import load
from hushnet.simulator.limits.memory import expected_bytes
from hushnet.simulator.replay.chosen import chosen
from hushnet.simulator.replay.rerun import rerun

from ..agents.test_models import needs_torch
from ..benchmarks.models import world_of
from ..engine.driving import drive
from .test_models_learnt import ANY, CONVEX, scenario

ENGINES = {"batched": BatchedEngine, "one by one": EventEngine}


KINDS = ["perceptron", pytest.param("torch", marks=needs_torch)]


def of(precision, hidden=3, kind="perceptron"):
    own = {"hidden": [hidden]} if kind == "perceptron" else {"net": "net.py:Net32"}
    return {"kind": kind, **own, "precision": precision}


def arrays(world):
    """What a run has as many numbers of as models: blocks, versions of messages, and copies in inboxes."""
    blocks = [block.values for block in (*world.state.agent.values(), *world.state.edge.values())]
    return [*blocks, world.inbox.pool, *(block.values for block in world.inbox.values.values())]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_and_messages_take_half_of_the_memory_and_models_agree_up_to_rounding(engine, kind):
    given = [of(precision, kind=kind) for precision in ("float32", "float64")]
    single, double = (drive(world_of(model, engine, 6, 5)) for model in given)
    assert [one.dtype for one in arrays(single)] == [np.float32] * len(arrays(single))
    assert [2 * one.nbytes for one in arrays(single)] == [one.nbytes for one in arrays(double)]
    models = single.state.agent["model"].rows, double.state.agent["model"].rows
    np.testing.assert_allclose(*models, rtol=1e-5, atol=1e-6)
    assert (models[0] != models[1]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_have_the_same_bits(kind):
    worlds = [drive(world_of(of("float32", kind=kind), engine, 6, 5)) for engine in ENGINES]
    for name in ("model", "sent"):
        assert np.array_equal(*(world.state.agent[name].values for world in worlds))


def test_a_model_is_what_float64_makes_of_the_rounded_one_before_rounded_once():
    world = world_of({**of("float32"), "hidden": [2]}, "one by one", 6, 1)
    first = world.state.agent["model"].rows.astype(np.float64)
    task = world.setting.task
    assert np.array_equal(world.state.agent["model"].rows[0], task.first.astype(np.float32))
    vector = np.linspace(0.1, 1.0, world.setting.task.dimension)
    me = world.peers[0]
    world.protocol.steps.begin("start", me, 0, -1, 0.0)
    me.model = vector
    me.model /= 3.0
    me.send(next(iter(world.layout.messages)), me.model * 3.0)
    me.close_()
    assert np.array_equal(world.state.agent["model"].rows[0], (vector / 3.0).astype(np.float32))
    assert np.array_equal(me.sent_[0].vector, (vector / 3.0 * 3.0).astype(np.float32))
    assert np.array_equal(world.state.agent["model"].rows[1:], first[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_has_four_bytes_a_number(kind):
    sizes = []
    for precision in ("float32", "float64"):
        world = drive(world_of(of(precision, kind=kind), "batched", 6, 3))
        sent = world.transport.traffic
        sizes.append((sent.links.sent, sent.bytes.sent, world.setting.task.dimension))
    assert sizes[0] == (sizes[1][0], sizes[1][1] / 2, sizes[1][2])
    assert sizes[0][1] == 4 * sizes[0][0] * sizes[0][2]


# Not dada, which goes along the largest derivative: of nearly equal ones, rounding may choose another.
OTHERS = tuple(kind for kind in CONVEX if kind != "dada")


@pytest.mark.parametrize(("kinds", "model"), [(OTHERS, {"kind": "softmax"}), (ANY, {"kind": "perceptron"})])
def test_every_protocol_measures_what_it_does_in_float64(kinds, model, tmp_path):
    ends = []
    for precision in ("float32", "float64"):
        given = scenario(kinds, {**model, "precision": precision})
        found = run(given, out=tmp_path / precision)
        trace = found.collection.trace
        ends.append(trace.groupby(["protocol", "metric", "statistic"])["value"].last())
        assert not [one for made in found.manifests for one in made["invariants"] if one["broken"]]
    pd.testing.assert_series_equal(*ends, rtol=1e-5, atol=1e-5)


def test_a_run_is_replayed_from_its_folder(tmp_path):
    given = scenario(["ad_psgd"], of("float32"))
    found = run(given, out=tmp_path)
    (manifest,) = found.manifests
    assert "float32" in str(manifest)
    (entry,) = chosen(tmp_path)
    made = rerun(tmp_path, entry, (0.0, 12.0))
    assert all(np.array_equal(models, models.astype(np.float32)) for _, models in made.looks)


def test_a_world_is_expected_to_take_less():
    sizes = [
        expected_bytes(load(scenario(["decentralised_sgd"], of(precision, 10_000))).scenario)
        for precision in ("float32", "float64")
    ]
    assert sizes[0] < 0.6 * sizes[1]


def test_a_step_that_leaves_float32_behind_ends_the_run_on_either_engine(tmp_path):
    ends = []
    for engine in ("event", "batched"):
        given = scenario(["decentralised_sgd"], of("float32")) | {"engine": engine}
        given["task"]["loss"] = "squared"
        given["protocols"]["decentralised_sgd"]["step_size"] = 1e12
        with pytest.raises(Divergence, match=r"model became infinite after \d+ updates") as found:
            run(given, out=tmp_path / engine)
        ends.append(str(found.value))
    assert ends[0] == ends[1]


def test_a_linear_model_has_no_such_field():
    with pytest.raises(InputError, match=r"task\.model.*precision"):
        load(scenario(["decentralised_sgd"], {"kind": "linear", "precision": "float32"}))
