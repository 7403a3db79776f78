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


class KeepsSomethingBack(CoordinateDescent):
    """Goes on from another model than it has told."""

    decides = True

    def step(self, me):
        self.steps.alone(me, super().step)
        me.model[0] += 1e-6


class KeepsPerturbedBack(LocalDPDescent):
    """Goes on from another model than it has told, on perturbed examples."""

    decides = True

    def step(self, me):
        self.steps.alone(me, super().step)
        me.model[0] += 1e-6


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


class SettlesTwice(CollaborativeAdmm):
    """Steps 2 and 3 of a caller, once more."""

    decides = True

    def complete(self, me, partner, vector):
        self.steps.alone(me, super().complete, partner, vector)
        self.steps.alone(me, super().complete, partner, vector)


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


class CountsOneNeighbourLess(PerturbedAdmm):
    """(11) without the last neighbour."""

    decides = True

    def step(self, me):
        me.dual += 1e-3 * (me.heard[-1] - me.model)
        self.steps.alone(me, super().step)


class ReleasesOtherwise(PerturbedAdmm):
    """Goes on from its exact model."""

    decides = True

    def step(self, me):
        self.steps.alone(me, super().step)
        penalty = penalty_of(me)
        me.model = minimised(
            me, me.loss_weight, curvature_of(me, penalty), linear_of(me, penalty), me.model, 1e-10 * me.loss_weight
        )


class MovesDualTwice(EdgeConsensusAdmm):
    """The caller's dual moves too far."""

    decides = True

    def complete(self, me, partner, vector):
        before = me.dual[partner].copy()
        self.steps.alone(me, super().complete, partner, vector)
        me.dual[partner] += me.dual[partner] - before


class PutsTheEdgeElsewhere(EdgeConsensusAdmm):
    """The caller weighs its own model more."""

    decides = True

    def complete(self, me, partner, vector):
        self.steps.alone(me, super().complete, partner, vector)
        me.between[partner] += 0.01 * me.offered[partner]


class FinishesTwice(EdgeConsensusAdmm):
    """A session is made twice at one end."""

    decides = True

    def complete(self, me, partner, vector):
        self.steps.alone(me, super().complete, partner, vector)
        self.steps.alone(me, super().complete, partner, vector)


class MixesByItsOwnDegree(DualAveraging):
    """Weights whose rows add up to 1, and whose columns do not."""

    def constants(self):
        graph = self.problem.graph
        return replace(super().constants(), edge={"mixing": 1 / (1.0 + graph.degrees[graph.tails])})


class KeepsExactSubgradients(DualAveraging):
    """Tells what is perturbed, and goes on from something else."""

    decides = True

    def step(self, me):
        self.steps.alone(me, super().step)
        me.sent = me.dual


class TakesTotalsAgain(PushSumDualAveraging):
    """Takes in all that was ever given each time, as if totals were news."""

    decides = True

    def step(self, me):
        me.mass += 0.01 * me.heard.sum(axis=0)
        self.steps.alone(me, super().step)


class GivesForNothing(PushSumDualAveraging):
    """Gives shares of w that it keeps."""

    decides = True

    def step(self, me):
        given = me.given[:, -1].sum()
        self.steps.alone(me, super().step)
        me.mass[-1] += me.given[:, -1].sum() - given


class GivesTooMuch(StochasticGradientPush):
    """Gives shares of weight that it keeps."""

    decides = True

    def step(self, me):
        self.steps.alone(me, super().step)
        me.mass[-1] *= 1.01


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


def goes_on_from_something_else(protocol, block="sent"):
    """A protocol that tells one vector and mixes another."""

    class Otherwise(protocol):
        decides = True

        def step(self, me):
            self.steps.alone(me, super().step)
            setattr(me, block, 1.01 * getattr(me, block))

    Otherwise.__name__ = f"{protocol.__name__}GoesOnFromSomethingElse"
    return Otherwise


class ForgetsTheOldGradient(GradientTracking):
    """(2b) without the gradient of the round before."""

    decides = True

    def step(self, me):
        me.gradient = 0.9 * me.gradient
        self.steps.alone(me, super().step)


class KeepsTheToken(RandomWalkSGD):
    """Whoever has passed the token on holds it still."""

    def step(self, me):
        super().step(me)
        me.walk[0] = max(me.walk[0], me.walk[2] > 0)


class GainsTooMuch(AdPsgd):
    """More than half of the difference at the caller."""

    decides = True

    def complete(self, me, partner, vector):
        self.steps.alone(me, super().complete, partner, vector)
        me.gained[partner] += 0.01


