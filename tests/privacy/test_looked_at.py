"""What `hushnet run` does not look at is not verified: mistakes that once passed its contract, and the honest base.

The base takes one clipped mean gradient, perturbs it, mixes models with its neighbours, and stops after six releases.
"""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.agents.clipping import clip_rows
from hushnet.protocols.algorithms.local_dp import LocalDP
from hushnet.protocols.base import Layout, MessageKind, Protocol, ProtocolParameters
from hushnet.protocols.privacy.budget import Privacy
from hushnet.protocols.privacy.mechanisms import Release, mechanism_of
from hushnet.protocols.steps import Constants, average, perturbed
from hushnet.protocols.steps.declarations import StepNoise
from hushnet.simulator.contract.bench import protocol_parameters, small_setting
from hushnet.simulator.contract.verdict import judged
from hushnet.simulator.engine.selection import EventEngine
from hushnet.simulator.recording.privacy_statement import privacy_statement
from hushnet.simulator.world.world import World

CLIP, MULTIPLIER, UPDATES = 0.5, 3.0, 6
NOISES = ("gaussian", "laplace", "gamma")


class BaseParameters(ProtocolParameters):
    privacy: Privacy | None = None


class BaseNoise(StepNoise):
    """One release of the mean of clipped gradients a step."""

    def __init__(self, protocol, mechanism, dimension):
        self.protocol, self._mechanism, self._dimension = protocol, mechanism, dimension

    mechanism = property(lambda self: self._mechanism)
    dimension = property(lambda self: self._dimension)

    def release(self, me, **changed):
        return Release(**{**self.terms(me), **changed})

    def terms(self, me):
        sensitivity = 2 * CLIP / max(len(me.data), 1)
        return {
            "agent": me.agent,
            "time": me.now,
            "mechanism": self._mechanism,
            "norm": mechanism_of(self._mechanism).norm,
            "sensitivity": sensitivity,
            "sensitivity_source": "clip",
            "verified_sensitivity": sensitivity,
            "scale": MULTIPLIER * sensitivity,
            "claimed_epsilon": 1.0,
            "claimed_delta": 1e-6,
            "recipients": len(me.neighbours),
            "dimension": self._dimension,
            **self.protocol.terms(me),
        }

    def scales(self):
        counts = np.maximum(self.protocol.problem.task.train.counts, 1)
        return (MULTIPLIER * 2 * CLIP / counts)[:, None]


class Base(Protocol):
    """The honest base."""

    Parameters = BaseParameters

    def prepare(self):
        self.step_noise = BaseNoise(self, self.parameters.privacy.mechanism, self.problem.task.dimension)

    def layout(self):
        p = self.problem.task.dimension
        return Layout(agent={"model": p}, messages={"model": MessageKind(p, mirrors="model")})

    def start(self, me):
        me.send("model", me.model, me.public("zeros"))

    @property
    def privacy(self):
        return self.parameters.privacy

    def terms(self, me):
        """What of the release is otherwise."""
        return {}

    def constants(self):
        return Constants(run={"in_l1": self.parameters.privacy.norm == "l1"})

    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, mean_gradient(me, CLIP))
        me.model = (me.model + average(me)) / 2 - 0.1 * noisy
        me.message = me.model
        return False


def mean_gradient(me, bound, kept=None):
    """The mean of clipped gradients; those that are kept are not clipped."""
    found = gradients(me.features, me.labels, me.model)
    clipped = clip_rows(found, bound, norm="l1" if me.in_l1 else "l2")
    if kept is not None:
        clipped[kept] = np.clip(found[kept], -1e6, 1e6)
    return clipped.mean(axis=0)


def gradients(rows, labels, model):
    """(m, p) gradients of the logistic loss, whatever the labels."""
    y = np.sign(labels)
    with np.errstate(over="ignore"):
        return -(y / (1 + np.exp(np.clip(y * (rows @ model), -500, 500))))[:, None] * rows


