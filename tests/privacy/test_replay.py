"""Replay proves an epsilon: shipped private protocols pass, planted liars fail with a sentence that says what leaks."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.feature_sharing import FeatureSharing
from hushnet.protocols.algorithms.local_dp import LocalDP
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.protocols.algorithms.stale_feature_sharing import StaleFeatureSharing
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters, Traits
from hushnet.protocols.privacy.budget import Privacy
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.simulator.contract import ContractViolation, check_replay
from hushnet.simulator.contract.bench import protocol_parameters, small_setting
from hushnet.simulator.contract.replay import replay
from hushnet.simulator.contract.small_worlds import TOGETHER
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.world.world import World

LAPLACE = {"mechanism": "laplace", "budget": {"epsilon": 1.0, "delta": 1e-3}, "updates": 3, "clip": 1.0}
GAUSSIAN = {"mechanism": "gaussian", "multiplier": 2.0, "updates": 5, "clip": 1.0}
CHECKED = {"mechanism": "laplace", "multiplier": 2.0, "sensitivity": "data_check", "radius": 1.0}
CLAIMED = {"mechanism": "laplace", "multiplier": 2.0, "sensitivity": "claimed"}
ONCE = {
    "mechanism": "gamma",
    "budget": {"epsilon": 2.0, "delta": 0.0, "by": "basic_composition"},
    "updates": 1,
    "clip": 1.0,
}
ROWS = {"mechanism": "laplace", "budget": {"epsilon": 2.0, "delta": 0.0}, "updates": 1}
SCORES = {"mechanism": "gaussian", "multiplier": 3.0, "sensitivity": "clip", "clip": 2.0}
SHIPPED = {
    "laplace": (CoordinateDescent, {"mu": 0.5, "privacy": LAPLACE}),
    "gaussian, in rounds": (CoordinateDescent, {"mu": 0.5, "privacy": GAUSSIAN, "schedule": "rounds"}),
    "gamma, radius": (CoordinateDescent, {"mu": 0.5, "radius": 0.5, "privacy": {**GAUSSIAN, "mechanism": "gamma"}}),
    "steps from the data": (CoordinateDescent, {"mu": 0.5, "smoothness": "data", "privacy": GAUSSIAN}),
    "checked rows": (CoordinateDescent, {"mu": 0.5, "privacy": CHECKED}),
    "claimed": (CoordinateDescent, {"mu": 0.5, "privacy": CLAIMED}),
    "output perturbation, in rounds": (ModelPropagation, {"privacy": ONCE, "schedule": "rounds"}),
    "output perturbation, closed form": (ModelPropagation, {"privacy": ONCE, "closed_form": True}),
    "sampled": (DualAveraging, {"privacy": GAUSSIAN}),
    "running totals": (PushSumDualAveraging, {"privacy": GAUSSIAN}),
    "rows": (LocalDP, {"privacy": {**ROWS, "clip": 1.0}}),
    "columns": (FeatureSharing, {"privacy": SCORES, "order": "gauss_seidel"}),
    "columns, with stale scores": (StaleFeatureSharing, {"privacy": SCORES}),
}
"""Private protocols and parameters, beside those that `test_contract` replays with all else."""


def replayed(protocol, fields):
    return check_replay(protocol, protocol_parameters(protocol, fields))


def own_world(protocol, fields, *, agents=6, time=8.0, **how):
    """The replay of one world to its end."""
    parameters = protocol_parameters(protocol, fields)

    def make(setting, watch):
        return World(setting, protocol, parameters, watch=watch), EventEngine()

    setting = small_setting(agents=agents, time=time, empty=False)
    return replay(make, setting, **{"planted": False, "together": 1, "apart": 4, **how})


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_private_protocols_can_be_replayed_everywhere(name):
    found = replayed(*SHIPPED[name])
    assert set(found) == {"perfect", "late", "lossy", "churning"}
    # The run, pairs of runs on worst records, and groups of agents that are changed without the others.
    assert all(world.runs >= 1 + 2 * TOGETHER + world.groups and world.groups >= 2 for world in found.values())
    assert 0 < max(world.ratio for world in found.values()) <= 1 + 1e-9


class SketchParameters(ProtocolParameters):
    kind: str = "sketch"
    privacy: Privacy | None = None


class Sketch(Protocol):
    """Broadcasts noisy sums of labels, whose sensitivity is 2."""

    decides = True
    asks_for_budget = True

    Parameters = SketchParameters
    scale, sensitivity = 4.0, 2.0
    model_released = False

    def layout(self):
        return Layout(agent={"model": 3, "sum": 1}, messages={"sum": MessageKind(1)})

    def start(self, me):
        me.send("sum", np.zeros(1), me.public("nothing yet"))

    def release(self, me, **fields):
        terms = {"sensitivity": self.sensitivity, "verified_sensitivity": self.sensitivity, "scale": self.scale}
        terms = {"agent": me.agent, "time": me.now, "mechanism": "laplace", "norm": "l1", **terms, **fields}
        return Release(
            **{"sensitivity_source": "clip", "claimed_epsilon": 0.5, "claimed_delta": 0.0, **terms}, recipients=2
        )

    def exact(self, me):
        return np.array([np.sign(me.data.labels).sum()])

    def noisy(self, me):
        release = self.release(me)
        me.reserve(release)
        return release.perturb(self.exact(me), rng=me.stream("noise")), release

    def step(self, me):
        me.sum, release = self.noisy(me)
        me.send("sum", me.sum, release)


class Calm(Sketch):
    """Says everything in public, as it may, until its step number ``patience``; then its agents ``liars`` do not."""

    patience, liars = 1, range(1000)

    def step(self, me):
        told = me.sum
        if me.updates >= self.patience and me.agent in self.liars:
            told = me.data.features.mean(axis=0)[:1]
        me.send("sum", told, me.public("nobody could mind"))


class LeaksLate(Calm):
    patience = 200


class LeaksAt37(Calm):
    liars = (37,)


class FallsSilent(Sketch):
    def step(self, me):
        super().step(me)
        if self.exact(me)[0] > 0:
            me.fall_silent()


class SaysNothing(Sketch):
    def step(self, me):
        if self.exact(me)[0] > 0:
            super().step(me)
        else:
            self.noisy(me)


class SaysMore(Sketch):
    def step(self, me):
        super().step(me)
        if self.exact(me)[0] > 0:
            me.send("sum", me.sum, me.public("the same again"), to=int(me.neighbours[0]))


class PicksByData(Sketch):
    traits = Traits(exchange="pairwise", unanswered="give_up")

    def layout(self):
        return Layout(agent={"model": 3, "sum": 1}, messages={"request": MessageKind(1), "reply": MessageKind(1)})

    def start(self, me):
        pass

    def partner(self, me, uniform):
        return int(self.exact(me)[0] > 0)

    def request(self, me, partner):
        noisy, release = self.noisy(me)
        me.send("request", noisy, release, to=int(me.neighbours[partner]))

    def respond(self, me, partner, vector):
        noisy, release = self.noisy(me)
        me.send("reply", noisy, release, to=int(me.neighbours[partner]))

    def complete(self, me, partner, vector):
        pass


class ClaimsATenth(Sketch):
    sensitivity = 0.2


class ScalesByData(Sketch):
    def release(self, me, **fields):
        return super().release(me, scale=4.0 + abs(float(self.exact(me)[0])), **fields)


class SendsTheExact(Sketch):
    def step(self, me):
        _, release = self.noisy(me)
        me.send("sum", self.exact(me), release)


class SendsMoreUnderIt(Sketch):
    def layout(self):
        return Layout(agent={"model": 3, "sum": 1}, messages={"sum": MessageKind(1), "raw": MessageKind(1)})

    def step(self, me):
        noisy, release = self.noisy(me)
        me.send("sum", noisy, release)
        me.send("raw", self.exact(me), release)


class DrawsElsewhere(Sketch):
    def noisy(self, me):
        release = self.release(me)
        return release.perturb(self.exact(me), rng=np.random.default_rng(me.tick)), release


class DrawsItself(Sketch):
    def noisy(self, me):
        return self.exact(me) + me.stream("noise").laplace(0.0, 4.0, 1), self.release(me)


class ChargesForOne(Sketch):
    def noisy(self, me):
        release, other = self.release(me), self.release(me)
        exact, rng = self.exact(me), me.stream("noise")
        return release.perturb(exact, rng=rng) + other.perturb(exact, rng=rng), release


class AddsUpEverybody(Sketch):
    def exact(self, me):
        self.problem.task.train.labels.sum()
        return np.array([np.sign(self.problem.task.train.labels).sum()]) / self.problem.task.agents


class DividesByZero(Sketch):
    def exact(self, me):
        rows = np.abs(me.data.features).max()
        return np.array([np.sqrt(1e3 - rows)])


class ShowsItsModel(Sketch):
    model_released = True

    def step(self, me):
        super().step(me)
        me.model = self.exact(me)


class PreparesFromData(Sketch):
    def prepare(self):
        self.mean = self.problem.task.train.features.mean()

    def step(self, me):
        me.send("sum", np.array([self.mean]), me.public("a constant"))


LIARS = {
    Calm: r"agent \d+, step at time [\d.]+ \(step 2\), sends 'sum' as public .* the agent's data: coordinate 0 is .*",
    FallsSilent: r"falls silent on one of two neighbouring data sets only",
    SaysNothing: r"and was charged for|sends \['sum'\], and nothing|sends nothing, and \['sum'\] on neighbouring data",
    SaysMore: r"sends \['sum', 'sum'\]|sends \['sum'\]",
    PicksByData: r"sends 'request' to",
    ClaimsATenth: r"moves the value under its laplace noise by 2 in l1, .* sensitivity 0.2",
    ScalesByData: r"the scale of its release depends on the data",
    SendsTheExact: r"sends 'sum' under laplace noise, but it depends on the agent's data beyond",
    SendsMoreUnderIt: r"sends 'raw' under laplace noise",
    DrawsElsewhere: r"another generator than me.stream",
    DrawsItself: r"for which none was drawn",
    ChargesForOne: r"has drawn noise \d+ times and was charged for \d+ releases",
    AddsUpEverybody: r"depends on other agents' data|moves the value",
    DividesByZero: r"not a number",
    ShowsItsModel: r"the model of agent \d+, by which runs are judged",
    PreparesFromData: r"sends 'sum' as public",
}


def test_an_honest_sketch_passes():
    found = replayed(Sketch, {})
    assert all(world.ratio == pytest.approx(1.0) for world in found.values())


@pytest.mark.parametrize("liar", LIARS)
def test_a_liar_fails_with_the_sentence_that_says_what_leaks(liar):
    fields = {"privacy": GAUSSIAN} if liar is ShowsItsModel else {}
    with pytest.raises(ContractViolation, match=LIARS[liar]):
        replayed(liar, fields)


def test_a_leak_that_waits_for_step_200_is_found_in_a_world_that_runs_so_long():
    replayed(LeaksLate, {})
    with pytest.raises(ContractViolation, match=r"step 201\), sends 'sum' as public"):
        own_world(LeaksLate, {}, time=230.0)


def test_a_leak_of_one_agent_of_many_is_found_in_one_run_that_changes_everybody():
    replayed(LeaksAt37, {})
    with pytest.raises(ContractViolation, match="agent 37, step"):
        own_world(LeaksAt37, {}, agents=60, time=4.0, apart=0)


def test_records_come_and_go_where_that_is_the_adjacency():
    class Counts(Sketch):
        sensitivity = 1.0

        def exact(self, me):
            return np.array([float(len(me.data))])

        def release(self, me, **fields):
            return super().release(me, adjacency="add-or-remove-one", **fields)

    class CountsInPublic(Counts):
        def step(self, me):
            super().step(me)
            me.send("sum", self.exact(me), me.public("a number of rows"), to=int(me.neighbours[0]))

    assert own_world(Counts, {}).ratio == 1.0
    with pytest.raises(ContractViolation, match="sends 'sum' as public"):
        own_world(CountsInPublic, {})
