"""ADMM sharing with bounded staleness: its parent where nothing is stale, at its optimum where much is."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.availability import Always, Window
from hushnet.protocols.algorithms.feature_sharing import FeatureSharing
from hushnet.protocols.algorithms.stale_feature_sharing import StaleFeatureSharing
from hushnet.simulator.contract import bench, check_engines, networks, small_settings
from hushnet.simulator.contract import checks as contract
from hushnet.simulator.network.clocks import Periodic
from hushnet.simulator.network.setting import Stop
from hushnet.simulator.recording.recorder import Recorder
from hushnet.simulator.world.world import World
from pydantic import ValidationError

from ..engine.driving import drive, fast_world
from .columns import ISOTROPIC, EveryRound, split_task, star
from .worlds import AWAY, BAD, LATE, setting_of


def made(
    protocol=StaleFeatureSharing,
    *,
    make=World,
    time=300.0,
    task=None,
    recorder=None,
    every=1.0,
    seed=5,
    fields=None,
    **setting,
) -> World:
    """A world that is ready to run; further arguments are those of `setting_of`."""
    task = task or split_task()
    setting = setting_of(task=task, graph=star(task), stop=Stop(time=time), seed=seed, **setting)
    spec = contract.protocol_parameters(protocol, fields or {})
    return make(setting, protocol, spec, recorder=recorder, every=every)


def world_of(*args, **kwargs) -> World:
    """The same, and it has run."""
    world = drive(made(*args, make=fast_world, **kwargs))
    assert world.traffic.conserved
    return world


def model_of(world: World) -> np.ndarray:
    return world.protocol.models(world.state)[0]


def steps_of(world: World) -> int:
    return int(world.state.agent["step"][0][0])


class Watched:
    """A run, and at every step of the centre the parties' models, z, y and the age of the oldest scores."""

    def __init__(self, **kwargs):
        world = made(**kwargs)
        steps, blocks = world.protocol.steps, world.state.agent
        make = steps.make
        self.models, self.z, self.y, self.ages = [], [], [], []

        def watched(phase, me):
            if me.role == "party" or phase == "start":
                make(phase, me)
                return
            before, stamps = me.step[0], [scores[-1] for scores in me.heard_scores]
            make(phase, me)
            if me.step[0] > before:
                self.models.append(model_of(world).copy())
                self.z.append(blocks["z"][0].copy())
                self.y.append(blocks["y"][0].copy())
                self.ages.append(before - min(stamps))

        steps.make = watched
        drive(world)


class EveryEpoch(EveryRound):
    """The parent's centre as well."""

    def __init__(self):
        super().__init__()
        self.z, self.y = [], []

    def sample(self, world, *, final):
        super().sample(world, final=final)
        self.z.append(world.state.agent["z"][0].copy())
        self.y.append(world.state.agent["y"][0].copy())


@pytest.mark.parametrize("network", [{}, LATE, BAD])
@pytest.mark.parametrize("availability", [None, AWAY])
def test_without_staleness_its_steps_are_the_epochs_of_the_parent_on_every_network(network, availability):
    fields, epochs = {"rho": 0.8}, 12
    variant = Watched(availability=availability, fields={**fields, "staleness": 1}, **network)
    common = Periodic(kind="periodic", phase="common")
    parent = EveryEpoch()
    world_of(FeatureSharing, time=2.0 * epochs, clock=common, recorder=parent, every=2.0, fields=fields)
    assert len(variant.models) >= epochs
    assert set(variant.ages) == {0.0}
    for one, other in ((variant.models, parent.models), (variant.z, parent.z), (variant.y, parent.y)):
        np.testing.assert_allclose(one[:epochs], other[1 : epochs + 1], atol=1e-8)


def test_it_reaches_the_optimum_where_messages_are_lost_and_parties_away():
    world = world_of(time=1500.0, fields={"rho": 0.3}, availability=AWAY, **BAD)
    np.testing.assert_allclose(model_of(world), world.protocol.objective().minimise()[0][0], atol=1e-6)


@pytest.mark.parametrize("staleness", [1, 2, 4])
def test_no_scores_are_older_than_the_bound_and_some_are_as_old(staleness):
    ages = Watched(availability=AWAY, fields={"staleness": staleness}, **BAD).ages
    assert max(ages) == staleness - 1


