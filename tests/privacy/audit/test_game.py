"""Tier C: likelihood ratios of transcripts and of the mechanism alone, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hushnet.protocols.privacy.mechanisms import Release, mechanism_of
from hushnet.simulator.audit.audit import SEEDS
from hushnet.simulator.audit.game import Shifts, alone_ratios, constant_shifts, log_likelihood, trial
from hushnet.simulator.audit.pairs import attacked_domain, bare, pairs
from hushnet.simulator.audit.worlds import subjects
from hushnet.simulator.contract.draws import Draw
from hushnet.simulator.experiment import Experiment
from hushnet.simulator.language.loading import load
from scipy.special import expit


def subject_of(key, *overrides):
    found = subjects(Experiment(load("audit-rows", overrides=overrides)))
    return next(subject for subject in found if subject.key == key)


def first_pair(subject, agent):
    return next(pairs(subject.task, agent, attacked_domain(*subject.record(subject.task))))


def release_of(mechanism, scale, sampling=1.0):
    norm = mechanism_of(mechanism).norm
    return Release(0, 0.0, mechanism, norm, 1.0, "clip", 1.0, scale, 1.0, 0.0, 1, sampling=sampling)


def test_a_transcript_is_as_likely_as_its_noise():
    """A Gaussian ratio is sum (|n - shift|^2 - |n|^2) / (2 s^2): two ways to the same number."""
    subject = subject_of("cd-gaussian")
    pair = first_pair(subject, 0)
    shifts = constant_shifts(subject, pair, SEEDS)
    assert shifts is not None
    assert len(shifts) == 5
    first = trial(subject, pair, 3, False)
    mu2 = sum(float(np.square(one.on_neighbour / one.release.scale).sum()) for one in shifts)
    assert first.verified == pytest.approx(8.0, rel=1e-6)
    # On D the ratio is normal with mean mu^2 / 2 and deviation mu; farther away than 6 of them has probability 2e-9.
    assert abs(first.ratio - mu2 / 2) < 6 * mu2**0.5
    assert trial(subject, pair, 3, False) == first
    assert abs(trial(subject, pair, 3, True).ratio + mu2 / 2) < 6 * mu2**0.5


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "gamma"])
@pytest.mark.parametrize("sampling", [1.0, 0.3])
def test_ratios_of_the_mechanism_alone_are_likelihood_ratios(mechanism, sampling):
    """The mean of p(seen | D) / p(seen | D') over D' is 1; 6 standard errors away has probability 2e-9. Seeded."""
    release, shift = release_of(mechanism, 2.0, sampling), np.array([0.6, -0.3, 0.0])
    shifts = [Shifts(release, np.zeros(3) if sampling == 1 else shift, -shift)] * 3
    first, second = alone_ratios(shifts, 40_000, rng=np.random.default_rng(6))
    for weights in (np.exp(second), np.exp(-first)):
        assert abs(weights.mean() - 1) < 6 * weights.std() / len(weights) ** 0.5
    assert first.mean() > 0 > second.mean()


def test_ratios_of_gaussian_noise_have_their_closed_law():
    release, shift = release_of("gaussian", 2.0), np.array([0.6, -0.3, 0.0])
    first, second = alone_ratios([Shifts(release, np.zeros(3), shift)] * 4, 50_000, rng=np.random.default_rng(6))
    mu = (4 * 0.45 / 4) ** 0.5
    for values, mean in ((first, mu * mu / 2), (second, -mu * mu / 2)):
        assert values.mean() == pytest.approx(mean, abs=6 * mu / 50_000**0.5)
        assert values.std() == pytest.approx(mu, rel=0.03)


def test_the_density_of_a_perturbed_objective_has_the_determinant():
    """Density of the minimiser of log(1 + e^-s) + s^2/2 + n s in one dimension: it integrates to 1 over s."""
    release, places = release_of("gamma", 0.7), np.linspace(-12, 12, 20_001)
    implied = expit(-places) - places
    jacobian = np.log(1 + expit(places) * expit(-places))
    density = [
        np.exp(log_likelihood(Draw(release, np.array([noise]), np.array([place]), log_jacobian)))
        for place, noise, log_jacobian in zip(places, implied, jacobian, strict=True)
    ]
    assert np.trapezoid(density, places) == pytest.approx(1.0, abs=1e-4)


def test_sampled_rows_give_a_mixture_whose_changes_do_not_depend_on_other_rows():
    subject = subject_of("averaging-sampled")
    pair = bare(first_pair(subject, 1))
    shifts = constant_shifts(subject, pair, SEEDS)
    assert shifts is not None
    for one in shifts:
        assert one.release.sampling == 0.25
        assert np.linalg.norm(one.on_data - one.on_neighbour) == pytest.approx(one.release.verified_sensitivity)


def test_without_constant_changes_the_mechanism_alone_is_not_played_with():
    subject = subject_of("cd-gaussian", "protocols.cd-gaussian.privacy.clip=0.7", "protocols.cd-gaussian.mu=5.0")
    pair = first_pair(subject, 0)
    assert constant_shifts(subject, pair, SEEDS) is None
