"""Linear bounds where agents release a value more than once, each time with fresh noise."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hushnet.protocols.algorithms.muffliato import Muffliato
from hushnet.simulator.contract import ContractViolation, check_replay, protocol_parameters
from hushnet.simulator.language.observer_parameters import ObserverParameters
from hushnet.simulator.observers import deliveries_of, linear_view

from .noisy_averaging import NoisyAveraging, StatesOneRelease, averaging, bounds_of
from .worlds import DELTA, ENGINES, found, gossip, mu_of, ran

NOISY = {"rounds": 3, "privacy": {"mechanism": "gaussian", "multiplier": 2.0, "clip": 0.2, "updates": 3}}
LOSSY = {"latency": {"kind": "exponential", "mean": 0.7}, "loss": 0.25}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_path_by_hand(rounds, engine):
    """A neighbour knows every value of the end of a path, sqrt(rounds) / 2.

    Two steps away, what comes first is a sixth of the end's first value beside the middle's second one, from the second
    round on: with equal noise mu^2 = (1/6)^2 / (1 + (1/6)^2) / 4.
    """
    result = found(averaging(nx.path_graph(3), rounds, run=ran, engine=engine))
    assert result.mistake == ""
    mu = mu_of(result.epsilons)
    np.testing.assert_allclose(mu[1, [0, 2]], np.sqrt(rounds) / 2, atol=1e-8)
    if rounds < 3:
        np.testing.assert_allclose(mu[2, 0], 0.0 if rounds == 1 else 0.5 / np.sqrt(37), atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_lies_between_equal_moves_and_innovations_in_order_of_time(seed):
    given = {"fields": {"schedule": "async"}, "network": LOSSY} if seed else {}
    world = averaging(nx.random_regular_graph(3, 12, seed=seed), 4, run=ran, seed=seed, **given)
    result, deliveries = found(world), deliveries_of(world)
    view = linear_view(world, deliveries)
    for observer in range(12):
        heard = (deliveries.receiver == observer) & deliveries.heard
        unknown = view.owners != observer
        basis = innovations(view.heard(deliveries, heard)[:, unknown])
        above, below = bounds_of(basis, np.full(unknown.sum(), 0.5), view.owners[unknown], 12)
        others = np.arange(12) != observer
        mu = mu_of(result.epsilons)[observer, others]
        assert (mu**2 <= above[others] * (1 + 1e-6) + 1e-12).all()
        assert (mu**2 >= below[others] * (1 - 1e-6) - 1e-12).all()
    assert (result.epsilons <= world.ledger.epsilon("verified", DELTA) * (1 + 1e-9))[~np.eye(12, dtype=bool)].all()


def innovations(rows):
    """(r, R) Gram-Schmidt of rows in their order."""
    found = []
    for row in rows:
        rest = row.copy()
        for _ in range(2):
            for one in found:
                rest -= (rest @ one) * one
        if np.linalg.norm(rest) > 1e-10 * np.linalg.norm(row):
            found.append(rest / np.linalg.norm(rest))
    return np.array(found).reshape(-1, rows.shape[1])


def test_a_release_names_those_that_it_may_depend_on():
    """In rounds, each on its agent's last one and on what its neighbours released in the round before."""
    world = averaging(nx.path_graph(3), 2, run=ran)
    world.learned.observers = ObserverParameters(against=["everyone"], record=True)
    releases = world.learned.outcome(world, DELTA)[0]["releases"]
    assert releases[["agent", "step"]].to_numpy().tolist() == [[str(k), n] for k in range(3) for n in range(2)]
    assert releases["parents"].tolist() == [[], [0, 2], [], [0, 2, 4], [], [2, 4]]
    np.testing.assert_allclose(releases["scale"], releases["multiplier"] * releases["sensitivity"])
    assert set(releases["sensitivity"]) == {2 * 0.2 / 3}
    assert set(releases["dimension"]) == {3}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("protocol", [NoisyAveraging, Muffliato])
@pytest.mark.parametrize("schedule", [None, "async", {"kind": "rounds", "patience": 0.5}])
def test_bounds_are_linear_at_all_times(protocol, engine, schedule):
    """In the middle of a run, with messages under way, no map is found wrong that is right."""
    asked: list[tuple[str, bool]] = []
    fields = {} if schedule is None else {"schedule": schedule}
    if protocol is NoisyAveraging:
        fields = fields if schedule == "async" else {}
        averaging(nx.cycle_graph(6), 6, run=ran, engine=engine, network=LOSSY, fields=fields, mistakes=asked, time=8.0)
    else:
        gossip(nx.cycle_graph(6), 6, engine=engine, network=LOSSY, fields=fields, mistakes=asked, time=8.0)
    assert {mistake for mistake, _ in asked} == {""}
    assert len(asked) > 5
    assert asked[-1][1]


def test_the_contract_counts_releases_of_a_map():
    assert check_replay(NoisyAveraging, protocol_parameters(NoisyAveraging, NOISY))
    with pytest.raises(ContractViolation, match="charged for other releases"):
        check_replay(StatesOneRelease, protocol_parameters(StatesOneRelease, NOISY))