def verdict(protocol, mechanism="gaussian", *, agents=8, time=12.0, privacy=None, **fields):
    """What `hushnet run` says of a protocol's contract."""
    given = {"mechanism": mechanism, "multiplier": MULTIPLIER, "clip": CLIP, **(privacy or {})}
    parameters = protocol_parameters(protocol, {"privacy": given, **fields})

    def make(setting, watch):
        return World(setting, protocol, parameters, watch=watch), EventEngine()

    return judged(protocol, parameters, small_setting(agents=agents, time=time, empty=False), make)


@pytest.mark.parametrize("mechanism", NOISES)
def test_the_honest_base_passes(mechanism):
    found = verdict(Base, mechanism)
    assert found.status == "passed", found.text
    assert found.unlooked == {}
    assert any("own world" in part for part in found.looked_at)


# Tolerances


class TenTimes(Base):
    """Clips at ten times what it is charged for."""

    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, mean_gradient(me, 10 * CLIP))
        me.model = (me.model + average(me)) / 2 - 0.1 * noisy
        me.message = me.model
        return False


class TenTimesWithOffset(Base):
    """The same, hidden in the rounding of a large number."""

    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, mean_gradient(me, 10 * CLIP) + 1e14)
        me.model = (me.model + average(me)) / 2 - 0.1 * (noisy - 1e14)
        me.message = me.model
        return False


class TenTimesWithLargerOffset(Base):
    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, mean_gradient(me, 10 * CLIP) + 1e16)
        me.model = (me.model + average(me)) / 2 - 0.1 * (noisy - 1e16)
        me.message = me.model
        return False


class RowsTenTimes(LocalDP):
    """Rows perturbed for a tenth of their bound."""

    def _within_bound(self, features, agent):
        return super()._within_bound(features, agent) * 10


@pytest.mark.parametrize("mechanism", NOISES)
@pytest.mark.parametrize("protocol", [TenTimes, TenTimesWithOffset, TenTimesWithLargerOffset])
def test_what_moves_more_than_charged_is_found_whatever_the_mechanism_and_the_size_of_values(protocol, mechanism):
    found = verdict(protocol, mechanism)
    assert found.status == "failed"
    assert "more than the sensitivity" in found.details or "rounding hides" in found.details


@pytest.mark.parametrize("mechanism", NOISES)
def test_rows_perturbed_for_less_than_they_move_are_found_under_every_mechanism(mechanism):
    honest = verdict(LocalDP, mechanism, privacy={"updates": 1, "clip": 1.0})
    assert honest.status == "passed", honest.text
    found = verdict(RowsTenTimes, mechanism, privacy={"updates": 1, "clip": 1.0})
    assert "more than the sensitivity" in found.details


# Exempt is who is charged


class RawBehindADraw(Base):
    """Draws for an unbounded sensitivity, sends none of it, and then the raw models as public."""

    decides = True
    asks_for_budget = True

    def step(self, me):
        if me.updates >= UPDATES or not len(me.data):
            return me.fall_silent()
        model, exact = me.model, gradients(me.data.features, me.data.labels, me.model)
        clipped = clip_rows(exact, CLIP, norm=self.parameters.privacy.norm).mean(axis=0)
        if me.updates == 0:
            release = self.step_noise.release(me)
            model -= 0.1 * release.perturb(clipped, rng=me.stream("noise"))
            return me.send("model", model, release)
        unbounded = self.step_noise.release(me, verified_sensitivity=np.inf, reason="nothing bounds it")
        unbounded.perturb(model, rng=me.stream("noise"))
        model -= 0.1 * clipped
        return me.send("model", model, me.public("raw models"))


class RawOnceOnly(Base):
    """One agent sends raw models, and says so."""

    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        exact = mean_gradient(me, CLIP)
        if me.agent == 2:
            me.model = me.model - 0.1 * exact
        else:
            me.model = (me.model + average(me)) / 2 - 0.1 * perturbed(me, exact)
        me.message = me.model
        return False


