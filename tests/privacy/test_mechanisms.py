"""Releases and their noise."""

from __future__ import annotations

import math
import pickle
import re
from pathlib import Path
from typing import Any

import hushnet.protocols
import numpy as np
import pytest
from hushnet.protocols.privacy.accounting import Charge
from hushnet.protocols.privacy.budget import Privacy
from hushnet.protocols.privacy.mechanisms import Release, draw_noise, mechanism_of, noises
from pydantic import ValidationError
from scipy import stats


def noisy(mechanism: str, scale: float, *, sensitivity: float = 2.0, verified: float = 2.0) -> Release:
    norm = "l1" if mechanism == "laplace" else "l2"
    return Release(0, 1.5, mechanism, norm, sensitivity, "clip", verified, scale, 1.0, 0.0, 3)


def test_a_multiplier_is_noise_scale_over_proved_sensitivity() -> None:
    release = noisy("laplace", 6.0, sensitivity=2.0, verified=3.0)
    assert release.multiplier == 2.0
    assert release.claimed_multiplier == 3.0


def test_a_public_release_costs_nothing_and_a_plain_one_everything() -> None:
    public, plain = Release.public(1, 0.0, "constant start"), Release.plain(1, 0.0)
    assert (public.multiplier, public.claimed_multiplier, public.claimed_epsilon) == (math.inf, math.inf, 0.0)
    assert (plain.multiplier, plain.claimed_multiplier, plain.claimed_epsilon) == (0.0, 0.0, math.inf)


@pytest.mark.parametrize(
    "release",
    [
        noisy("laplace", 0.0),
        noisy("gaussian", 0.0),
        noisy("gamma", 0.0),
        Release.plain(0, 0.0),
        Release.public(0, 0.0, "start"),
    ],
)
def test_zero_noise_keeps_every_bit_and_draws_nothing(release: Release) -> None:
    rng = np.random.default_rng(7)
    before = rng.bit_generator.state
    vector = np.array([-0.0, 1e-310, 1.0, -np.inf, 3.14])
    assert release.perturb(vector, rng=rng).tobytes() == vector.tobytes()
    assert rng.bit_generator.state == before


@pytest.mark.parametrize(
    ("mechanism", "variance", "absolute", "fourth"),
    [("laplace", 2 * 0.7**2, 0.7, 24 * 0.7**4), ("gaussian", 0.7**2, 0.7 * math.sqrt(2 / math.pi), 3 * 0.7**4)],
)
def test_noise_has_the_moments_of_its_distribution(
    mechanism: str, variance: float, absolute: float, fourth: float
) -> None:
    # Seed 2018, 200,000 draws; three two-sided tests at 6 standard errors: false alarm below 1e-8 each.
    count = 200_000
    noise = draw_noise(mechanism, count, 0.7, rng=np.random.default_rng(2018))
    assert abs(noise.mean()) < 6 * math.sqrt(variance / count)
    assert abs(np.abs(noise).mean() - absolute) < 6 * math.sqrt((variance - absolute**2) / count)
    assert abs((noise**2).mean() - variance) < 6 * math.sqrt((fourth - variance**2) / count)


