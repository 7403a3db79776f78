"""The contract carries five families of protocols, and its tests catch protocols that break it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hushnet.agents.errors import InputError, StepFailure
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.base import Layout, MessageKind, Protocol, Traits
from hushnet.protocols.catalog import resolve
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.simulator.contract import (
    ContractViolation,
    check_contract,
    check_engines,
    check_replay,
    protocol_parameters,
)
from hushnet.simulator.contract.bench import AGENTS, admitted_world, run_small, small_setting
from hushnet.simulator.contract.own_checks import check_own

from .noisy_gossip import NeverCharges, RemembersItsMean
from .sketches import FAMILIES, NeighbourBarrier, PairwiseExchange, PassiveBroadcast, SketchParameters, Star

NOISY = {"mechanism": "laplace", "budget": {"epsilon": 1.0, "delta": 1e-3}, "updates": 3, "clip": 1.0}


class Gossip(Protocol):
    """Perturbs the mean of its labels once, then averages: all that it sends follows from that."""

    decides = True
    asks_for_budget = True

    Parameters = SketchParameters

    def layout(self):
        return Layout(agent={"model": 1}, messages={"model": MessageKind(1, mirrors="model")})

    def start(self, me):
        if len(me.data):
            bound = 2.0 / len(me.data)
            release = Release(
                me.agent, me.now, "laplace", "l1", bound, "clip", bound, 2 * bound, 0.5, 0.0, len(me.neighbours)
            )
            mean = np.clip(me.data.labels, -1.0, 1.0).mean(keepdims=True)
            me.model = release.perturb(mean, rng=me.stream("noise"))
            if len(me.neighbours):
                me.disclose(release)
        me.send("model", me.model, self.said(me))

    def said(self, me):
        return me.post_processing() if len(me.data) else me.public("no data, and nothing but what was heard")

    def step(self, me):
        if len(me.neighbours):
            heard = me.heard
            me.model = (me.model + heard.mean(axis=0)) / 2
        me.send("model", me.model, self.said(me))


class SendsCounts(PassiveBroadcast):
    """Averages with square roots of how many rows others say that they have."""

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p + 1)})

    def said(self, me):
        return np.append(me.model, 1.0 + len(me.data))

    def start(self, me):
        me.send("model", self.said(me), me.plain("how many rows"))

    def step(self, me):
        if len(me.neighbours) and me.was_heard.any():
            heard = me.heard[me.was_heard]
            weights = np.sqrt(heard[:, -1])
            me.model = weights @ heard[:, :-1] / weights.sum()
        if len(me.data):
            me.model += 0.1 * me.data.features.mean(axis=0)
        me.send("model", self.said(me), me.plain("the mean of the rows"))


class NeedsRows(PassiveBroadcast):
    """Divides by the number of its rows, and refuses tasks in which an agent has none, or nobody to hear."""

    @classmethod
    def check_problem(cls, parameters, problem):
        if not problem.task.train.counts.all() or problem.graph.agents == 1:
            raise InputError("every agent needs rows and a neighbour")

    def step(self, me):
        me.model += me.data.features.sum(axis=0) / int(1 / (1 / len(me.data)))
        me.model /= len(me.neighbours) / len(me.neighbours) + 1
        me.send("model", me.model, me.plain("the mean of the rows"))


class NeedsMore(PassiveBroadcast):
    """Refuses every small world."""

    @classmethod
    def check_problem(cls, parameters, problem):
        if problem.graph.agents < 50:
            raise InputError(f"there are {problem.graph.agents} agents; it needs 50 or more")


@pytest.mark.parametrize("kind", [*FAMILIES.values(), Gossip, SendsCounts, NeedsRows])
def test_every_family_of_protocols_fits_the_contract(kind):
    """With messages that the protocol sends itself, in worlds that it admits."""
    check_contract(kind, {})


def test_a_protocol_that_admits_no_small_world_is_not_tried_and_says_why():
    with pytest.raises(InputError, match="there are 6 agents; it needs 50 or more"):
        check_contract(NeedsMore, {})


ONCE = {"mechanism": "gamma", "multiplier": 3.0, "updates": 1, "clip": 1.0}
START = {"kind": "private_propagation", "epsilon": 0.5, "lipschitz": 1.0}
CLIPPED = {"mechanism": "gaussian", "multiplier": 1.0, "clip": 1.0}
SHIPPED = [
    ("ad_psgd", {"batch": 2}),
    ("choco_sgd", {"compression": "quantise", "precision": "float16"}),
    ("choco_sgd", {"compression": "sign"}),
    ("collaborative_admm", {"mu": 0.5, "schedule": "rounds", "local_steps": 2}),
    ("consensus", {}),
    ("consensus_admm", {"loss_weight": 2.0, "penalty_growth": 1.05}),
    ("coordinate_descent", {"mu": 0.5, "start": "local", "updates": 4, "confidence": "relative"}),
    ("coordinate_descent", {"mu": 0.5, "privacy": NOISY, "schedule": "rounds"}),
    ("coordinate_descent", {"start": START, "radius": 0.5, "privacy": {**NOISY, "updates": 2}}),
    ("decentralised_sgd", {"batch": 2}),
    ("decentralised_sgd", {"order": "adapt_then_combine", "privacy": CLIPPED}),
    ("divshare", {"batch": 2, "fragments": 3}),
    ("dual_averaging", {"privacy": CLIPPED, "radius": 1.0, "sampling": "poisson", "batch": 2}),
    ("edge_consensus_admm", {}),
    ("epidemic_learning", {}),
    ("epidemic_learning", {"batch": 2, "schedule": "rounds", "local_steps": 2}),
    ("extra", {}),
    ("federated_averaging", {"batch": 2, "local_steps": 2}),
    ("gossip_learning", {}),
    ("gossip_learning", {"batch": 2, "schedule": "rounds"}),
    ("dada", {"graph_every": 2, "peers": 2}),
    ("gradient_tracking", {"batch": 2}),
    ("local", {}),
    ("local_dp", {"privacy": ONCE}),
    ("local_dp_descent", {"mu": 0.5, "privacy": {**ONCE, "mechanism": "laplace"}}),
    ("model_propagation", {"privacy": ONCE}),
    ("model_propagation", {"schedule": "async"}),
    ("nids", {}),
    ("perturbed_admm", {"penalty_growth": 1.05, "noise": {"alpha": 3.0, "growth": 1.03}}),
    ("random_walk_sgd", {"batch": 2}),
    ("solitary", {"steps": 2}),
    ("stochastic_gradient_push", {}),
    ("stochastic_gradient_push", {"batch": 2, "schedule": "rounds"}),
]
"""Push-sum has a test of its own; protocols over columns are replayed (`tests/privacy/test_replay.py`)."""


@pytest.mark.parametrize(("kind", "fields"), SHIPPED)
def test_shipped_protocols_fit_the_contract(kind, fields):
    check_contract(resolve(kind), fields)


def passive(half, model, release=None):
    """A broadcast whose start or step says another model, as what it says itself or as public."""

    def wrong(self, me):
        me.model = model(self, me)
        me.send("model", me.model, me.plain() if release is None else me.public(release))

    return type("Passive", (PassiveBroadcast,), {half: wrong})


def own_mean(self, me):
    return me.data.features.mean(axis=0)


def no_number(self, me):
    return [0.0, np.nan, 0.0]


def everybodys_mean(self, me):
    return self.problem.task.train.features.mean(axis=0)


def neighbours_sum(self, me):
    return self.problem.task.train.shard((me.agent + 1) % self.problem.task.agents).features.sum(axis=0)


class WritesElsewhere(PassiveBroadcast):
    """Changes its own data."""

    def step(self, me):
        me.data.features[:] = 0.0
        me.send("model", me.model, me.plain())


class WritesToOthers(PassiveBroadcast):
    """Sets its neighbour's model, to which it has kept a reference."""

    models: dict[int, np.ndarray]

    def prepare(self):
        self.models = {}

    def start(self, me):
        super().start(me)
        self.models[me.agent] = me.model

    def step(self, me):
        self.models[(me.agent + 1) % len(self.models)][:] = 7.0
        super().step(me)


