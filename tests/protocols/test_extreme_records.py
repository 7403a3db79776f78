"""One extreme record among ordinary ones ends no private run: everything is finite that anybody gets to know."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hushnet.agents.errors import Divergence, InputError
from hushnet.agents.losses import LOSSES
from hushnet.agents.tables import Table
from hushnet.protocols import catalog
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.simulator.contract.bench import protocol_parameters, small_graph, small_task
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.stop_condition import TIME_UP
from hushnet.simulator.world.world import World

from ..engine.driving import drive
from .columns import split_task, star
from .worlds import Watcher, setting_of

GRADIENTS = {"mechanism": "gaussian", "multiplier": 3.0, "clip": 1.0, "updates": 20}
LAPLACE = {**GRADIENTS, "mechanism": "laplace"}
ONCE = {"mechanism": "gamma", "multiplier": 3.0, "clip": 1.0}
WARM = {"kind": "private_propagation", "epsilon": 0.5}
PRIVATE = {
    "coordinate_descent": {"privacy": LAPLACE, "radius": 1.0},
    "coordinate_descent, warm": {"privacy": LAPLACE, "radius": 1.0, "start": WARM},
    "model_propagation": {"privacy": ONCE},
    "model_propagation, closed form": {"privacy": ONCE, "closed_form": True},
    "local_dp": {"privacy": {**ONCE, "mechanism": "laplace"}},
    "dual_averaging": {"privacy": GRADIENTS},
    "dual_averaging, poisson": {"privacy": GRADIENTS, "sampling": "poisson", "batch": 2},
    "push_sum_dual_averaging": {"privacy": GRADIENTS, "sampling": "full"},
    "feature_sharing": {"privacy": GRADIENTS},
    "feature_sharing, gauss_seidel": {"privacy": GRADIENTS, "order": "gauss_seidel"},
    "stale_feature_sharing": {"privacy": GRADIENTS},
}
"""Private protocols that bound contributions themselves; perturbed ADMM relies on bounds of the task's definition."""
EXTREMES = {"row": (1e160, 1.0), "signs": (np.array([1.7e308, -1.7e308, 1e155]), -1.0), "label": (0.5, 1e308)}


SQUARED = ("coordinate_descent", "local_dp", "dual_averaging", "dual_averaging, poisson", "push_sum_dual_averaging")
"""Those that take the squared loss, whose slope is as large as a label."""


class Sent(Watcher):
    """Whether everything that was sent is finite."""

    finite = True

    def sent(self, world, message, delay, lost):
        self.finite &= bool(np.isfinite(message.vector).all())


def world_of(key, extreme, recorder=None, log=None, *, noise=3.0, protocol=None) -> World:
    """A world in which agent 3, or the first row of split columns, is extreme."""
    name = key.partition(",")[0]
    fields = {**PRIVATE[key], "privacy": {**PRIVATE[key]["privacy"], "multiplier": noise}}
    protocol, columns = protocol or catalog.resolve(name), "feature" in name
    task = split_task() if columns else small_task(empty=False)
    features, labels = task.train.features.copy(), task.train.labels.copy()
    if extreme is not None:
        place = 0 if columns else int(task.train.offsets[3])
        features[place, :3], labels[place] = EXTREMES[extreme]
    train, loss = Table(features, labels, task.train.offsets), "squared" if extreme == "label" else "logistic"
    task = dataclasses.replace(task, train=train, bounds={}, loss=LOSSES[loss])
    setting = setting_of(task=task, graph=star(task) if columns else small_graph(), seed=4)
    parameters = protocol_parameters(protocol, fields)
    return World(setting, protocol, parameters, every=1.0, recorder=recorder, observer=log)


@pytest.mark.parametrize(
    ("key", "extreme"),
    [(key, extreme) for key in PRIVATE for extreme in EXTREMES if extreme != "label" or key in SQUARED],
)
def test_an_extreme_record_neither_ends_a_private_run_nor_reaches_what_is_sent(key, extreme):
    log, recorder = Sent(), Recorder(["objective", "epsilon"])
    world = world_of(key, extreme, recorder, log)
    drive(world)
    assert world.ended == TIME_UP
    assert world.now == 20.0
    assert log.finite
    assert np.isfinite(world.ledger.epsilon("verified", 1e-5)[world.protected]).all()
    values = recorder.trace().query("metric == 'objective' and statistic == 'value'")["value"]
    said = " ".join(recorder.warnings)
    assert np.isfinite(values).all() or "it is recorded and does not end a private run" in said
    gaps = recorder.trace().query("metric == 'objective' and statistic == 'gap'")["value"]
    assert not (gaps < -1e-6).any(), "no gap is shown that mathematics rules out"


class Leaky(CoordinateDescent):
    """Has something of its own that breaks, and sends something that does, each when it is told to."""

    decides = True

    breaks = "secret"

    def layout(self):
        laid = super().layout()
        return dataclasses.replace(laid, agent={**laid.agent, "secret": 2})

    def step(self, me):
        broken = me.agent == 2 and me.updates == 3
        if broken and self.breaks == "secret":
            me.secret[1] = np.nan
        self.steps.alone(me, super().step)
        if broken and self.breaks == "message":
            me.message = np.full(3, np.inf)


@pytest.mark.parametrize("noise", [3.0, 0.0])
def test_a_private_run_ends_for_what_is_sent_and_for_nothing_else(noise, monkeypatch):
    world = world_of("coordinate_descent", None, noise=noise, protocol=Leaky)
    if noise:
        drive(world)
        assert world.ended == TIME_UP
    else:
        with pytest.raises(Divergence, match=r"agent 2 at time .*: secret became not a number after 3 updates"):
            drive(world)
    monkeypatch.setattr(Leaky, "breaks", "message")
    if noise:
        with pytest.raises(Divergence, match=r"agent 2 at time .*: the model that it sends became infinite after 3"):
            drive(world_of("coordinate_descent", None, noise=noise, protocol=Leaky))


@pytest.mark.parametrize("key", ["feature_sharing", "stale_feature_sharing"])
def test_without_noise_columns_that_are_too_large_are_refused_in_a_sentence(key):
    with pytest.raises(InputError, match="agent 1 has columns with values up to 1e\\+160, whose squares are too large"):
        drive(world_of(key, "row", noise=0.0))
