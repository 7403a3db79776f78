"""Every protocol says what it keeps, and a planted mistake breaks it; no network does (`tests.campaigns.worlds`)."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.errors import Divergence
from hushnet.protocols import catalog
from hushnet.protocols.algorithms.ad_psgd import AdPsgd
from hushnet.protocols.algorithms.choco_sgd import ChocoSGD
from hushnet.protocols.algorithms.collaborative_admm import CollaborativeAdmm
from hushnet.protocols.algorithms.consensus_admm import ConsensusAdmm, curvature_of, linear_of, penalty_of
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.dada import Dada
from hushnet.protocols.algorithms.decentralised_sgd import DecentralisedSGD
from hushnet.protocols.algorithms.dual_averaging import DualAveraging
from hushnet.protocols.algorithms.edge_consensus_admm import EdgeConsensusAdmm
from hushnet.protocols.algorithms.epidemic_learning import EpidemicLearning
from hushnet.protocols.algorithms.extra import Extra
from hushnet.protocols.algorithms.feature_sharing import FeatureSharing
from hushnet.protocols.algorithms.gossip_learning import GossipLearning
from hushnet.protocols.algorithms.gradient_tracking import GradientTracking
from hushnet.protocols.algorithms.local_dp_descent import LocalDPDescent
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.muffliato import Muffliato
from hushnet.protocols.algorithms.nids import Nids
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.algorithms.push_sum_dual_averaging import PushSumDualAveraging
from hushnet.protocols.algorithms.random_walk_sgd import RandomWalkSGD
from hushnet.protocols.algorithms.stale_feature_sharing import StaleFeatureSharing
from hushnet.protocols.algorithms.stochastic_gradient_push import StochasticGradientPush
from hushnet.protocols.base import Traits
from hushnet.protocols.invariants import Instant, Invariant, NoInvariant, Where
from hushnet.protocols.steps import average, minimised
from hushnet.simulator.contract.bench import protocol_parameters, small_task
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..campaigns.world_cases import CASES, FULL, GAUSSIAN, PATIENT, ROUNDS, Case, random_setting
from ..engine.driving import build_world, drive
from .columns import split_task, star
from .sketches import PassiveBroadcast
from .worlds import AWAY, BAD, setting_of


def built(case):
    """The protocol of a case, ready to say what it keeps."""
    return World(random_setting(case, np.random.default_rng(0)), case.protocol, case.parameters).protocol


@pytest.mark.parametrize("kind", catalog.PROTOCOLS)
def test_every_shipped_protocol_declares_an_invariant_or_says_why_it_has_none(kind):
    cases = [case for case in CASES if case.kind == kind]
    assert cases
    for case in cases:
        declared = built(case).invariants()
        if isinstance(declared, NoInvariant):
            assert declared.why
        else:
            assert len(declared) == len({each.name for each in declared}) > 0
            assert all(each.source and 0 < each.tolerance < 1e-7 for each in declared)


def checked_run(case, setting, engine, *, protocol=None):
    """A world after its run, and the invariants that were watched in it."""
    recorder = Recorder([])
    world = build_world(engine, setting, protocol or case.protocol, case.parameters, recorder=recorder, every=0.7)
    with contextlib.suppress(Divergence):
        drive(world)
    return world, recorder.invariants


def mistaken(protocol, half, *, before=None, after=None):
    """A protocol that does something else as well, before or after a half of its steps."""

    def wrongly(self, me, *heard):
        if before is not None:
            before(me)
        over = self.steps.alone(me, getattr(super(kind, self), half), *heard)
        if after is not None:
            after(self, me, *heard)
        return over

    kind = type(f"{protocol.__name__}Mistaken", (protocol,), {"decides": True, half: wrongly})
    return kind


def again(self, me, partner, vector):
    """The half of a session once more."""
    self.steps.alone(me, super(type(self), self).complete, partner, vector)


def elsewhere(self, me, *heard):
    """Goes on from another model than it has told."""
    me.model[0] += 1e-6


def exactly(self, me):
    """Goes on from its exact model."""
    penalty = penalty_of(me)
    me.model = minimised(
        me, me.loss_weight, curvature_of(me, penalty), linear_of(me, penalty), me.model, 1e-10 * me.loss_weight
    )


def longer(block, factor):
    """A mistake in the size of a block."""
    return lambda self, me, *heard: setattr(me, block, factor * getattr(me, block))


def forget(me):
    """(2b) without the gradient of the round before."""
    me.gradient = 0.9 * me.gradient


def skip_the_last(me):
    """(11) without the last neighbour."""
    me.dual += 1e-3 * (me.heard[-1] - me.model)


def take_totals_again(me):
    """Takes in all that was ever given each time, as if totals were news."""
    me.mass += 0.01 * me.heard.sum(axis=0)


def weigh_own_model_more(self, me, partner, vector):
    me.between[partner] += 0.01 * me.offered[partner]


def gain_too_much(self, me, partner, vector):
    me.gained[partner] += 0.01


def move_dual_too_far(self, me, partner, vector):
    me.dual[partner] *= 1.01


def add_weight(self, me):
    me.mass[-1] *= 1.01


def tell_and_keep_the_exact(self, me):
    me.sent = me.dual


class ForgetsToDivide(ModelPropagation):
    """Adds up the neighbours' models by their weights, which do not sum to 1."""

    @staticmethod
    def step(me):
        if me.degree > 0:
            me.model = (average(me) * me.weights.sum() + me.mu_c * me.solitary) / (1 + me.mu_c)
        me.message = me.model