def test_a_draw_for_an_unbounded_sensitivity_exempts_nobody():
    found = verdict(RawBehindADraw)
    assert found.status == "failed"


def test_an_agent_that_is_exempt_is_not_verified():
    found = verdict(RawOnceOnly)
    assert found.status == "passed", found.text
    assert found.unlooked == {2: "it sends something without noise"}
    setting = small_setting(agents=8, time=2.0, empty=False)
    parameters = protocol_parameters(Base, {"privacy": {"mechanism": "gaussian", "multiplier": 3.0, "clip": CLIP}})
    world = World(setting, Base, parameters, unlooked=found.unlooked)
    EventEngine().run(world)
    verified = world.ledger.verified(1e-5)
    assert np.isinf(verified[2])
    assert np.isfinite(np.delete(verified, 2)).all()
    assert any("without noise" in reason for reason in privacy_statement(world, "replay")[0]["because"])


# Parts that neighbouring data sets share


class SharesEverything(TenTimes):
    shared_parts = ("features", "labels")


class SharesLabels(Base):
    """Labels are public by declaration; their mean is sent."""

    shared_parts = ("labels",)


class SharesFeatures(TenTimes):
    """Features are public by declaration, so that only labels change; the clipping is ten times too large."""

    shared_parts = ("features",)


def test_neighbouring_data_sets_that_share_everything_are_refused():
    found = verdict(SharesEverything)
    assert found.status == "failed"
    assert "nothing is protected" in found.details


def test_shared_parts_stand_among_what_is_assumed_public():
    assert verdict(SharesLabels).status == "passed"
    parameters = protocol_parameters(SharesLabels, {"privacy": {"mechanism": "gaussian", "multiplier": 3.0, "clip": 1}})
    world = World(small_setting(empty=False), SharesLabels, parameters)
    EventEngine().run(world)
    statement = privacy_statement(world, "replay")[0]
    assert "labels of all records, which neighbouring data sets share" in statement["assumed_public"]
    assert statement["adjacency"] == ["replace-one, labels in common"]


def test_labels_alone_are_changed_where_features_are_shared():
    assert verdict(SharesFeatures).status == "failed"


def test_a_replay_in_which_no_data_changed_has_not_checked_anything(monkeypatch):
    monkeypatch.setattr("hushnet.simulator.contract.replay.differing", lambda *of: frozenset())
    found = verdict(Base)
    assert found.status == "unchecked"
    assert found.unproved


# Adjacencies


class AddOrRemove(Base):
    """A sum of clipped gradients, of which one record more or less moves CLIP."""

    adjacency, charged = "add-or-remove-one", CLIP

    def terms(self, me):
        return {
            "adjacency": self.adjacency,
            "sensitivity": self.charged,
            "verified_sensitivity": self.charged,
            "scale": MULTIPLIER * self.charged,
        }

    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, me.rows * mean_gradient(me, CLIP))
        me.model = (me.model + average(me)) / 2 - 0.01 * noisy
        me.message = me.model
        return False


class AddOrRemoveHalf(AddOrRemove):
    charged = CLIP / 2


class Both(AddOrRemove):
    """Names both adjacencies, and is charged for add-or-remove-one."""

    def terms(self, me):
        return {**super().terms(me), "adjacency": "add-or-remove-one" if me.updates == 0 else "replace-one"}


class CountsInRegularisation(AddOrRemove):
    """Shrinks its model by lambda_i = 1 / m, which tells m."""

    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, me.rows * mean_gradient(me, CLIP))
        me.model = (me.model + average(me)) / 2 * (1 - 0.01 * me.regularisation) - 0.01 * noisy
        me.message = me.model
        return False