def conserved(**world) -> dict[str, np.ndarray]:
    recorder = Recorder(["conserved"])
    world_of(recorder=recorder, **world)
    return {name: rows["value"].to_numpy() for name, rows in recorder.trace().groupby("statistic")}


def test_y_is_the_slope_at_z_whatever_is_late_and_lost_and_the_sum_is_right_in_the_end():
    for network, availability in (({}, None), (LATE, None), (BAD, AWAY)):
        found = conserved(time=1500.0, every=5.0, fields={"rho": 0.3}, availability=availability, **network)
        assert set(found) == {"slopes", "scores"}
        assert found["slopes"].max() < 1e-8
        assert found["scores"].max() > 1e-3
        assert found["scores"][-1] < 1e-7


def test_a_party_that_has_left_stops_the_centre_after_as_many_steps_as_it_may_be_behind():
    leaving = Always(kind="always", leaves=Window(share=0.5, between=[20.0, 21.0]))
    bounded, free = (world_of(availability=leaving, seed=3, fields={"staleness": bound}) for bound in (3, "unbounded"))
    gone = [agent.index for agent in bounded.agents if agent.gone]
    assert gone
    assert 0 not in gone
    last = min(bounded.state.agent["sent"][party][-1] for party in gone)
    assert steps_of(bounded) == last + 3
    assert steps_of(free) > 5 * steps_of(bounded)


def test_a_repeat_is_not_a_release_and_a_party_stops_at_the_end_of_its_budget():
    world = world_of(fields={"privacy": {**ISOTROPIC, "updates": 7}}, **BAD)
    assert [world.ledger.releases(party) for party in (1, 2, 3)] == [7, 7, 7]
    assert np.isinf(world.ledger.verified(1e-5)[0])
    assert np.isfinite(world.ledger.verified(1e-5)[1:]).all()
    plenty = world_of(fields={"privacy": ISOTROPIC}, **BAD)
    for party in (1, 2, 3):
        assert plenty.ledger.releases(party) <= steps_of(plenty) < plenty.agents[party].updates


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"staleness": 0}, "greater than or equal to 1"),
        ({"staleness": "forever"}, "unbounded"),
        ({"damping": -1.0}, "greater than or equal to 0"),
        ({"privacy": {**ISOTROPIC, "mechanism": "laplace"}}, "Gaussian noise"),
    ],
)
def test_what_makes_no_sense_is_refused(fields, said):
    with pytest.raises(ValidationError, match=said):
        contract.protocol_parameters(StaleFeatureSharing, fields)


@pytest.fixture
def on_split_features(monkeypatch):
    """The contract's small task and graph, with features split among five parties in a star."""

    def task(agents=6, *, seed=20, empty=True):
        return split_task([1] * max(agents - 1, 1), 6, seed=seed)

    for module in (bench, small_settings):
        monkeypatch.setattr(module, "small_task", task)
        monkeypatch.setattr(module, "small_graph", lambda agents=6: star(task(agents)))


@pytest.mark.parametrize("fields", [{}, {"privacy": ISOTROPIC}])
@pytest.mark.parametrize("news", [5.0, 0.0])
def test_steps_keep_the_contract(on_split_features, monkeypatch, fields, news):
    """Single steps are looked at with a target that is news to the parties, and with one that is not."""
    hear = bench.Bench.hear

    def hear_number(bench):
        hear(bench)
        for block in bench.inbox.values.values():
            for edge in range(len(block)):
                block[edge][-1:] = news

    monkeypatch.setattr(bench.Bench, "hear", hear_number)
    parameters = contract.protocol_parameters(StaleFeatureSharing, fields)
    contract.check_locality(StaleFeatureSharing, parameters)
    contract.check_public_messages(StaleFeatureSharing, parameters)


@pytest.mark.parametrize(
    "fields", [pytest.param({}, marks=pytest.mark.slow), {"staleness": "unbounded", "damping": 1.0}]
)
def test_runs_keep_the_contract(on_split_features, fields):
    parameters = contract.protocol_parameters(StaleFeatureSharing, fields)
    contract.check_zero_noise(StaleFeatureSharing, parameters)
    networks.check_networks(StaleFeatureSharing, parameters)
    check_engines(StaleFeatureSharing, parameters)
