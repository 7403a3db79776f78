"""Models: gradients against finite differences, two classes against the logistic loss, nets of PyTorch."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.losses import LOSSES
from hushnet.agents.losses.cross_entropy import CrossEntropy
from hushnet.agents.models import MODELS
from hushnet.agents.models.torch_model import NETS
from hushnet.agents.objectives.pooled_objective import PooledObjective
from hushnet.agents.tables import Table
from hushnet.agents.tasks.task import Task
from hushnet.simulator import run
from hushnet.simulator.language.checking import Code
from hushnet.simulator.metrics.criterion_metrics import quality, trivial

COUNTS = (0, 5, 3, 5, 1)
P = 4
MADE = {
    "softmax": ({"kind": "softmax"}, "logistic", 3),
    "softmax of two": ({"kind": "softmax"}, "logistic", 2),
    "relu": ({"kind": "perceptron", "hidden": [6, 5]}, "logistic", 3),
    "tanh, two classes": ({"kind": "perceptron", "hidden": [6], "activation": "tanh"}, "logistic", 2),
    "torch": ({"kind": "torch", "net": "./net.py:Net", "precision": "float64"}, "logistic", 3),
    "torch, two classes": ({"kind": "torch", "net": "./net.py:Net", "precision": "float64"}, "logistic", 2),
    "tanh, numbers": ({"kind": "perceptron", "hidden": [3], "activation": "tanh"}, "squared", 2),
}

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch, the extra torch, is not installed")
NAMES = [pytest.param(name, marks=needs_torch) if name.startswith("torch") else name for name in MADE]
FILE = """from torch import nn

class Net(nn.Sequential):
    def __init__(self, features, outputs):
        super().__init__(nn.Linear(features, 6), nn.Tanh(), nn.Linear(6, outputs))
