"""Lower bounds on epsilon from counted trials, and what many of them may be wrong about together.

A test is any function of what an observer sees. On data D it says "D" with probability P(S), on D' with probability
Q(S); (epsilon, delta) asks for P(S) <= e^epsilon Q(S) + delta. Counts bound both probabilities, each by an exact
interval of Clopper and Pearson (1934), so that

    epsilon >= log((P_low - delta) / Q_high)

holds with the confidence of the two together. The statistic is the log-likelihood ratio, and S is that it exceeds a
threshold. Threshold and side are chosen on trials that are not counted.

Where every release is Gaussian and nothing is sampled, all tests of two data sets lie above one curve, that of N(0, 1)
against N(mu, 1), and one point of it bounds mu, and with it epsilon at every delta (Nasr, Hayes, Steinke, Balle,
Tramer, Jagielski, Carlini, Terzis 2023, "Tight auditing of differentially private machine learning", section 4). We
take the point where the likelihoods are equal, which is known in advance, and there the sum of both errors, which no
test gets below 2 Phi(-mu / 2):

    mu >= -2 Phi^-1(errors_high),

errors_high being the Clopper-Pearson limit of the mean of the two error rates. Their sum of counts is not binomial, but
its lower tail is at most that of the binomial with the same mean (Hoeffding 1956, theorem 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import beta

from ...protocols.privacy.composition import gaussian_epsilon

Array = NDArray[np.float64]
Bound = Literal["clopper-pearson", "gdp"]

CHOOSING = 0.2
"""Share of the trials on which a threshold is chosen."""
CANDIDATES = 40
"""Thresholds that are tried."""
CHOOSING_LEVEL = 0.1
"""The level at which statistics are compared; it guides the choice, and does not matter to its validity."""
SMALLEST_LEVEL = 1e-300
DIGITS = 9


@dataclass(frozen=True)
class Counts:
    """Counts of trials in which a test decided for the first of two data sets; S is the event that it does."""

    hits: int
    """Trials of the first data set in S."""
    trials: int
    """Trials of the first data set, >= 1."""
    false_hits: int
    """Trials of the second data set in S."""
    false_trials: int
    """Trials of the second data set, >= 1."""


@dataclass(frozen=True)
class Test:
    """A threshold on log-likelihood ratios, and how often they exceeded it in the trials that count."""

    __test__ = False  # not one of pytest's

    threshold: float
    swapped: bool
    """Whether S speaks for D' instead of D."""
    counts: Counts
    bound: Bound
    """How epsilon is bounded."""

    def epsilon(self, delta: float, level: float) -> float:
        """Lower bound on epsilon at delta; it is wrong with a probability of at most ``level``."""
        if self.bound == "gdp":
            return gaussian_epsilon(gdp_bound(self.counts, level), delta)
        return float(epsilon_bound(self.counts, delta, level))

    def p_value(self, epsilon: float, delta: float) -> float:
        """The smallest level, to 1 %, at which the bound exceeds ``epsilon``; 1 if none does."""
        if math.isinf(epsilon) or not self.epsilon(delta, 0.999) > epsilon:
            return 1.0
        low, high = math.log(SMALLEST_LEVEL), math.log(0.999)
        while high - low > 0.01:
            middle = (low + high) / 2
            low, high = (low, middle) if self.epsilon(delta, math.exp(middle)) > epsilon else (middle, high)
        return math.exp(high)


def low_limit(hits: ArrayLike, trials: ArrayLike, level: float) -> Array:
    """One-sided Clopper-Pearson limit, which is above the probability in a share of at most ``level`` of all cases."""
    hits, trials = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    return np.where(hits <= 0, 0.0, beta.ppf(level, np.maximum(hits, 1e-9), trials - hits + 1))


def high_limit(hits: ArrayLike, trials: ArrayLike, level: float) -> Array:
    """One-sided Clopper-Pearson limit, which is below the probability in a share of at most ``level`` of all cases."""
    hits, trials = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    return np.where(hits >= trials, 1.0, beta.isf(level, hits + 1, np.maximum(trials - hits, 1e-9)))


def epsilon_bound(counts: Counts, delta: float, level: float) -> Array:
    """Lower bound on epsilon at ``delta``, from two Clopper-Pearson limits at half the level each; 0 for no bound.

    The fields of ``counts`` may be arrays.
    """
    low = low_limit(counts.hits, counts.trials, level / 2) - delta
    high = high_limit(counts.false_hits, counts.false_trials, level / 2)
    return np.where(low > high, np.log(np.maximum(low, 1e-300) / high), 0.0)


def gdp_bound(counts: Counts, level: float) -> float:
    """Lower bound on mu, >= 0, from as many trials on either data set."""
    if counts.trials != counts.false_trials:
        raise ValueError("both data sets need the same number of trials, as the errors are counted together.")
    errors = counts.trials - counts.hits + counts.false_hits
    return max(0.0, -2 * float(ndtri(high_limit(errors, 2 * counts.trials, level))))


def choose_test(first: Array, second: Array, *, delta: float, bound: Bound) -> Test:
    """Choose threshold and side on some trials, and count the others; Gaussian curves need no choice.

    There are (n,) log-likelihood ratios, log p(seen | D) - log p(seen | D'), of trials on D and on D', in the order in
    which they were made; the first fifth of each chooses. They are compared to nine digits: the last bits of a sum of
    floating-point numbers tell its terms apart (Mironov 2012), which simulation noise does not hide and which is not
    what is audited.
    """
    first, second = (_rounded(values) for values in (first, second))
    if bound != "clopper-pearson":
        return Test(0.0, False, counts_of(first, second, 0.0, swapped=False), bound)
    few = max(1, round(CHOOSING * len(first)))
    if min(len(first), len(second)) <= few:
        raise ValueError("a threshold is chosen on other trials than are counted, so two of each are needed.")
    choosing, counted = (first[:few], second[:few]), (first[few:], second[few:])
    pooled = np.concatenate(choosing)
    thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, CANDIDATES), method="nearest"))
    thresholds = (thresholds[1:] + thresholds[:-1]) / 2  # between values that were seen: rounding decides nothing
    thresholds = thresholds[np.isfinite(thresholds)] if np.isfinite(thresholds).any() else np.zeros(1)
    best, threshold, swapped = -1.0, 0.0, False
    for side in (False, True):
        # At the size of the sample that chooses, so that few lucky trials choose nothing.
        values = epsilon_bound(counts_of(*choosing, thresholds, swapped=side), delta, CHOOSING_LEVEL)
        place = int(np.argmax(values))
        if values[place] > best:
            best, threshold, swapped = float(values[place]), float(thresholds[place]), side
    return Test(threshold, swapped, counts_of(*counted, threshold, swapped=swapped), bound)


def counts_of(first: Array, second: Array, threshold: ArrayLike, *, swapped: bool) -> Counts:
    """Count log-likelihood ratios in favour of D or, swapped, of D'; arrays for an array of thresholds."""
    if swapped:
        return Counts(_below(second, threshold), len(second), _below(first, threshold), len(first))
    return Counts(
        _below(-first, -np.asarray(threshold)), len(first), _below(-second, -np.asarray(threshold)), len(second)
    )


def _below(values: Array, threshold: ArrayLike) -> Any:
    counts = np.searchsorted(np.sort(values), threshold, side="left")
    return int(counts) if np.ndim(counts) == 0 else counts


def _rounded(values: Array) -> Array:
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    unit = 10.0 ** (math.ceil(math.log10(largest)) - DIGITS) if largest > 0 else 1.0
    return np.round(values / unit) * unit
