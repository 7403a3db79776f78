"""`hushnet run` finds noise and samples other than releases say; by chance it refuses one proof in 10^6 at most.

Mistakes are planted in what mechanisms draw, so that the contract sees them as it sees those of a protocol's own
mechanism. Seeds are those of `verdict_of`.
"""

from __future__ import annotations

import copy
from itertools import product

import numpy as np
import pytest
from hushnet.simulator.contract.redrawn import alike
from hushnet.simulator.contract.samples_seen import BETS, Participation, Witness, capital, sampling_doubt
from hushnet.simulator.contract.transcript import Recording

from .mutations import planted
from .mutations.plans import planned_noise
from .sampled_gossip import MECHANISMS, AnyNoise, Methods, Texts, by_turns, drawing, fields_of, verdict_of


def kept(change):
    """A mistake that remembers: ``change(fresh, before)`` of noise over its scale, the newest last."""

    def plant():
        before = []

        def draw(usual, size, scale, rng):
            fresh = usual(size, scale) / scale
            now = change(fresh, before)
            before.append(fresh)
            return scale * now

        return draw

    return plant


def plain(change):
    """A mistake that does not: ``change(usual, size, scale, rng)``."""
    return lambda: change


def last(before, shape, default):
    same = [one for one in before[-20:] if one.shape == shape]
    return same[-1] if same else default


def uniform(usual, size, scale, rng):
    return rng.uniform(-1, 1, size) * np.std(usual(4000 if np.ndim(size) == 0 else (4000, *np.atleast_1d(size)), scale))


def last_at_a_tenth(usual, size, scale, rng):
    noise = usual(size, scale)
    noise[..., -1] /= 10
    return noise


def correlated(usual, size, scale, rng):
    noise = usual(size, scale)
    noise[..., 1:] = 0.95 * noise[..., :1] + 0.3 * noise[..., 1:]
    return noise


MISTAKES = {
    "the same in two steps in a row": (
        kept(lambda fresh, before: last(before, fresh.shape, fresh) if len(before) % 2 else fresh),
        "repeated numbers",
    ),
    "the same once only": (
        kept(lambda fresh, before: before[4] if len(before) == 9 else fresh),
        "repeated numbers: 3 of them, such as the noise of agent",
    ),
    "the same, its coordinates in another order": (
        kept(lambda fresh, before: np.roll(last(before, fresh.shape, fresh), 1) if len(before) % 2 else fresh),
        "repeated numbers",
    ),
    "the same in every run": (
        kept(lambda fresh, before: np.random.default_rng(len(before) % 40).laplace(size=fresh.shape)),
        "noise is not what",
    ),
    "a fifth less": (plain(lambda usual, size, scale, rng: usual(size, 0.8 * scale)), "scale of|law of"),
    "none in every other draw": (
        kept(lambda fresh, before: fresh if len(before) % 2 else 0.0 * fresh),
        "numbers without noise",
    ),
    "of another law": (plain(uniform), "law of|coordinate|scale of"),
    "a tenth for the last coordinate": (plain(last_at_a_tenth), "coordinate 2|scale of|law of"),
    "correlated coordinates": (plain(correlated), "independence between coordinates|scale of|law of"),
    "never negative": (plain(lambda usual, size, scale, rng: np.abs(usual(size, scale))), "signs|independence"),
    "of single precision": (
        plain(lambda usual, size, scale, rng: usual(size, scale).astype(np.float32).astype(float)),
        "precision|repeated",
    ),
    "less in later draws": (
        kept(lambda fresh, before: fresh / 3 if len(before) % 8 > 3 else fresh),
        "scale of|law of",
    ),
}


@pytest.mark.parametrize(("name", "mechanism"), by_turns(MISTAKES))
def test_noise_with_a_mistake_is_refused(name, mechanism):
    plant, sentence = MISTAKES[name]
    with drawing(plant()):
        verdict = verdict_of(Texts, fields_of(mechanism))
    assert verdict.status == "failed", verdict.text
    assert "noise is not what releases say" in verdict.details
    assert any(word in verdict.details for word in sentence.split("|")), verdict.details


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_of_planned_steps_with_a_mistake_is_refused_by_what_they_are_one_by_one(mechanism):
    with planted(lambda plant: planned_noise(plant, lambda _mechanism, scales: scales / 2)):
        verdict = verdict_of(Texts, fields_of(mechanism), engine="auto")
    assert verdict.status == "failed"
    assert "steps that are planned differ from steps one by one in model" in verdict.details