class RemembersOthers(PassiveBroadcast):
    """Adds up what all agents do in one place."""

    def prepare(self):
        self.total = [0.0]

    def step(self, me):
        self.total[0] += me.data.features.sum()
        me.model = self.total[0]
        me.send("model", me.model, me.plain())


class ForgetsItsNoise(CoordinateDescent):
    """Charges for noise and sends the sum of its rows without."""

    decides = True

    def step(self, me):
        release = self.noise.release(me)
        release.perturb(np.zeros(3), rng=me.stream("noise"))
        me.send("model", me.data.features.sum(axis=0), release)


class LooksWhilePreparing(CoordinateDescent):
    """Takes its step size from everybody's rows and does not say so."""

    assumed_public = ()

    def start(self, me):
        super().start(me)
        me.alpha *= self.scale

    def prepare(self):
        super().prepare()
        self.scale = 1 / (1 + np.abs(self.problem.task.train.features).sum())


class ListsWithoutAssuming(LooksWhilePreparing):
    """Lists its step size in words, which is no reason to hold it fixed."""

    assumed_public = ("step sizes",)


class AssumesWithoutListing(LooksWhilePreparing):
    """Treats its step size as public, and lists it nowhere."""

    def prepare(self):
        super().prepare()
        self.scale = self.problem.assumed("step sizes", self.scale)


