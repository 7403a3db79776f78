"""`hushnet run` finds noise that is not what releases say; by chance it refuses one proof in 10^6 at most.

Mistakes are planted in what mechanisms draw, so that the contract sees them as it sees those of a protocol's own
mechanism. Seeds are those of `verdict_of`.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

from .mutations import planted
from .mutations.plans import planned_noise
from .sampled_gossip import MECHANISMS, Methods, Texts, by_turns, drawing, fields_of, verdict_of


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
    for seed in (7, 8):
        verdict = verdict_of(protocol, fields_of(mechanism), seed=seed)
        assert verdict.status == "passed"
        assert " numbers of noise" in verdict.details
        assert "too few" not in verdict.details