class CopiesWrongly(ModelPropagation):
    """Has another model of its neighbour than that one told."""

    def respond(self, me, partner, vector):
        self.steps.alone(me, super().respond, partner, 1e3 * vector)


class MixesForItself(Muffliato):
    """Sends what it had before it mixed."""

    @staticmethod
    def step(me):
        Muffliato.step(me)
        me.message = me.before


class TellsAnotherModel(ModelPropagation):
    """Broadcasts its solitary model for ever."""

    @staticmethod
    def step(me):
        if me.degree > 0:
            me.model = (average(me) + me.mu_c * me.solitary) / (1 + me.mu_c)
        me.message = me.solitary


class MovesOneEnd(CollaborativeAdmm):
    """Step 3 with another penalty at one end of an edge."""

    decides = True

    def respond(self, me, partner, vector):
        before = me.dual_own.copy()
        self.steps.alone(me, super().respond, partner, vector)
        self._move(me, before)

    def complete(self, me, partner, vector):
        before = me.dual_own.copy()
        self.steps.alone(me, super().complete, partner, vector)
        self._move(me, before)

    def step(self, me):
        before = me.dual_own.copy()
        self.steps.alone(me, super().step)
        self._move(me, before)

    def _move(self, me, before):
        if me.agent % 2:
            me.dual_own[:] += 0.1 * (me.dual_own - before)


class TrustsPatience(ConsensusAdmm):
    """Would run with values of different rounds at the ends of an edge."""

    traits = Traits(trigger="round", inbox="per_round")


class MixesByItsOwnDegree(DualAveraging):
    """Weights whose rows add up to 1, and whose columns do not."""

    def constants(self):
        graph = self.problem.graph
        return replace(super().constants(), edge={"mixing": 1 / (1.0 + graph.degrees[graph.tails])})


class LeavesTheBall(Dada):
    """Goes on in the direction of its step, and subtracts from weights that are none."""

    def step(self, me):
        super().step(me)
        me.model *= 50.0
        me.weight[:1] -= 0.5


class GivesForNothing(PushSumDualAveraging):
    """Gives shares of w that it keeps."""

    decides = True

    def step(self, me):
        given = me.given[:, -1].sum()
        self.steps.alone(me, super().step)
        me.mass[-1] += me.given[:, -1].sum() - given


class StepsTooFar(FeatureSharing):
    """(8) with another step than rho."""

    decides = True

    def step(self, me):
        over = super().step(me)
        me.y *= 1.001
        return over


class StepsTooFarLate(StaleFeatureSharing):
    """(8) with another step than rho, from the tenth step on."""

    decides = True

    def step(self, me):
        over = super().step(me)
        if me.role == "centre" and me.step[0] > 10.0:
            me.y *= 1.001
        return over


