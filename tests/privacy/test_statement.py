"""What a run says about privacy: for whom, what is claimed and verified, and why nothing can be verified."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hushnet.protocols.algorithms.coordinate_descent import CoordinateDescent
from hushnet.protocols.algorithms.feature_sharing import FeatureSharing
from hushnet.protocols.algorithms.model_propagation import ModelPropagation
from hushnet.protocols.algorithms.perturbed_admm import PerturbedAdmm
from hushnet.protocols.noise import UNBOUNDED
from hushnet.simulator.contract.bench import example, protocol_parameters, small_graph, small_setting, small_task
from hushnet.simulator.recording.privacy_statement import KEPT, SHARED_NOISE, UNSEEN, privacy_statement
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World

from ..engine.driving import drive

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
