"""What a replay has not looked at is not verified; the mistakes themselves are planted in `tests.privacy.planted`."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.protocols.privacy.mechanisms import Release
from hushnet.simulator.contract.bench import protocol_parameters, small_setting
from hushnet.simulator.contract.neighbours import groups
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.recording.privacy_statement import privacy_statement
from hushnet.simulator.world.world import World

from .planted.base import Descent, Waking, variant
from .sampled_gossip import fields_of, verdict_of

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