class KeepsTheToken(RandomWalkSGD):
    """Whoever has passed the token on holds it still."""

    def step(self, me):
        super().step(me)
        me.walk[0] = max(me.walk[0], me.walk[2] > 0)


PENALTY = {"noise": {"alpha": 3.0}}
MUTANTS = [
    (mistaken(CoordinateDescent, "step", after=elsewhere), Case("coordinate_descent", {"mu": 0.5}), {"model told"}),
    (mistaken(LocalDPDescent, "step", after=elsewhere), Case("local_dp_descent", {"mu": 0.5}), {"model told"}),
    (
        ForgetsToDivide,
        Case("model_propagation", {"alpha": 0.7, "schedule": "async"}),
        {"models within the solitary ones"},
    ),
    (MixesForItself, Case("muffliato"), {"model told"}),
    (CopiesWrongly, Case("model_propagation", {"alpha": 0.7}), {"copies within the solitary ones"}),
    (TellsAnotherModel, Case("model_propagation", {"alpha": 0.7, "schedule": "async"}), {"model told"}),
    (
        mistaken(CollaborativeAdmm, "complete", after=again),
        Case("collaborative_admm"),
        {"Z of an edge", "multipliers of an edge"},
    ),
    (MovesOneEnd, Case("collaborative_admm"), {"multipliers of an edge"}),
    (MovesOneEnd, Case("collaborative_admm", ROUNDS), {"multipliers of an edge"}),
    (TrustsPatience, Case("consensus_admm", PATIENT), {"sum of duals"}),
    (mistaken(PerturbedAdmm, "step", before=skip_the_last), Case("perturbed_admm", PENALTY), {"sum of duals"}),
    (mistaken(PerturbedAdmm, "step", after=exactly), Case("perturbed_admm", PENALTY), {"model told"}),
    (
        mistaken(EdgeConsensusAdmm, "complete", after=move_dual_too_far),
        Case("edge_consensus_admm"),
        {"duals of an edge"},
    ),
    (
        mistaken(EdgeConsensusAdmm, "complete", after=weigh_own_model_more),
        Case("edge_consensus_admm"),
        {"model of an edge"},
    ),
    (
        mistaken(EdgeConsensusAdmm, "complete", after=again),
        Case("edge_consensus_admm"),
        {"sessions of an edge", "duals of an edge"},
    ),
    (MixesByItsOwnDegree, Case("dual_averaging", FULL), {"sum of z"}),
    (
        mistaken(DualAveraging, "step", after=tell_and_keep_the_exact),
        Case("dual_averaging", {**FULL, "privacy": {**GAUSSIAN, "updates": 50}}),
        {"sent told"},
    ),
    (
        mistaken(PushSumDualAveraging, "step", before=take_totals_again),
        Case("push_sum_dual_averaging", FULL),
        {"mass z", "mass w"},
    ),
    (GivesForNothing, Case("push_sum_dual_averaging", FULL), {"mass w"}),
    *(
        (mistaken(protocol, "step", after=longer("sent", 1.01)), Case(kind), {"sent told"})
        for kind, protocol in {
            "choco_sgd": ChocoSGD,
            "decentralised_sgd": DecentralisedSGD,
            "gradient_tracking": GradientTracking,
            "extra": Extra,
            "nids": Nids,
        }.items()
    ),
    (mistaken(GossipLearning, "step", after=longer("aged", 1.01)), Case("gossip_learning"), {"aged told"}),
    (KeepsTheToken, Case("random_walk_sgd"), {"one token"}),
    (LeavesTheBall, Case("dada"), {"l1 ball", "weights"}),
    (mistaken(EpidemicLearning, "step", after=longer("half", 1.01)), Case("epidemic_learning"), {"half told"}),
    (mistaken(GradientTracking, "step", before=forget), Case("gradient_tracking"), {"sum of trackers"}),
    (mistaken(AdPsgd, "complete", after=gain_too_much), Case("ad_psgd"), {"gained over an edge"}),
    (mistaken(StochasticGradientPush, "step", after=add_weight), Case("stochastic_gradient_push"), {"weight w"}),
    (StepsTooFar, Case("feature_sharing", {"rho": 1.0}, split=True), {"slopes"}),
    (StepsTooFarLate, Case("stale_feature_sharing", {"rho": 1.0}, split=True), {"slopes"}),
]


