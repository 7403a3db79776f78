"""Rounds with patience: which protocols still come to the optimum with them, and which cannot and refuse them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hushnet.agents.errors import InputError
from hushnet.protocols import catalog
from hushnet.simulator.contract.bench import protocol_parameters, relative_gap, small_task
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.world.world import World

from ..engine.driving import drive
from .columns import split_task, star
from .worlds import setting_of

PATIENT = {"kind": "rounds", "patience": 0.5}
FULL = {"sampling": "full", "mu": 0.1, "gamma": 1.0}


def gap_after(kind, time, schedule, *, trusting=False, seed=1, **fields):
    """The relative gap after so long with delays of two intervals; ``trusting`` runs what would be refused."""
    protocol = catalog.resolve(kind)
    if trusting:
        traits = replace(protocol.traits, needs_both_ends=False)
        protocol = type(protocol.__name__, (protocol,), {"traits": traits})
    task = split_task() if kind in SPLIT else small_task(empty=False)
    setting = setting_of(
        task=task,
        graph=star(task) if kind in SPLIT else None,
        stop=Stop(time=time),
        seed=seed,
        latency={"kind": "exponential", "mean": 2.0},
    )
    world = World(setting, protocol, protocol_parameters(protocol, {**fields, "schedule": schedule}))
    drive(world)
    return relative_gap(world)


SPLIT = ("feature_sharing", "stale_feature_sharing", "feature_sgd")
REFUSED = [
    ("consensus_admm", {}, (100.0, 400.0), 0.1),
    ("dual_averaging", FULL, (100.0, 500.0), 0.03),
    ("feature_sgd", {"batch": 10, "step_size": 0.3}, (500.0, 1500.0), 0.02),
]
"""Protocols that refuse patience, when to look, and what their gap then stays above with it."""


@pytest.mark.parametrize(("kind", "fields", "times", "stays_above"), REFUSED)
def test_with_patience_these_would_settle_on_something_wrong_and_with_repeats_they_do_not(
    kind, fields, times, stays_above
):
    patient = [gap_after(kind, time, PATIENT, trusting=True, **fields) for time in times]
    waiting = [gap_after(kind, time, "rounds", **fields) for time in times]
    assert min(patient) > stays_above
    assert waiting[1] < 0.5 * waiting[0]
    assert waiting[1] < stays_above


@pytest.mark.parametrize("kind", [kind for kind, *_ in REFUSED] + ["perturbed_admm"])
def test_patience_is_refused_where_both_ends_of_an_edge_need_one_round(kind):
    fields = {"noise": {"alpha": 3.0}} if kind == "perturbed_admm" else {}
    with pytest.raises(InputError, match=r"same round at both ends of an edge.* use resend_after") as error:
        gap_after(kind, 5.0, PATIENT, **fields)
    assert error.value.field == ("schedule", "patience")
    instead = catalog.resolve(kind).traits.instead
    assert instead in catalog.PROTOCOLS
    assert f"the protocol {instead}," in str(error.value)


@pytest.mark.parametrize(
    ("kind", "fields", "time"),
    [
        ("collaborative_admm", {}, 400.0),
        ("collaborative_admm", {"local_steps": 2}, 400.0),
        ("coordinate_descent", {"mu": 0.5}, 100.0),
        ("model_propagation", {"alpha": 0.5}, 100.0),
        ("feature_sharing", {"rho": 1.0}, 300.0),
        ("feature_sharing", {"rho": 1.0, "order": "gauss_seidel"}, 600.0),
        ("stale_feature_sharing", {"rho": 1.0}, 400.0),
    ],
)
def test_with_patience_these_come_to_the_optimum_all_the_same(kind, fields, time):
    """Stale models are made up for: by the next ones, or because messages say what the other end has to agree with."""
    gap = gap_after(kind, time, PATIENT, **fields)
    assert gap < 1e-6
    assert not catalog.resolve(kind).traits_for(protocol_parameters(catalog.resolve(kind), fields)).needs_both_ends


def test_push_sum_goes_on_towards_the_optimum_with_patience():
    """Its gap falls like 1 / t in any case."""
    gaps = np.array([gap_after("push_sum_dual_averaging", time, PATIENT, **FULL) for time in (50.0, 400.0)])
    assert gaps[1] < 0.3 * gaps[0] < 0.02