class ListsAndAssumes(AssumesWithoutListing):
    """Treats its step size as public, and says so."""

    assumed_public = ("step sizes",)


class NoisyAtZero(CoordinateDescent):
    """Draws noise although there is none to draw."""

    decides = True

    def step(self, me):
        self.steps.alone(me, super().step)
        if self.privacy is not None:
            me.model += 1e-12


class PeeksAtConstants(PassiveBroadcast):
    """Reads what its neighbour keeps to itself, which changes with data only."""

    states: dict[int, np.ndarray]

    def prepare(self):
        self.states = {}

    def start(self, me):
        me.model = me.data.features.mean(axis=0) if len(me.data) else 0.0
        self.states[me.agent] = me.model
        me.send("model", np.zeros(3), me.public("zeros"))

    def step(self, me):
        super().step(me)
        me.model += self.states[(me.agent + 1) % len(self.states)]


@pytest.mark.parametrize(
    ("protocol", "complaint"),
    [
        (passive("start", everybodys_mean), "start of agent 0 sets model from something outside its own data"),
        (RemembersOthers, "from something outside its own data"),
        (passive("step", neighbours_sum), "sets model from something outside its own data, .*: coordinate .* apart"),
        (
            WritesToOthers,
            r"step of agent \d writes what is not its own: model of agent \d, coordinate 0 is 7 in place of",
        ),
        (passive("step", own_mean, "an average is harmless"), r"step of agent \d .* depends on the agent's data"),
        (passive("start", own_mean, "it is only a start"), r"start of agent \d .* depends on the agent's data"),
        (PeeksAtConstants, "from something outside its own data, state and inbox"),
        (RemembersItsMean, "it follows from what was released and heard"),
        (NoisyAtZero, "differs from the protocol without noise"),
        (
            passive("step", no_number),
            r"step of agent \d sets model to what is not a number .NaN., coordinate 1",
        ),
    ],
)
def test_the_contract_tests_catch(protocol, complaint):
    with pytest.raises(ContractViolation, match=complaint):
        check_contract(protocol, {})


@pytest.mark.parametrize(
    ("protocol", "complaint"),
    [
        (
            ForgetsItsNoise,
            "sends 'model' under laplace noise, but it depends on the agent's data beyond what was released",
        ),
        (LooksWhilePreparing, "constants that come from the data of others; .* list the name in assumed_public"),
        (ListsWithoutAssuming, "constants that come from the data of others; take them from problem.assumed"),
        (AssumesWithoutListing, "treats 'step sizes' as public, which is not listed in assumed_public"),
    ],
)
def test_the_contract_tests_catch_what_private_protocols_conceal(protocol, complaint):
    with pytest.raises(ContractViolation, match=complaint):
        check_contract(protocol, {"mu": 0.5, "confidence": [1.0] * AGENTS, "privacy": NOISY})


def test_constants_that_are_assumed_by_name_may_come_from_data_and_no_others():
    fields = protocol_parameters(ListsAndAssumes, {"mu": 0.5, "confidence": "count", "privacy": NOISY})
    check_own(ListsAndAssumes, fields)
    assert all(world.held for world in check_replay(ListsAndAssumes, fields).values())


def test_a_private_warm_start_says_that_it_is_computed_centrally():
    warm = {"mu": 0.5, "start": {"kind": "private_propagation", "epsilon": 0.5}, "radius": 1.0}
    assert CoordinateDescent.traits_for(protocol_parameters(CoordinateDescent, warm)).central
    assert not CoordinateDescent.traits_for(protocol_parameters(CoordinateDescent, {"mu": 0.5})).central


@pytest.fixture
def outlet():
    world = admitted_world(small_setting(empty=False), PassiveBroadcast, protocol_parameters(PassiveBroadcast, {}))
    world.protocol.steps.begin("step", world.peers[0], 0, 1, 1.0)
    return world.peers[0]


@pytest.mark.parametrize(
    ("does", "complaint"),
    [
        (lambda me: me.send("model", me.model, "none"), "needs a Release"),
        (lambda me: me.send("modle", me.model, me.plain()), "not a message kind"),
        (lambda me: me.send("model", me.model[:2], me.plain()), "carries 3 numbers, got 2"),
        (lambda me: me.send("model", me.model, me.plain(), to=2), "not a neighbour"),
        (lambda me: me.send("model", me.model, Release.plain(3, 0.0)), "a release of agent 3, sent by agent 0"),
        (lambda me: me.heard.fill(1.0), "read-only"),
        (lambda me: me.neighbours.fill(0), "read-only"),
        (lambda me: me.weights.fill(0.0), "read-only"),
    ],
)
def test_what_a_step_cannot_do_is_refused(outlet, does, complaint):
    with pytest.raises((TypeError, ValueError), match=complaint):
        does(outlet)


