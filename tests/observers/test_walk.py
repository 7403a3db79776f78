"""What single agents learn of a token that walks: visits in their order, and noise between two that they saw."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hushnet.protocols.algorithms.random_walk_sgd import RandomWalkSGD
from hushnet.simulator.contract import ContractViolation, check_replay, protocol_parameters
from hushnet.simulator.observers import deliveries_of, release_record

from .test_any_world import LOSSY, check_order
from .worlds import DELTA, NOISE, Vectors, found, mu_of, ran

GRAPHS = {
    "path": nx.path_graph(5),
    "5-cube": nx.convert_node_labels_to_integers(nx.hypercube_graph(5)),
    "barbell": nx.barbell_graph(3, 1),
    "random": nx.random_regular_graph(3, 16, seed=3),
}


def walked(graph, *, step_size=0.1, time=60.0, updates=50, **given):
    """A token that walks, sigma = 2 Delta at every visit; and what was sent, by agent and tick."""
    fields = {"step_size": step_size, "privacy": {**NOISE, "updates": updates}}
    vectors = Vectors()
    ran(graph, fields, protocol=RandomWalkSGD, time=time, observer=vectors, **given)
    tokens = {key: int(vector[-1]) for key, vector in vectors.sent_at.items() if len(vector) > 1}
    return ran(graph, fields, protocol=RandomWalkSGD, time=time, **given), tokens


def owners_of(tokens):
    """Whose each visit was: whoever has passed on token k has made all visits since it was passed on before."""
    found = {}
    for number, sender in sorted({number: sender for (sender, _), number in tokens.items()}.items()):
        for visit in range(len(found) + 1, number + 1):
            found[visit] = sender
    return found


def mu_by_hand(world, tokens, members, heard="delivered"):
    """mu^2 of each stretch between two tokens that were seen: the shortest way below the sums of what moves them."""
    owners, deliveries = owners_of(tokens), deliveries_of(world)
    seen = {0, *(visit for visit, owner in owners.items() if owner in members)}
    seen |= {visit - 1 for visit, owner in owners.items() if owner in members}
    for copy in np.flatnonzero(np.isin(deliveries.receiver, members) & (deliveries.heard | (heard == "sent"))):
        step = deliveries.made_by[copy]
        seen.add(tokens[int(deliveries.agent[step]), int(deliveries.tick[step])])
    squares, marks = np.zeros(world.setting.graph.agents), sorted(seen)
    for begin, end in pairwise(marks):
        stretch = range(begin + 1, end + 1)
        for agent in {owners[visit] for visit in stretch} - set(members):
            sums = np.cumsum([0, *(owners[visit] == agent for visit in stretch)])
            at = 0
            while at < len(stretch):
                slopes = [(sums[k] - sums[at]) / (4 * (k - at)) for k in range(at + 1, len(sums))]
                least = max(k for k, slope in enumerate(slopes) if slope <= min(slopes) + 1e-15)
                squares[agent] += 4 * (least + 1) * slopes[least] ** 2
                at += least + 1
    return np.sqrt(squares)


@pytest.mark.parametrize(("name", "network"), [*zip(GRAPHS, [{}, LOSSY, LOSSY, {}], strict=True)])
def test_noise_of_later_visits_hides_a_visit(name, network):
    """A visit that is seen j visits later has mu = (Delta / sigma) / sqrt(j + 1), where it is its agent's only one."""
    world, tokens = walked(GRAPHS[name], network=network)
    record = release_record(world, deliveries_of(world), DELTA)
    assert record.at_start.sum() == 0
    visits = np.bincount(record.agent).tolist()
    passed = np.bincount(list(owners_of(tokens).values()), minlength=len(visits))
    assert sum(visits) - 1 <= passed.sum() <= sum(visits)  # the last one may not have been passed on
    single = found(world).epsilons
    wanted = np.array([mu_by_hand(world, tokens, [one]) for one in range(len(visits))])
    flow = mu_of(flow_of(world))
    others = ~np.eye(len(visits), dtype=bool)
    np.testing.assert_allclose(mu_of(single)[others], wanted[others], atol=2e-5)
    members = [1, 3]
    together = mu_of(found(world, {"coalition": members}).epsilons)[0]
    rest = ~np.isin(np.arange(len(visits)), members)
    np.testing.assert_allclose(together[rest], mu_by_hand(world, tokens, members)[rest], atol=2e-5)
    assert (wanted <= flow + 2e-5)[others].all()
    assert (mu_of(single)[others] < flow[others] * 0.9).any()
    check_order(world)


def flow_of(world):
    """Epsilon by data flow alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RandomWalkSGD, "chain_of_updates", lambda _: False)
        return found(world).epsilons


def test_a_route_does_not_tell_anything():
    """Other noise, and other data: the same messages at the same times, to the same agents."""
    plain, loud = (walked(GRAPHS["random"], network=LOSSY, step_size=size)[0] for size in (0.1, 0.3))
    one, other = (deliveries_of(world) for world in (plain, loud))
    for name in ("sender", "receiver", "kind", "sent", "fate", "made_by", "read_by"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("unit", ["record", "agent"])
def test_the_replay_holds(unit):
    given = {"privacy": {**NOISE, "updates": 3, "unit": unit}}
    assert check_replay(RandomWalkSGD, protocol_parameters(RandomWalkSGD, given))


class GoesByTheModel(RandomWalkSGD):
    """A token that goes to the first neighbour or the last, as the model says."""

    def step(self, me):
        super().step(me)
        if me.sent_ and me.sent_[-1].kind == "token":
            last = me.sent_.pop()
            me.walk[3] = me.neighbours[0 if me.model[0] > 0 else -1]
            me.send("token", last.vector, last.release, to=int(me.walk[3]))


def test_a_route_by_numbers_is_found():
    given = {"privacy": {**NOISE, "updates": 3}}
    with pytest.raises(ContractViolation, match=r"on other data .* sends other messages"):
        check_replay(GoesByTheModel, protocol_parameters(GoesByTheModel, given))


def test_who_has_spent_its_visits_hands_the_token_on():
    world, tokens = walked(nx.path_graph(3), updates=2, time=80.0)
    assert world.ledger.histogram(1).total() == 2
    assert max(tokens.values()) > 8