PENALTY = {"noise": {"alpha": 3.0}}
MUTANTS = [
    (KeepsSomethingBack, Case("coordinate_descent", {"mu": 0.5}), {"model told"}),
    (KeepsPerturbedBack, Case("local_dp_descent", {"mu": 0.5}), {"model told"}),
    (
        ForgetsToDivide,
        Case("model_propagation", {"alpha": 0.7, "schedule": "async"}),
        {"models within the solitary ones"},
    ),
    (MixesForItself, Case("muffliato"), {"model told"}),
    (CopiesWrongly, Case("model_propagation", {"alpha": 0.7}), {"copies within the solitary ones"}),
    (TellsAnotherModel, Case("model_propagation", {"alpha": 0.7, "schedule": "async"}), {"model told"}),
    (SettlesTwice, Case("collaborative_admm"), {"Z of an edge", "multipliers of an edge"}),
    (MovesOneEnd, Case("collaborative_admm"), {"multipliers of an edge"}),
    (MovesOneEnd, Case("collaborative_admm", ROUNDS), {"multipliers of an edge"}),
    (TrustsPatience, Case("consensus_admm", PATIENT), {"sum of duals"}),
    (CountsOneNeighbourLess, Case("perturbed_admm", PENALTY), {"sum of duals"}),
    (ReleasesOtherwise, Case("perturbed_admm", PENALTY), {"model told"}),
    (MovesDualTwice, Case("edge_consensus_admm"), {"duals of an edge"}),
    (PutsTheEdgeElsewhere, Case("edge_consensus_admm"), {"model of an edge"}),
    (FinishesTwice, Case("edge_consensus_admm"), {"sessions of an edge", "duals of an edge"}),
    (MixesByItsOwnDegree, Case("dual_averaging", FULL), {"sum of z"}),
    (KeepsExactSubgradients, Case("dual_averaging", {**FULL, "privacy": {**GAUSSIAN, "updates": 50}}), {"sent told"}),
    (TakesTotalsAgain, Case("push_sum_dual_averaging", FULL), {"mass z", "mass w"}),
    (GivesForNothing, Case("push_sum_dual_averaging", FULL), {"mass w"}),
    *(
        (goes_on_from_something_else(protocol), Case(kind), {"sent told"})
        for kind, protocol in {
            "choco_sgd": ChocoSGD,
            "decentralised_sgd": DecentralisedSGD,
            "gradient_tracking": GradientTracking,
            "extra": Extra,
            "nids": Nids,
        }.items()
    ),
    (goes_on_from_something_else(GossipLearning, "aged"), Case("gossip_learning"), {"aged told"}),
    (KeepsTheToken, Case("random_walk_sgd"), {"one token"}),
    (goes_on_from_something_else(EpidemicLearning, "half"), Case("epidemic_learning"), {"half told"}),
    (ForgetsTheOldGradient, Case("gradient_tracking"), {"sum of trackers"}),
    (GainsTooMuch, Case("ad_psgd"), {"gained over an edge"}),
    (GivesTooMuch, Case("stochastic_gradient_push"), {"weight w"}),
    (StepsTooFar, Case("feature_sharing", {"rho": 1.0}, split=True), {"slopes"}),
    (StepsTooFarLate, Case("stale_feature_sharing", {"rho": 1.0}, split=True), {"slopes"}),
]


@pytest.mark.parametrize(("mutant", "case", "broken"), MUTANTS, ids=[mutant.__name__ for mutant, *_ in MUTANTS])
def test_a_planted_mistake_breaks_what_the_protocol_keeps(mutant, case, broken):
    """Where messages are late and lost; the same network with the protocol as it is breaks nothing."""
    task = split_task() if case.split else small_task()
    setting = setting_of(task=task, graph=star(task) if case.split else None, stop=Stop(time=40.0), **BAD)
    _, check = checked_run(case, setting, "event", protocol=mutant)
    found = {entry["name"]: entry for entry in check.report() if entry["broken"]}
    assert broken <= found.keys()
    for entry in found.values():
        assert entry["worst"] > entry["tolerance"]
        assert 0 <= entry["first"]["time"] <= 40.0
    if mutant is not TrustsPatience:
        _, check = checked_run(case, setting, "event")
        assert not any(entry["broken"] for entry in check.report())
        assert all(entry["checked"] > 0 for entry in check.report())


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