def test_a_sent_vector_is_a_copy_that_nobody_can_write(outlet):
    me = outlet
    me.send("model", me.model, me.plain())
    before = me.sent_[0].vector.copy()
    me.model += 1.0
    np.testing.assert_array_equal(me.sent_[0].vector, before)
    with pytest.raises(ValueError, match="read-only"):
        me.sent_[0].vector[0] = 1.0


@pytest.mark.parametrize(
    ("protocol", "schedule", "complaint"),
    [
        (NeighbourBarrier, "async", "'sketch' is made of rounds; use schedule: rounds"),
        (Star, "rounds", "reacts to single messages, which has no rounds; use schedule: async"),
        (PairwiseExchange, "rounds", "exchanges in pairs, which has no rounds"),
    ],
)
def test_a_schedule_that_does_not_fit_the_protocol_is_refused_with_a_sentence(protocol, schedule, complaint):
    with pytest.raises(InputError, match=complaint) as error:
        run_small(protocol, SketchParameters(kind="sketch", schedule=schedule))
    assert error.value.field == ("schedule",)


def test_a_stream_asked_for_twice_in_a_step_goes_on_and_begins_anew_in_the_next(outlet):
    """Two releases of one step must not carry the same noise."""
    me = outlet
    me.open_({}, 0, 4, 1.0, acts=True)
    first, second = me.stream("noise").normal(), me.stream("noise").normal()
    assert first != second
    me.open_({}, 0, 4, 1.0, acts=True)
    assert me.stream("noise").normal() == first
    me.open_({}, 0, 5, 2.0, acts=True)
    assert me.stream("noise").normal() != first


def test_the_data_that_all_runs_of_a_seed_share_cannot_be_written_by_a_step():
    with pytest.raises(StepFailure, match="read-only"):
        run_small(WritesElsewhere, SketchParameters(kind="sketch"), empty=False)


def test_a_block_is_written_into_and_never_replaced():
    """Otherwise a run would go on with a model that the recorder never sees."""
    world = admitted_world(small_setting(empty=False), PairwiseExchange, protocol_parameters(PairwiseExchange, {}))
    me = world.peers[0]
    me.model, me.moved = 7.0, 5.0
    assert (world.state.agent["model"][0] == 7.0).all()
    assert (world.state.edge["moved"].rows[world.setting.graph.edges_of(0)] == 5.0).all()


@pytest.mark.parametrize(
    ("field", "value"), [("trigger", "rounds"), ("inbox", "newest"), ("exchange", "pairs"), ("unanswered", "wait")]
)
def test_a_trait_that_is_none_of_the_admissible_ones_is_refused(field, value):
    with pytest.raises(ValueError, match=rf"Traits: {field} = '{value}': admissible: \w+, \w+"):
        Traits(**{field: value})


@pytest.mark.parametrize("field", ["directed", "changing"])
def test_an_exchange_in_pairs_needs_edges_that_stay_both_ways(field):
    with pytest.raises(ValueError, match=f"Traits: {field} = True: an exchange in pairs needs edges that stay"):
        Traits(exchange="pairwise", **{field: True})


def test_what_nobody_can_hear_is_neither_sent_nor_charged():
    world = run_small(PassiveBroadcast, SketchParameters(kind="sketch"), agents=1, empty=False)
    assert world.activations > 0
    assert world.traffic.messages == 0
    assert world.ledger.epsilon("verified", 1e-5).tolist() == [0.0]


class Counts(PassiveBroadcast):
    """Remembers the runs before it."""

    made = itertools.count()

    def step(self, me):
        super().step(me)
        me.model += next(self.made)


def test_a_step_that_remembers_the_runs_before_is_caught():
    with pytest.raises(ContractViolation, match="steps that are made again differ from steps one by one in"):
        check_engines(Counts, protocol_parameters(Counts, {}))


def test_post_processing_is_refused_before_anything_was_released_or_heard():
    with pytest.raises(StepFailure, match="neither released nor heard anything"):
        run_small(NeverCharges, protocol_parameters(NeverCharges, {}), empty=False)


class LacksOneHalf(PairwiseExchange):
    """Does not answer requests."""

    respond = None


def test_an_exchange_that_lacks_a_half_is_refused():
    said = "LacksOneHalf exchanges pairwise, but has no function respond"
    with pytest.raises(ContractViolation, match=said):
        check_contract(LacksOneHalf, {})
    with pytest.raises(InputError, match=said):
        run_small(LacksOneHalf, protocol_parameters(LacksOneHalf, {}))