class Counts(AddOrRemove):
    """Divides by m outside of the noise."""

    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, me.rows * mean_gradient(me, CLIP))
        me.model = (me.model + average(me)) / 2 - 0.1 * noisy / me.rows
        me.message = me.model
        return False


@pytest.mark.parametrize("mechanism", NOISES)
def test_sums_may_be_charged_for_one_record_more_or_less(mechanism):
    found = verdict(AddOrRemove, mechanism)
    assert found.status == "passed", found.text


@pytest.mark.parametrize("protocol", [AddOrRemoveHalf, Both, CountsInRegularisation, Counts])
@pytest.mark.parametrize("mechanism", NOISES)
def test_every_adjacency_that_is_named_is_replayed_with_counts_made_anew(protocol, mechanism):
    assert verdict(protocol, mechanism).status == "failed"


# Objective perturbation


class Objective(Base):
    """A ridge-regularised logistic model by a perturbed objective, solved by Newton's method."""

    decides = True
    asks_for_budget = True

    def terms(self, me):
        # |change of b| <= 2 CLIP; the Hessian's determinant moves by at most (p / 4) (R^2 / m) / curvature.
        m = max(len(me.data), 1)
        bound = 2 * RADIUS / m + MULTIPLIER_OBJECTIVE * (RADIUS**2 / (4 * m)) * 2
        return {
            "dimension": 0,
            "norm": mechanism_of("gamma").norm,
            "sensitivity": bound,
            "verified_sensitivity": bound,
            "scale": MULTIPLIER_OBJECTIVE,
        }

    def inverse(self, implied, drawn):
        return implied

    def jacobian(self, rows, labels, model):
        y = np.sign(labels)
        z = 1 / (1 + np.exp(np.clip(y * (rows @ model), -500, 500)))
        hessian = (rows * (z * (1 - z))[:, None]).T @ rows / len(rows) + np.eye(len(model))
        return float(np.linalg.slogdet(hessian)[1])

    def step(self, me):
        if me.updates >= 2 or not len(me.data):
            return me.fall_silent()
        rows, labels = clip_rows(me.data.features, RADIUS), me.data.labels
        release = self.step_noise.release(me)

        def implied(model):
            return -(gradients(rows, labels, model).mean(axis=0) + model)

        drawn = []

        def solve(noise):
            drawn.append(noise)
            model = np.zeros(rows.shape[1])
            for _ in range(60):
                y = np.sign(labels)
                z = 1 / (1 + np.exp(np.clip(y * (rows @ model), -500, 500)))
                hessian = (rows * (z * (1 - z))[:, None]).T @ rows / len(rows) + np.eye(len(model))
                model = model + np.linalg.solve(hessian, implied(model) - noise)
            return model

        solution = release.perturb_objective(
            solve,
            self.inverse(implied, drawn),
            size=rows.shape[1],
            rng=me.stream("noise"),
            log_jacobian=lambda model: self.jacobian(rows, labels, model),
        )
        me.model = solution
        me.send("model", solution, release)
        return None


class WithoutDeterminant(Objective):
    def jacobian(self, rows, labels, model):
        return 0.0


class HalfTheDeterminant(Objective):
    def jacobian(self, rows, labels, model):
        return super().jacobian(rows, labels, model) / 2


class RemembersTheNoise(Objective):
    """Says of every model that the noise which was drawn implies it."""

    def inverse(self, implied, drawn):
        return lambda model: drawn[0]


class MovesATenth(Objective):
    """Says of every model that the noise which implies it is next to the one that was drawn."""

    def inverse(self, implied, drawn):
        return lambda model: drawn[0] + 0.1 * (implied(model) - drawn[0])


RADIUS, MULTIPLIER_OBJECTIVE = 1.0, 3.0


def test_a_log_jacobian_has_to_be_that_of_the_implied_noise():
    assert (found := verdict(Objective, "gamma")).status == "passed", found.text
    for protocol in (WithoutDeterminant, HalfTheDeterminant):
        found = verdict(protocol, "gamma")
        assert found.status == "failed"
        assert "derived numerically" in found.details