def test_gamma_noise_has_a_gamma_distributed_norm_and_a_uniform_direction() -> None:
    # Seed 2011, 40,000 vectors of 7 numbers; two Kolmogorov-Smirnov tests at false alarm 1e-6 each. The cosine of a
    # uniform direction with a fixed one has (1 + cosine) / 2 ~ Beta((p - 1) / 2, (p - 1) / 2).
    noise = draw_noise("gamma", (40_000, 7), 0.3, rng=np.random.default_rng(2011))
    norms = np.linalg.norm(noise, axis=1)
    assert stats.kstest(norms, stats.gamma(7, scale=0.3).cdf).pvalue > 1e-6
    towards = np.array([1.0, 2.0, -1.0, 0.5, 0.0, 3.0, -2.0])
    cosines = noise @ towards / norms / np.linalg.norm(towards)
    assert stats.kstest((1 + cosines) / 2, stats.beta(3, 3).cdf).pvalue > 1e-6


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": -1.0},
        {"scale": math.inf},
        {"scale": math.nan},
        {"sampling": 0.0},
        {"norm": "l2"},
        {"norm": None},
        {"claimed_delta": 1.0},
        {"claimed_epsilon": -0.1},
        {"sensitivity": -1.0},
        {"verified_sensitivity": math.nan},
    ],
)
def test_a_release_out_of_range_is_refused(changes: dict[str, Any]) -> None:
    fields: dict[str, Any] = {
        "agent": 0,
        "time": 0.0,
        "mechanism": "laplace",
        "norm": "l1",
        "sensitivity": 1.0,
        "sensitivity_source": "clip",
        "verified_sensitivity": 1.0,
        "scale": 1.0,
        "claimed_epsilon": 1.0,
        "claimed_delta": 0.0,
        "recipients": 1,
    }
    with pytest.raises(ValueError, match="release"):
        Release(**{**fields, **changes})


@pytest.mark.parametrize("name", ["Gaussian", "cauchy", "", "l2", None])
def test_an_unknown_mechanism_is_refused_in_one_sentence_that_names_those_there_are(name: Any) -> None:
    with pytest.raises(ValueError, match=r"there is no mechanism .* admissible: .*gaussian.*") as caught:
        Release(0, 0.0, name, None, 1.0, "clip", 1.0, 10.0, 0.1, 0.0, 1)
    assert "\n" not in str(caught.value)
    for build in (
        lambda: Charge(name, 10.0, 1.0, 10.0, 0.1, 0.0),
        lambda: Charge("gaussian", 10.0, 1.0, 10.0, 0.1, 0.0)._replace(mechanism=name),
        lambda: draw_noise(name, 3, 1.0, rng=np.random.default_rng(1)),
    ):
        with pytest.raises(ValueError, match="there is no mechanism"):
            build()


def test_a_misspelt_mechanism_is_told_which_was_meant() -> None:
    with pytest.raises(ValueError, match="did you mean 'gaussian'"):
        mechanism_of("Gaussian")
    with pytest.raises(ValidationError, match=r"did you mean 'laplace'.* admissible: gamma, gaussian, laplace"):
        Privacy(mechanism="laplac", multiplier=1.0, clip=1.0)


def test_charges_are_hashed_sorted_and_pickled_by_their_values() -> None:
    charges = [Charge(name, 2.0, 1.0, 2.0, 0.5, 0.0, dimension=p) for name in noises() for p in (0, 3)]
    assert pickle.loads(pickle.dumps(charges)) == charges == sorted(charges)
    assert {charges[0]: 1}[Charge(*charges[0])] == 1


def test_a_vector_of_another_dimension_than_declared_is_refused() -> None:
    release = Release(0, 0.0, "gamma", "l2", 1.0, "clip", 1.0, 1.0, 1.0, 0.0, 1, dimension=3)
    assert release.perturb(np.zeros((5, 3)), rng=np.random.default_rng(1)).shape == (5, 3)
    with pytest.raises(ValueError, match="dimension 3"):
        release.perturb(np.zeros(2), rng=np.random.default_rng(1))


def test_no_module_compares_the_name_of_a_mechanism() -> None:
    # A name that is compared somewhere is a place that guesses about mechanisms that it does not know.
    root = Path(hushnet.protocols.__file__).parents[1]
    compared = re.compile(r"""mechanism[\w.()\[\]]*\s*(?:[!=]=|(?:not\s+)?in\b)\s*[\["'({]""")
    files = [path for room in ("protocols", "simulator", "agents") for path in (root / room).rglob("*.py")]
    assert len(files) > 50
    assert [str(path) for path in files if compared.search(path.read_text())] == []
    assert compared.search('if release.mechanism == "public":')
    assert compared.search('charge.mechanism not in ("public", "none")')
