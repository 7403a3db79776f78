"""What a run says about privacy: for whom, what is verified, what was not looked at, and noise for whole agents."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.agents.tables import Shard
from hushnet.protocols import catalog
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.feature_sharing import FeatureSharing
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.noise import UNBOUNDED, GradientNoise
from hushnet.protocols.privacy.budget import GradientPrivacy
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.simulator.contract import check_replay
from hushnet.simulator.contract.bench import protocol_parameters, small_graph, small_setting, small_task
from hushnet.simulator.contract.neighbours import groups
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.language.loading import load
from hushnet.simulator.recording.privacy_statement import KEPT, SHARED_NOISE, UNSEEN, delta_warnings, privacy_statement
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..engine.driving import drive
from ..protocols.worlds import example
from .planted.base import Descent, Waking, variant
from .sampled_gossip import fields_of, verdict_of

CLIPPED = {"mechanism": "gaussian", "sensitivity": "clip", "clip": 1.0}
TARGET = {**CLIPPED, "target": {"verified": 2.0, "delta": 1e-5}, "updates": 10}


def statement_of(protocol, **fields):
    statement, _ = privacy_statement(example(protocol, **fields), "construction")
    assert statement is not None
    return statement


def test_printed_noise_has_its_claim_beside_an_infinite_epsilon_and_the_reason():
    statement = statement_of(FeatureSharing, split=True, noise={"scale": 1e4})
    assert 0 < statement["claimed"] < math.inf
    assert math.isinf(statement["verified"])
    assert statement["flagged"]
    (because,) = statement["because"]
    assert "range of the party's columns" in because


def test_a_statement_is_about_the_role_that_is_protected_and_names_what_others_reveal():
    world = example(FeatureSharing, split=True, privacy=TARGET)
    statement, _ = privacy_statement(world, "construction")
    assert statement["verified"] == pytest.approx(2.0, rel=1e-3)
    assert not statement["flagged"]
    assert statement["because"] == []
    assert statement["role"] == "party"
    (reason,) = statement["unprotected"]["centre"]
    assert "labels" in reason
    assert (statement["unit"], statement["adjacency"]) == (["party"], ["replace-one"])
    assert math.isinf(world.ledger.verified(1e-5)[0])


def test_recorded_epsilons_are_those_of_the_protected_agents():
    world = example(FeatureSharing, split=True, privacy=TARGET)
    recorder = Recorder(("epsilon",))
    recorder.sample(world, final=True)
    values = recorder.trace().set_index(["metric", "statistic"])["value"]
    assert values["epsilon_verified", "worst"] == pytest.approx(2.0, rel=1e-3)
    assert values["epsilon_verified", "median"] == pytest.approx(2.0, rel=1e-3)


def test_strict_says_which_inputs_make_it_infinite():
    statement = statement_of(PerturbedAdmm, noise={"alpha": 3.0, "strict": True})
    assert math.isinf(statement["verified"])
    (because,) = statement["because"]
    assert because.startswith("strict")
    assert statement["assumed_public"][0] in because


@pytest.mark.parametrize(("bounds", "reasons"), [({}, [UNBOUNDED]), ({"l1": 4.0}, [])])
def test_gradients_without_a_bound_say_so(bounds, reasons):
    claimed = {"mechanism": "laplace", "multiplier": 1.0, "sensitivity": "claimed"}
    parameters = protocol_parameters(CoordinateDescent, {"mu": 1.0, "smoothness": "data", "privacy": claimed})
    task = replace(small_task(empty=False), bounds=bounds)
    world = World(replace(small_setting(time=5.0), task=task, graph=small_graph()), CoordinateDescent, parameters)
    drive(world)
    statement, _ = privacy_statement(world, "construction")
    assert statement["because"] == reasons
    assert math.isinf(statement["verified"]) == bool(reasons)


@pytest.mark.parametrize(
    ("protocol", "fields"),
    [
        (PerturbedAdmm, {"noise": {"alpha": 3.0}}),
        (ModelPropagation, {"privacy": {"mechanism": "gamma", "multiplier": 1.0, "sensitivity": "claimed"}}),
    ],
)
def test_minimisers_on_rows_without_a_bound_say_so(protocol, fields):
    task = replace(small_task(empty=False), bounds={})
    setting = replace(small_setting(time=5.0), task=task, graph=small_graph())
    world = World(setting, protocol, protocol_parameters(protocol, fields))
    drive(world)
    statement, _ = privacy_statement(world, "construction")
    assert math.isinf(statement["verified"])
    assert statement["because"] == [UNBOUNDED]


@pytest.mark.parametrize(
    ("protocol", "split", "words"),
    [
        (CoordinateDescent, False, "publishing one record in full would satisfy it"),
        (FeatureSharing, True, "publishing all of a party with that probability would satisfy it"),
    ],
)
def test_a_large_delta_is_warned_about_in_terms_of_what_is_protected(protocol, split, words):
    privacy = {**TARGET, "target": {"verified": 2.0, "delta": 0.5}}
    _, (warning,) = privacy_statement(example(protocol, split=split, privacy=privacy), "construction")
    assert warning.startswith("delta 0.5 is not below 1/m")
    assert warning.endswith(words)


def test_a_statement_says_what_no_epsilon_covers():
    rows, columns = (
        statement_of(CoordinateDescent, mu=1.0, privacy=TARGET),
        statement_of(FeatureSharing, split=True, privacy=TARGET),
    )
    tables, shared = rows["not_covered"]
    assert "computed from raw data" in tables
    assert "publish at most one" in shared
    assert [text for text in columns["not_covered"] if text not in rows["not_covered"]] == [KEPT]


def test_what_no_replay_can_show_is_said_where_an_epsilon_rests_on_one():
    world = example(CoordinateDescent, mu=1.0, privacy=TARGET)
    built, replayed = (privacy_statement(world, how)[0] for how in ("construction", "replay"))
    assert (built["verified_by"], replayed["verified_by"]) == ("construction", "replay")
    assert [text for text in replayed["not_covered"] if text not in built["not_covered"]] == [UNSEEN]
    assert "problem.assumed(...)" in UNSEEN
    assert "deliberate fraud of a plug-in" in UNSEEN


def test_a_statement_is_about_the_worst_agent_where_agents_spend_differently():
    parameters = protocol_parameters(
        CoordinateDescent, {"mu": 1.0, "privacy": {**CLIPPED, "multiplier": 3.0, "updates": 10}}
    )
    world = World(small_setting(time=4.0), CoordinateDescent, parameters)
    drive(world)
    statement, _ = privacy_statement(world, "construction")
    for which in ("claimed", "verified"):
        spent = world.ledger.epsilon(which, statement["delta"])
        assert spent.min() < spent.mean() < spent.max() < math.inf
        assert statement[which] == spent.max()


def test_an_epsilon_holds_against_everyone_on_the_wire_who_hears_all_that_everybody_sends():
    assert statement_of(CoordinateDescent, mu=1.0, privacy=TARGET)["observer"] == "everyone on the wire"


def test_two_runs_of_one_seed_give_an_exact_update_back():
    def models(multiplier):
        world = example(CoordinateDescent, mu=1.0, privacy={**CLIPPED, "multiplier": multiplier, "updates": 1})
        return world.protocol.models(world.state)

    assert "epsilons do not add" in SHARED_NOISE
    one, two, exact = models(1.0), models(2.0), models(1e-9)
    given_back = 2 * one - two
    assert not np.isclose(one, exact, atol=1e-6).all(axis=1).any()
    # Who steps first has heard nothing but the start; what others heard has noise of its own.
    assert np.isclose(given_back, exact, atol=1e-6).all(axis=1).any()


FIELDS = fields_of("gaussian")


def run(protocol, **how):
    """A world of eight agents after its run."""
    setting = small_setting(agents=8, time=2.0, empty=False)
    world = World(setting, protocol, protocol_parameters(protocol, FIELDS), **how)
    EventEngine().run(world)
    return world


class RawOfOne(Waking):
    """Noise for everybody but agent 2, who says so."""

    def noisy(self, me, release, exact):
        return exact if me.agent == 2 else super().noisy(me, release, exact)

    def send(self, me, release):
        me.send("model", me.model, me.plain() if me.agent == 2 else release)


def test_an_agent_that_is_exempt_is_not_verified():
    found = verdict_of(RawOfOne, FIELDS)
    assert found.status == "passed", found.text
    assert found.unlooked == {2: "it sends something without noise"}
    world = run(Descent, unlooked=found.unlooked)
    verified = world.ledger.verified(1e-5)
    assert np.isinf(verified[2])
    assert np.isfinite(np.delete(verified, 2)).all()
    assert any("without noise" in reason for reason in privacy_statement(world, "replay")[0]["because"])


def test_shared_parts_stand_among_what_is_assumed_public():
    shares_labels = variant("SharesLabels", shared_parts=("labels",))
    assert verdict_of(shares_labels, FIELDS).status == "passed"
    statement = privacy_statement(run(shares_labels), "replay")[0]
    assert "labels of all records, which neighbouring data sets share" in statement["assumed_public"]
    assert statement["adjacency"] == ["replace-one, labels in common"]


def test_neighbouring_data_sets_that_share_everything_are_refused():
    found = verdict_of(variant("SharesEverything", shared_parts=("features", "labels")), FIELDS)
    assert found.status == "failed"
    assert "nothing is protected" in found.details


def test_a_replay_in_which_no_data_changed_has_not_checked_anything(monkeypatch):
    monkeypatch.setattr("hushnet.simulator.contract.replay.differing", lambda *of: frozenset())
    found = verdict_of(Descent, FIELDS)
    assert found.status == "unchecked"
    assert found.unproved


def test_a_log_jacobian_has_no_default():
    release = Release(0, 0.0, "gamma", "l2", 1.0, "clip", 1.0, 2.0, 0.5, 0.0, 1)
    with pytest.raises(TypeError, match="log_jacobian"):
        release.perturb_objective(lambda b: b, lambda s: s, size=3, rng=np.random.default_rng(1))


def test_any_two_of_the_agents_that_are_changed_in_groups_are_kept_apart():
    for count in (2, 3, 6, 7, 20):
        found = groups(list(range(count)), most=6, seed=0)
        for one in range(count):
            for other in set(range(count)) - {one}:
                assert any(one in group and other not in group for group in found)
    assert len(groups(list(range(1000)), most=6, seed=0)) == 6
    assert groups([3], most=6, seed=0) == []


GIVEN = {"mechanism": "gaussian", "multiplier": 2.0, "updates": 3, "clip": 0.2}
USERS = {
    "coordinate_descent": {"mu": 0.5, "privacy": {**GIVEN, "unit": "agent"}},
    "decentralised_sgd": {"privacy": {**GIVEN, "unit": "agent"}},
    "muffliato": {"privacy": {**GIVEN, "updates": 1, "unit": "agent"}},
}


@pytest.mark.parametrize("size", [3.0, 1e6, 1e300])
@pytest.mark.parametrize(("unit", "moved"), [("record", 2 * 0.2 / 4), ("agent", 2 * 0.2)])
def test_opposite_data_move_a_mean_gradient_by_what_noise_is_scaled_for(unit, moved, size):
    task = small_setting().task
    noise = GradientNoise(GradientPrivacy(**GIVEN, unit=unit), task)
    rows = np.full((4, task.dimension), size)
    signs = np.array([-1.0, 1.0, 1.0, 1.0]) if unit == "record" else -np.ones(4)
    means = [
        noise.mean_gradient(np.zeros(task.dimension), Shard(side[:, None] * rows, np.ones(4)))
        for side in (np.ones(4), signs)
    ]
    assert np.linalg.norm(means[0] - means[1]) == pytest.approx(moved, rel=1e-12)
    assert noise.sensitivities(4) == (pytest.approx(moved), pytest.approx(moved))


@pytest.mark.parametrize("kind", USERS)
def test_all_records_of_an_agent_are_protected_and_replay_agrees(kind):
    protocol = catalog.resolve(kind)
    world = example(protocol, **USERS[kind])
    statement = privacy_statement(world, "construction")[0]
    assert statement is not None
    assert statement["unit"] == ["agent"]
    record = {**USERS[kind], "privacy": {**USERS[kind]["privacy"], "unit": "record"}}
    same = privacy_statement(example(protocol, **record), "construction")[0]
    assert same is not None
    assert statement["verified"] == same["verified"] > 0  # the multiplier is of the sensitivity, whatever the unit
    check_replay(protocol, protocol_parameters(protocol, USERS[kind]))


@pytest.mark.parametrize(
    ("delta", "counts", "unit", "words"),
    [
        (1e-2, [10, 90], "record", ""),
        (1 / 90, [10, 90], "record", "the agent with the most records (m = 90)"),
        (0.4, [10, 90], "agent", ""),
        (0.5, [10, 90], "agent", "1/n for n = 2 agents"),
        (0.5, [], "record", ""),
    ],
)
def test_a_delta_that_promises_little_is_named(delta, counts, unit, words):
    found = delta_warnings(delta, np.array(counts, dtype=np.int64), unit)
    assert bool(found) == bool(words)
    assert all(words in sentence for sentence in found)


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        ({"kind": "local_dp", "privacy": {**GIVEN, "updates": 1, "unit": "agent"}}, "unit"),
        ({"kind": "dual_averaging", "gamma": 1.0, "privacy": {**GIVEN, "unit": "agent"}}, "unit"),
        (
            {
                "kind": "coordinate_descent",
                "mu": 0.5,
                "start": {"kind": "private_propagation", "budget": {"epsilon": 0.1}},
                "privacy": {**GIVEN, "unit": "agent"},
            },
            "start",
        ),
    ],
)
def test_protocols_without_such_noise_refuse_it(protocol, words):
    rows = {"kind": "linear_classification", "agents": 4, "dimension": 3}
    with pytest.raises(InputError, match=words):
        load({"schema": 1, "scenario": "unit", "task": rows, "protocols": {"mine": protocol}, "stop": {"time": 2}})