@pytest.mark.parametrize("protocol", [RemembersTheNoise, MovesATenth])
def test_implied_noise_has_to_be_the_inverse_of_the_solution_on_neighbouring_data_too(protocol):
    found = verdict(protocol, "gamma")
    assert found.status == "failed"
    assert "has another minimiser" in found.details or "other noise" in found.details


def test_a_log_jacobian_has_no_default():
    release = Release(0, 0.0, "gamma", "l2", 1.0, "clip", 1.0, 2.0, 0.5, 0.0, 1)
    with pytest.raises(TypeError, match="log_jacobian"):
        release.perturb_objective(lambda b: b, lambda s: s, size=3, rng=np.random.default_rng(1))


# Worst cases


def with_zeros(rows, labels):
    return (rows[:, 0] == 0) & (rows[:, 2] == 0)


def on_an_axis(rows, labels):
    return (rows != 0).sum(axis=1) == 1


def without_the_last(rows, labels):
    return (rows[:, -1] == 0) & (rows[:, :-1] != 0).all(axis=1)


def doubles(rows, labels):
    _, inverse, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    return counts[inverse.reshape(-1)] > 1


def equal_labels(rows, labels):
    return np.full(len(rows), len(rows) > 1 and len(np.unique(labels)) == 1)


def alone_among_zeros(rows, labels):
    return np.full(len(rows), len(rows) > 1 and (np.abs(rows).sum(axis=1) == 0).sum() == len(rows) - 1)


class UnclippedWithZeros(Base):
    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, mean_gradient(me, CLIP, with_zeros(me.features, me.labels)))
        me.model = (me.model + average(me)) / 2 - 0.1 * noisy
        me.message = me.model
        return False


class UnclippedOnAnAxis(Base):
    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, mean_gradient(me, CLIP, on_an_axis(me.features, me.labels)))
        me.model = (me.model + average(me)) / 2 - 0.1 * noisy
        me.message = me.model
        return False


class UnclippedWithoutTheLast(Base):
    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, mean_gradient(me, CLIP, without_the_last(me.features, me.labels)))
        me.model = (me.model + average(me)) / 2 - 0.1 * noisy
        me.message = me.model
        return False


class UnclippedDoubles(Base):
    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, mean_gradient(me, CLIP, doubles(me.features, me.labels)))
        me.model = (me.model + average(me)) / 2 - 0.1 * noisy
        me.message = me.model
        return False


class UnclippedAmongEqualLabels(Base):
    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, mean_gradient(me, CLIP, equal_labels(me.features, me.labels)))
        me.model = (me.model + average(me)) / 2 - 0.1 * noisy
        me.message = me.model
        return False


class UnclippedAloneAmongZeros(Base):
    def step(me):
        if me.updates >= UPDATES or me.rows == 0:
            return True
        noisy = perturbed(me, mean_gradient(me, CLIP, alone_among_zeros(me.features, me.labels)))
        me.model = (me.model + average(me)) / 2 - 0.1 * noisy
        me.message = me.model
        return False


@pytest.mark.parametrize(
    "protocol",
    [
        UnclippedWithZeros,
        UnclippedOnAnAxis,
        UnclippedWithoutTheLast,
        UnclippedDoubles,
        UnclippedAmongEqualLabels,
        UnclippedAloneAmongZeros,
    ],
)
@pytest.mark.parametrize("mechanism", NOISES)
def test_records_with_zeros_doubles_and_equal_labels_are_tried(protocol, mechanism):
    assert verdict(protocol, mechanism).status == "failed"


# Agents that share an object