"""


@pytest.fixture(autouse=True)
def nets(monkeypatch):
    """The nets of this file; they are loaded when they are made."""

    def net(features, outputs):
        exec(FILE, made := {})
        return made["Net"](features, outputs)

    monkeypatch.setitem(NETS, "./net.py:Net", net)
    return net


def task_of(name, *, counts=COUNTS, seed=1):
    fields, loss, classes = MADE[name]
    kind, rng = MODELS[fields["kind"]].model_validate(fields), np.random.default_rng(seed)
    owners = np.repeat(np.arange(len(counts)), counts)
    labels = rng.integers(classes, size=len(owners)).astype(float)
    labels = 2 * labels - 1 if classes == 2 else labels
    labels = labels + (rng.normal(size=len(owners)) if loss == "squared" else 0.0)
    table = Table.from_owners(rng.normal(size=(len(owners), P)), labels, owners, len(counts))
    model, own = kind.bind(P, LOSSES[loss], classes)
    weights = np.zeros(len(counts))
    task = Task("test", list(range(len(counts))), table, table, own, weights, "accuracy", classes=classes)
    return replace(task, model=model, first=model.first(rng))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_finite_differences(name):
    task, rng = task_of(name), np.random.default_rng(2)
    table, model = task.train, task.model
    models, weights = rng.normal(size=(task.agents, model.width)), rng.uniform(0.5, 2, len(table.labels))
    value = lambda models: table.sums(  # noqa: E731
        weights * task.loss.value(model.scores(models, table.features, table.offsets), table.labels)
    )
    found = model.gradients(models, table.features, table.labels, table.offsets, task.loss, weights)
    for place in range(model.width):
        step = np.zeros(model.width)
        step[place] = 1e-6
        np.testing.assert_allclose(found[:, place], (value(models + step) - value(models - step)) / 2e-6, atol=1e-7)
    assert not found[0].any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_clipped_gradients_are_means_of_rows_that_are_scaled_one_by_one(name, norm):
    """Abadi et al. 2016, algorithm 1: the mean of g / max(1, |g| / C); rows longer and shorter than C."""
    task, rng = task_of(name), np.random.default_rng(7)
    table, model, order = task.train, task.model, {"l1": 1, "l2": 2}[norm]
    models, sums, lengths = rng.normal(size=(task.agents, model.width)), np.zeros((task.agents, model.width)), []
    bound = {"l1": 3.0, "l2": 1.0}[norm]
    for agent, count in enumerate(COUNTS):
        for row in range(table.offsets[agent], table.offsets[agent + 1]):
            one = table.features[[row]], table.labels[[row]], np.array([0, 1]), task.loss
            gradient = model.mean_gradients(models[[agent]], *one)[0]
            lengths.append(np.linalg.norm(gradient, order))
            sums[agent] += gradient / max(1.0, lengths[-1] / bound) / count
    assert min(lengths) < bound < max(lengths)
    given = table.features, table.labels, table.offsets, task.loss
    found = model.mean_gradients(models, *given, clip=(norm, bound))
    np.testing.assert_allclose(found, sums, rtol=0, atol=1e-12)
    among = model.mean_gradients(models[[1, 1, 3]], *_rows_of(table, [1, 3, 1]), task.loss, clip=(norm, bound))
    alone = model.mean_gradients(models[[1]], *_rows_of(table, [3]), task.loss, clip=(norm, bound))
    assert among[1].tobytes() == alone[0].tobytes()


def _rows_of(table, agents):
    """Features, labels and beginnings of the rows of some agents, one after the other."""
    shards = [table.shard(agent) for agent in agents]
    starts = np.concatenate(([0], np.cumsum([len(shard) for shard in shards])))
    return np.concatenate([one.features for one in shards]), np.concatenate([one.labels for one in shards]), starts


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1e-200, 1e160, 1e300, np.inf, np.nan])
def test_a_row_out_of_the_ordinary_moves_a_clipped_mean_by_the_bound_at_most(name, size):
    task, rng = task_of(name, counts=(3,)), np.random.default_rng(8)
    model, table = task.model, task.train
    models = rng.normal(size=(1, model.width))
    features = table.features.copy()
    features[1] *= size
    clip, loss = ("l2", 0.5), task.loss
    for label in np.unique(table.labels):
        labels = table.labels.copy()
        labels[1] = label
        both = model.mean_gradients(models, features, labels, np.array([0, 3]), loss, clip=clip)
        others = model.mean_gradients(models, features[[0, 2]], labels[[0, 2]], np.array([0, 2]), loss, clip=clip)
        assert np.linalg.norm(3 * both - 2 * others) <= 0.5 * (1 + 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_has_the_same_bits_alone_and_among_others(name):
    task, rng = task_of(name, counts=(7, 7, 7, 2, 7)), np.random.default_rng(3)
    models = rng.normal(size=(task.agents, task.dimension))
    table = task.train
    among = task.model.mean_gradients(models, table.features, table.labels, table.offsets, task.loss)
    scores = task.model.scores(models, table.features, table.offsets)
    for agent in range(task.agents):
        shard, rows = table.shard(agent), slice(*table.offsets[agent : agent + 2])
        alone, starts = models[agent : agent + 1], np.array([0, len(shard)])
        own = task.model.mean_gradients(alone, shard.features, shard.labels, starts, task.loss)
        assert own.tobytes() == among[agent].tobytes()
        assert task.model.scores(alone, shard.features, starts).tobytes() == scores[rows].tobytes()


def test_softmax_of_two_classes_is_the_logistic_loss_of_the_difference():
    task = task_of("softmax of two")
    plain = replace(task, model=None, first=None, loss=LOSSES["logistic"])
    models = np.random.default_rng(4).normal(size=(task.agents, 2 * P))
    differences = models.reshape(-1, P, 2) @ [-1.0, 1.0]
    ours, theirs = PooledObjective.mean_of_agents(task, 0.1), PooledObjective.mean_of_agents(plain, 0.05)
    penalties = (0.05 * np.sum(models.mean(axis=0) ** 2), 0.025 * np.sum(differences.mean(axis=0) ** 2))
    assert ours.value(models) - penalties[0] == pytest.approx(theirs.value(differences) - penalties[1], rel=1e-13)
    np.testing.assert_array_equal(quality(task, models), quality(plain, differences))
    # With opposite weights of the classes, |w|^2 is half of the difference's square.
    (best, least), (difference, lowest) = ours.minimise(), theirs.minimise()
    np.testing.assert_allclose(best[0].reshape(P, 2) @ [-1.0, 1.0], difference[0], rtol=1e-9)
    assert least == pytest.approx(lowest, rel=1e-12)


def test_the_minimum_of_softmax_regression_is_found_to_rounding():
    objective = PooledObjective.mean_of_agents(task_of("softmax"), 0.01)
    best, _ = objective.minimise()
    assert objective.has_minimum
    assert np.abs(objective.gradient(best)).max() < 1e-14
    assert objective.is_minimum(best)
    assert not PooledObjective.mean_of_agents(task_of("relu"), 0.01).has_minimum


def test_cross_entropy_holds_scores_that_overflow():
    loss, scores, labels = CrossEntropy(), np.array([[1e4, 0.0, -1e4], [0.0, 700.0, 800.0]]), np.array([1.0, 2.0])
    np.testing.assert_allclose(loss.value(scores, labels), [1e4, 0.0], atol=1e-40)
    np.testing.assert_allclose(loss.slope(scores, labels), [[1.0, -1.0, 0.0], [0.0, 0.0, 0.0]], atol=1e-40)


def test_first_parameters_are_never_zeros_of_a_net_and_are_within_their_bounds():
    """Glorot and Bengio 2010, (16): variance 2 / (inputs + outputs), here of 40,000 weights; biases begin with 0."""
    model, _ = (
        MODELS["perceptron"].model_validate({"kind": "perceptron", "hidden": [200]}).bind(200, LOSSES["logistic"], 2)
    )
    first = model.first(np.random.default_rng(5))
    weights, biases = first[:40_000], first[40_000:40_200]
    assert np.abs(weights).max() <= np.sqrt(6 / 400)
    assert np.mean(weights**2) == pytest.approx(2 / 400, rel=0.03)  # 5 deviations: 5 * .894 / 200
    assert not biases.any()


def test_trivial_predictions_of_three_classes_are_majorities():
    task = task_of("softmax", counts=(4, 0, 2))
    labels = np.array([2.0, 2.0, 0.0, 1.0, 0.0, 0.0])
    task = replace(task, train=replace(task.train, labels=labels), test=replace(task.test, labels=labels))
    assert trivial(task) == {"majority class": pytest.approx((0.25 + 1) / 2), "own majority class": pytest.approx(0.75)}


@pytest.mark.parametrize(
    ("fields", "loss", "classes", "sentence"),
    [
        ({"kind": "linear"}, "logistic", 3, "a linear model tells two classes, and the labels have 3"),
        ({"kind": "softmax"}, "squared", 2, "'squared' is no loss of a score for each class"),
        ({"kind": "perceptron"}, "hinge", 4, "'hinge' is no loss of a score for each class"),
    ],
)
def test_a_model_without_such_a_loss_says_so(fields, loss, classes, sentence):
    with pytest.raises(InputError, match=sentence):
        MODELS[fields["kind"]].model_validate(fields).bind(P, LOSSES[loss], classes)


@needs_torch
def test_a_net_of_pytorch_has_the_scores_and_gradients_of_a_perceptron_with_its_parameters():
    ours, theirs = task_of("tanh, two classes"), task_of("torch, two classes")
    rng, table = np.random.default_rng(6), ours.train
    models = rng.normal(size=(ours.agents, ours.model.width))
    first, rest = models[:, : 6 * P].reshape(-1, P, 6), models[:, 6 * P :]
    moved = np.concatenate((first.transpose(0, 2, 1).reshape(len(models), -1), rest), axis=1)
    starts, given = table.offsets, (table.features, table.labels, table.offsets, ours.loss)
    np.testing.assert_allclose(
        theirs.model.scores(moved, table.features, starts),
        ours.model.scores(models, table.features, starts),
        rtol=1e-12,
    )
    one, other = ours.model.mean_gradients(models, *given), theirs.model.mean_gradients(moved, *given)
    turned = other[:, : 6 * P].reshape(-1, 6, P).transpose(0, 2, 1).reshape(len(models), -1)
    np.testing.assert_allclose(np.concatenate((turned, other[:, 6 * P :]), axis=1), one, rtol=1e-10, atol=1e-15)


@needs_torch
@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        ("nn.Linear(f, o + 1)", r"gives scores of the shape \(2, 4\) for 2 rows of 4 features; admissible: \(2, 3\)"),
        ("nn.Sequential(nn.BatchNorm1d(f), nn.Linear(f, o))", "has buffers"),
        ("nn.ReLU()", "has no parameters"),
        ("None", "makes no torch.nn.Module, but NoneType"),
    ],
)
def test_a_net_that_agents_cannot_learn_says_why(made, sentence, monkeypatch):
    from torch import nn

    monkeypatch.setitem(NETS, "./net.py:Net", eval(f"lambda f, o: {made}", {"nn": nn}))
    with pytest.raises(InputError, match=sentence):
        task_of("torch")


@needs_torch
def test_a_device_that_is_not_there_is_one_sentence(monkeypatch):
    model, *rest = MADE["torch"]
    monkeypatch.setitem(MADE, "torch", ({**model, "device": "nowhere"}, *rest))
    with pytest.raises(InputError, match=r"PyTorch has none here for float64 \(.+\); cpu is always there"):
        task_of("torch")


def test_code_that_is_not_trusted_and_a_missing_pytorch_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"needs PyTorch, .*: pip install 'hushnet\[torch\]'"):
        task_of("torch")
    (tmp_path / "net.py").write_text(FILE)
    with pytest.raises(InputError, match=r"needs PyTorch"):
        Code(base=tmp_path, trust_code=True).net("./net.py:Net")
    monkeypatch.delitem(NETS, "./net.py:Net")
    with pytest.raises(InputError, match=r"the code in \./net\.py is run only with --trust-code"):
        task_of("torch")


@needs_torch
def test_protocols_learn_a_net_of_a_file_alike_on_both_engines_and_in_two_processes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(FILE)
    given = {
        "schema": 1,
        "scenario": "net",
        "task": {"kind": "digits", "split": {"kind": "even", "agents": 6}, "model": MADE["torch"][0]},
        "topology": {"kind": "ring"},
        "protocols": {kind: {"kind": kind, "batch": 8} for kind in ("decentralised_sgd", "gossip_learning")},
        "stop": {"updates": 20},
        "record": {"every": 5, "metrics": ["accuracy", "test_loss"]},
        "seeds": 2,
    }
    with pytest.raises(InputError, match="run only with --trust-code"):
        run(given, out="untrusted")
    traces = [
        run({**given, "engine": engine}, out=engine, trust_code=True, jobs=jobs).collection.trace["value"].to_numpy()
        for engine, jobs in (("event", 1), ("batched", 2))
    ]
    assert traces[0].tobytes() == traces[1].tobytes()
    assert np.unique(traces[0]).size > 8