@pytest.mark.parametrize(("mutant", "case", "broken"), MUTANTS, ids=[mutant.__name__ for mutant, *_ in MUTANTS])
def test_a_planted_mistake_breaks_what_the_protocol_keeps(mutant, case, broken):
    """Where messages are late and lost."""
    task = split_task() if case.split else small_task()
    setting = setting_of(task=task, graph=star(task) if case.split else None, stop=Stop(time=40.0), **BAD)
    _, check = checked_run(case, setting, "event", protocol=mutant)
    found = {entry["name"]: entry for entry in check.report() if entry["broken"]}
    assert broken <= found.keys()
    for entry in found.values():
        assert entry["worst"] > entry["tolerance"]
        assert 0 <= entry["first"]["time"] <= 40.0


def test_every_invariant_has_a_planted_mistake_that_breaks_it():
    names = set()
    for case in CASES:
        declared = built(case).invariants()
        if not isinstance(declared, NoInvariant):
            names |= {(case.kind, each.name) for each in declared}
    planted = {(case.kind, name) for _, case, broken in MUTANTS for name in broken}
    shared = {("consensus_admm", "model told")}  # the iteration's, planted in perturbed_admm
    assert names - shared == planted


class Half(PassiveBroadcast):
    """Keeps something that is off by a half of its size, from time 3 on, at agent 2."""

    def invariants(self):
        def distance(instant):
            assert not instant.agent("model").flags.writeable
            return np.where((np.arange(6) == 2) & (instant.rounds.sum() > 10), 0.5, 0.0)

        return (Invariant("half", distance, lambda instant: 1.0),)


def sketch(protocol, **fields):
    recorder = Recorder(["traffic"])
    setting = setting_of(availability=AWAY, **BAD)
    drive(World(setting, protocol, protocol_parameters(protocol, fields), recorder=recorder, every=1.0))
    return recorder


def test_a_broken_invariant_says_since_when_and_where():
    [entry] = sketch(Half).invariants.report()
    assert entry["broken"]
    assert (entry["worst"], entry["first"]["agents"], entry["where"]) == (0.5, ["2"], "always")
    assert 0 < entry["first"]["time"] < 20.0
    assert entry["checked"] == 22


@pytest.mark.parametrize(("wrong", "broken"), [(np.nan, True), (np.inf, True), (1e-10, False), (0.0, False)])
def test_a_distance_that_is_no_number_is_broken_and_rounding_is_not(wrong, broken):
    class Wrong(Half):
        def invariants(self):
            return (Invariant("wrong", lambda instant: wrong, lambda instant: 1.0),)

    [entry] = sketch(Wrong).invariants.report()
    assert entry["broken"] == broken
    assert not broken or entry["worst"] == np.inf


def test_rounds_of_neighbours_and_quiet_edges_decide_what_is_looked_at():
    protocol = built(Case("coordinate_descent", {"mu": 0.5}))
    graph = protocol.problem.graph
    rounds = np.arange(graph.agents)
    quiet = np.zeros(len(graph.heads), dtype=bool)
    instant = Instant(None, graph, rounds, rounds >= 0, quiet, False, lambda kind: None)
    apart = rounds[graph.tails] - rounds[graph.heads]
    assert (Where.EQUAL_ROUNDS.mask(instant) == (apart == 0)).all()
    assert Where.NEIGHBOURING_ROUNDS.mask(instant) == (np.abs(apart).max() <= 1)
    assert not Where.QUIET_EDGES.mask(instant).any()
    level = replace(instant, rounds=0 * rounds)
    assert Where.NEIGHBOURING_ROUNDS.mask(level)
    assert Where.EQUAL_ROUNDS.mask(level).all()
    assert Where.ALWAYS.mask(level)