class Rewound(Methods):
    """Puts its generator back to where it was in its first step."""

    states: dict[int, object] = {}  # noqa: RUF012

    def noisy(self, me, release, exact):
        bits = me.stream("noise").bit_generator
        bits.state = self.states.setdefault(me.agent, bits.state)
        return super().noisy(me, release, exact)


class Cloned(Methods):
    """Draws its noise from a copy of its stream, and then from the stream."""

    def noisy(self, me, release, exact):
        super().noisy(me, release, exact)
        return release.perturb(exact, rng=copy.deepcopy(me.stream("noise")))


@pytest.mark.parametrize(("protocol", "mechanism"), by_turns([Rewound, Cloned]))
def test_a_stream_that_is_rewound_or_cloned_is_never_verified(protocol, mechanism):
    verdict = verdict_of(protocol, fields_of(mechanism))
    assert verdict.unproved
    assert "a step's random stream is for drawing only: its state cannot be read, set, copied" in verdict.text


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_of_one_agent_at_a_tenth_is_refused_by_name(mechanism):
    whose = []

    class Less(Methods):
        def noisy(self, me, release, exact):
            whose.append(me.agent)
            return super().noisy(me, release, exact)

    def change(usual, size, scale, rng):
        return usual(size, scale) / (10 if whose[-1] == 3 else 1)

    with drawing(change):
        verdict = verdict_of(Less, fields_of(mechanism))
    assert verdict.status == "failed"
    assert f"scale of {mechanism} noise of agent 3: 0." in verdict.details


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", [Texts, Methods])
def test_noise_as_it_should_be_passes_and_the_statement_says_how_much_was_seen(protocol, mechanism):
    verdict = verdict_of(protocol, fields_of(mechanism))
    assert verdict.status == "passed"
    assert " numbers of noise" in verdict.details
    assert "too few" not in verdict.details


UNIFORM, POISSON = {"sampling": "uniform", "batch": 1}, {"sampling": "poisson", "batch": 1}


def by_methods(choose):
    """A protocol by methods that takes these rows: ``choose(me, stream, count)``."""

    class Chooses(Methods):
        def rows(self, me):
            kept = self.__dict__.setdefault("kept", {})
            return choose(kept, me, me.stream("sampling"), len(me.data))

    return Chooses


def one_batch(kept, me, stream, count):
    return kept.setdefault(me.agent, stream.choice(count, 1, replace=False))


def every_other_step(kept, me, stream, count):
    fresh = stream.choice(count, 1, replace=False)
    if me.updates % 2 == 0:
        kept[me.agent] = fresh
    return kept[me.agent]


def biased(kept, me, stream, count):
    """The first row four times out of five, and otherwise any."""
    return np.array([0]) if stream.random() < 0.8 else stream.choice(count, 1)


LIARS = {
    "the first row always": lambda kept, me, stream, count: np.array([0]),
    "one batch for all steps": one_batch,
    "a sample for two steps": every_other_step,
    "twice the size": lambda kept, me, stream, count: stream.choice(count, min(2, count), replace=False),
    "fixed size, and the first row more often": biased,
}


@pytest.mark.parametrize(("name", "mechanism"), by_turns(LIARS))
def test_samples_other_than_charged_are_refused(name, mechanism):
    verdict = verdict_of(by_methods(LIARS[name]), fields_of(mechanism, **UNIFORM))
    assert verdict.status == "failed", verdict.text
    assert "rows take part in releases over samples more often than charged: the" in verdict.details
    assert "each charged for sampling" in verdict.details


class Share(AnyNoise):
    """Charges for another share of the rows than is drawn."""

    least, most = 0.0, 1.0

    def share(self, count):
        return min(self.most, max(self.least, super().share(count)))


def declaring(protocol, noise):
    class Declares(protocol):
        def prepare(self):
            given = self.parameters
            self.step_noise = noise(
                given.privacy, self.problem.task, sampling=given.sampling, batch=given.batch, radius=None
            )

    return Declares