class SharedGradient(Base):
    """Agent 4 mixes in agent 5's raw gradient, so little that its own charge holds."""

    decides = True
    asks_for_budget = True

    receiver, giver = 4, 5

    def prepare(self):
        super().prepare()
        self.known = {}

    def step(self, me):
        if me.updates >= UPDATES or not len(me.data):
            return me.fall_silent()
        model, release = me.model, self.step_noise.release(me)
        exact = gradients(me.data.features, me.data.labels, model)
        self.known[me.agent] = exact = clip_rows(exact, CLIP, norm=self.parameters.privacy.norm).mean(axis=0)
        if me.agent == self.receiver:
            exact = (exact + self.known.get(self.giver, 0.0)) / 4
        model -= 0.1 * release.perturb(exact, rng=me.stream("noise"))
        return me.send("model", model, release)


class SharedBackwards(SharedGradient):
    receiver, giver = 3, 1


@pytest.mark.parametrize("protocol", [SharedGradient, SharedBackwards])
@pytest.mark.parametrize("agents", [8, 20])
def test_data_of_another_agent_are_found_though_the_own_charge_holds(protocol, agents):
    found = verdict(protocol, agents=agents)
    assert found.status == "failed"
    assert "other agents' data" in found.details


def test_any_two_of_the_agents_that_are_changed_in_groups_are_kept_apart():
    from hushnet.simulator.contract.neighbours import groups

    for count in (2, 3, 6, 7, 20):
        found = groups(list(range(count)), most=6, seed=0)
        for one in range(count):
            for other in set(range(count)) - {one}:
                assert any(one in group and other not in group for group in found)
    assert len(groups(list(range(1000)), most=6, seed=0)) == 6
    assert groups([3], most=6, seed=0) == []


# Samples that do not follow from what their own steps draw


class Sampled(Base):
    """Two rows of an agent, drawn anew in every step."""

    decides = True
    asks_for_budget = True

    def step(self, me):
        if me.updates >= UPDATES or len(me.data) < 3:
            return me.fall_silent()
        rows, model, count = self.rows(me), me.model, len(me.data)
        sensitivity = CLIP  # of the mean over two rows, one of which is another
        release = self.step_noise.release(
            me,
            sampling=2 / count,
            sensitivity=sensitivity,
            verified_sensitivity=sensitivity,
            scale=MULTIPLIER * sensitivity,
        )
        found = gradients(me.data.features[rows], me.data.labels[rows], model)
        exact = clip_rows(found, CLIP, norm=self.parameters.privacy.norm).mean(axis=0)
        model -= 0.1 * release.perturb(exact, rng=me.stream("noise"))
        return me.send("model", model, release)

    def rows(self, me):
        return me.stream("sampling").choice(len(me.data), 2, replace=False)


class SampledInTurn(Sampled):
    def rows(self, me):
        return (2 * me.updates + np.arange(2)) % len(me.data)


class SampledByATickThatAllKnow(Sampled):
    def rows(self, me):
        return np.random.default_rng([me.agent, me.tick]).choice(len(me.data), 2, replace=False)


class SampledByEpochs(Sampled):
    def prepare(self):
        super().prepare()
        self.left = {}

    def rows(self, me):
        if len(self.left.get(me.agent, ())) < 2:
            self.left[me.agent] = me.stream("sampling").permutation(len(me.data)).tolist()
        return [self.left[me.agent].pop() for _ in range(2)]


@pytest.mark.parametrize("mechanism", NOISES)
def test_samples_that_are_drawn_anew_pass(mechanism):
    found = verdict(Sampled, mechanism)
    assert found.status == "passed", found.text


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (SampledInTurn, "do not depend on what their steps draw"),
        (SampledByATickThatAllKnow, "do not depend on what their steps draw"),
        (SampledByEpochs, "depends on what another step has drawn"),
    ],
)
@pytest.mark.parametrize("mechanism", NOISES)
def test_samples_have_to_follow_from_what_their_own_steps_draw(protocol, sentence, mechanism):
    found = verdict(protocol, mechanism)
    assert found.status == "failed", found.text
    assert sentence in found.details or "more often than charged" in found.details