class Twentieth(Share):
    most = 0.05


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_shuffle_charged_as_samples_is_refused_where_releases_are_many(mechanism):
    rng = np.random.default_rng(5)
    runs = [
        [Participation(f"agent {a}", "first row", 0, np.full(20, 0.5), _of_pairs(rng)) for a in range(6)]
        for _ in range(12)
    ]
    doubted = sampling_doubt([Witness(Recording(), [run]) for run in runs], 1e-6)
    assert "absent long enough to be due" in doubted


def _of_pairs(rng):
    """(20,) flags: one of each two, by a shuffle."""
    first = rng.random(10) < 0.5
    return np.stack([first, ~first], axis=1).ravel()


def _outcomes(drawn):
    """Which of three rows take part in a release, with the probability of each possibility."""
    flags = [np.array(one) for one in product((False, True), repeat=3)]
    if drawn == "one by one":
        return [(one, float(np.prod(np.where(one, 0.4, 0.6)))) for one in flags], 0.4
    size = int(drawn[0])
    fitting = [one for one in flags if one.sum() == size]
    return [(one, 1 / len(fitting)) for one in fitting], size / 3


@pytest.mark.parametrize("drawn", ["one by one", "1 of 3", "2 of 3"])
def test_no_bet_on_samples_as_charged_gains_on_average_though_runs_show_several_rows_of_a_release(drawn):
    outcomes, share = _outcomes(drawn)
    seen_in_runs = [(0, "first row"), (1, "row 2"), (2, "last row"), (1, "row 2")]
    on_average = {}
    for releases in product(outcomes, repeat=3):
        moved = np.array([flags for flags, _ in releases])
        runs = [[Participation("a", row, place, np.full(3, share), moved[:, place])] for place, row in seen_in_runs]
        weight = float(np.prod([probability for _, probability in releases]))
        for name, gains in capital(Witness(Recording(), runs)).items():
            on_average[name] = on_average.get(name, 0.0) + weight * np.exp(gains)
    assert max(gains.max() for gains in on_average.values()) <= 1 + 1e-9
    assert on_average["any row"].shape[0] == len(BETS)


@pytest.mark.parametrize("drawn", ["one by one", "1 of 3", "2 of 3"])
def test_two_samples_are_alike_no_more_often_than_is_reckoned_with(drawn):
    outcomes, share = _outcomes(drawn)
    assert sum(probability**2 for _, probability in outcomes) <= alike(3, share) + 1e-12


def _of_blocks(rng, draws):
    """(draws, 2) flags of two rows, both or none."""
    return np.repeat(rng.random((draws, 1)) < 0.3, 2, axis=1)


def test_rows_that_come_in_blocks_are_refused_though_each_takes_part_as_often_as_charged():
    rng, runs = np.random.default_rng(5), ([], [])
    for agent in range(8):
        flags = _of_blocks(rng, 12)
        for place, row in enumerate(("first row", "row 2")):
            runs[place].append(Participation(f"agent {agent}", row, place, np.full(12, 0.3), flags[:, place]))
    assert "as if rows came in blocks" in sampling_doubt([Witness(Recording(), list(runs))], 1e-6)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", [Texts, Methods])
def test_a_full_batch_declared_as_a_twentieth_is_refused(protocol, mechanism):
    verdict = verdict_of(declaring(protocol, Twentieth), fields_of(mechanism, sampling="uniform", batch=6))
    assert verdict.status == "failed", verdict.text
    assert "each charged for sampling 0.05" in verdict.details


@pytest.mark.parametrize(("sampling", "mechanism"), by_turns([UNIFORM, POISSON, {"sampling": "uniform", "batch": 2}]))
@pytest.mark.parametrize("protocol", [Texts, Methods])
def test_samples_as_charged_pass_and_the_statement_says_how_often_rows_took_part(protocol, sampling, mechanism):
    verdict = verdict_of(protocol, fields_of(mechanism, **sampling))
    assert verdict.status == "passed", verdict.text
    assert "a changed row in " in verdict.details


def test_a_loss_that_no_row_moves_is_said_not_to_be_judged():
    class Constant(Methods):
        def noisy(self, me, release, exact):
            return super().noisy(me, release, 0 * exact)

    verdict = verdict_of(Constant, fields_of("gaussian", **UNIFORM))
    assert verdict.status == "passed"
    assert "not judged: samples" in verdict.details
    assert any(part.startswith("samples") for part in verdict.not_looked_at)
