"""Hu et al. (2019): figures 1 to 3, theorem 3."""

from __future__ import annotations

import math

import numpy as np

from ...agents.errors import InputError
from ...protocols.algorithms.feature_noise import range_root
from .claims import Claim, Finding, Paper, PaperFigure, Promise, Statement, measured
from .comparisons import ahead, promises
from .runs import Runs, Series

EPOCHS = 10
"""What `a few epochs` means here."""

TOLERANCE = 1e-6
"""Relative distance from a subspace above which a vector is not in it."""


def sgd_epoch(runs: Runs) -> int:
    """Time units (exchanges) in an epoch of the minibatch baseline, of which the centre holds all rows."""
    rows = int(runs.collection.agents["samples"].max())
    return math.ceil(rows / runs.manifests("sgd")[0]["scenario"]["protocols"]["sgd"]["batch"])


def after_epochs(runs: Runs, count: int) -> tuple[Series, Series]:
    """Test losses of ADMM and of the baseline after so many epochs of each."""
    admm = runs.at(count, "admm", "test_loss", "time")
    return admm, runs.at(count * sgd_epoch(runs), "sgd", "test_loss", "time")


def epochs_of_sgd(runs: Runs) -> int:
    """Whole epochs that the baseline ran, at least one."""
    return max(1, int(runs.common_end(["sgd"], "test_loss", "time")) // sgd_epoch(runs))


def slower_but_as_good(runs: Runs) -> Finding:
    """On few features, ADMM needs more epochs than the baseline and ends as well."""
    epochs = epochs_of_sgd(runs)
    admm, sgd = after_epochs(runs, epochs)
    end = runs.final("admm", "test_loss") - runs.final("sgd", "test_loss")
    return Finding(
        (
            measured(f"test loss of ADMM above SGD after {epochs} epochs of each", admm - sgd, above=0),
            measured("test loss of ADMM minus SGD, at the end", end, near=(0.0, 0.005)),
        ),
        f"An epoch of the baseline is {sgd_epoch(runs)} exchanges, one of ADMM a single one.",
    )


def few_epochs(runs: Runs) -> Finding:
    """The objective is near its optimum after a few epochs."""
    gap = runs.at(EPOCHS, "admm", "gap", "time")
    optimum = runs.final("admm", "objective", "value") - runs.final("admm", "gap")
    return Finding((measured(f"objective's excess over the optimum after {EPOCHS} epochs", gap / optimum, below=0.05),))


def faster_with_many_features(runs: Runs) -> Finding:
    """On many features, ADMM is ahead of the baseline after the same number of epochs."""
    epochs = epochs_of_sgd(runs)
    admm, sgd = after_epochs(runs, epochs)
    settled = runs.at(EPOCHS, "admm", "test_loss", "time") / runs.final("admm", "test_loss")
    gaps = [
        runs.at(place, key, "objective", "time", statistic="gap").mean()
        for key, place in (("admm", epochs), ("sgd", epochs * sgd_epoch(runs)))
    ]
    return Finding(
        (
            measured(f"test loss of ADMM after {EPOCHS} epochs / at the end", settled, below=1.1),
            measured(f"test loss of SGD above ADMM after {epochs} epochs of each", sgd - admm, above=0),
        ),
        f"On the stand-in, SGD that is stopped early predicts well. What is minimised is then {gaps[0]:.3g} above its "
        f"minimum with ADMM and {gaps[1]:.3g} with SGD.",
    )


def noise_levels(runs: Runs) -> list[str]:
    """Keys of the runs with the printed noise, from the lowest level to the highest."""
    protocols = runs.collection.manifests[0]["scenario"]["protocols"]
    scales = {key: entry["noise"]["scale"] for key, entry in protocols.items() if entry.get("noise")}
    return sorted(scales, key=scales.__getitem__)


def moderate_noise(runs: Runs) -> Finding:
    """Moderate noise still converges; more noise ends worse."""
    low, high = noise_levels(runs)[0], noise_levels(runs)[-1]
    return Finding(
        (
            measured(f"test loss of {low} above no noise", ahead(runs, low, "admm", "test_loss"), below=0.05),
            measured(f"test loss of {high} above {low}", ahead(runs, high, low, "test_loss"), above=0),
        )
    )


def features_help(runs: Runs) -> Finding:
    """The other parties' columns improve on the first party's own."""
    gain = ahead(runs, "own", "all", "test_loss")
    return Finding((measured("test loss of the first party alone above all columns", gain, above=0),))


def noise_and_use(runs: Runs) -> Finding:
    """Under moderate noise sharing still beats the first party alone; too much noise ruins it."""
    *moderate, _, strong = noise_levels(runs)
    numbers = [
        measured(f"test loss of the first party alone above {key}", ahead(runs, "own", key, "test_loss"), above=0)
        for key in moderate
    ]
    ruined = ahead(runs, strong, "own", "test_loss")
    return Finding((*numbers, measured(f"test loss of {strong} above the first party alone", ruined, above=0)))


def figure_3_promises(runs: Runs) -> Finding:
    """Claimed and verified epsilon under the printed noise, where theorem 3 claims one (epsilon <= 1 a round)."""
    keys = [key for key in noise_levels(runs) if np.isfinite(runs.final(key, "epsilon_claimed", "worst").max())]
    if not keys:
        raise InputError("theorem 3 claims nothing at these levels of noise")
    why = (
        "See theorem 3 below: no noise within the range of D protects it. Epsilons are those of the worst party; about "
        "the centre, which holds the labels and sends what depends on them, nothing is claimed."
    )
    return promises(runs, keys, why=why, at_least=lambda _: math.inf)


def theorem_3() -> Finding:
    """Two neighbouring data sets, noise (16) at three levels, and an observer who projects."""
    draws, rng = 200, np.random.default_rng(0)
    data, neighbour = _neighbours(rng)
    root, numbers = range_root(data), []
    for scale in (1.0, 1e3, 1e6):
        scores = data @ (rng.normal(size=(data.shape[1], 1)) + scale * root @ rng.normal(size=(root.shape[1], draws)))
        seen = [float(np.mean(_distances(columns, scores) > TOLERANCE)) for columns in (data, neighbour)]
        lower = math.inf if seen[1] - seen[0] == 1 else 0.0
        name = f"verified epsilon at any delta below 1, claimed 1, sigma = {scale:g}"
        numbers.append(Promise(name, math.inf, high=1.0, at_least=lower))
    return Finding(
        tuple(numbers),
        "The printed noise D xi lies in the range of D, and so does the message D x + D xi. Counterexample: two data "
        "sets whose ranges differ in one column. An observer asks whether a message is in the range of the one or of "
        f"the other; he was right about all of {draws} messages at each level of noise, so that no delta below 1 "
        "holds. Noise in all directions on clipped messages (`privacy` of the protocol) does have a finite epsilon.",
    )


def _neighbours(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Columns with rows of norm 1, and the same with another first column, at distance 1/2."""
    data = rng.normal(size=(50, 5))
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    change = rng.normal(size=len(data))
    neighbour = data.copy()
    neighbour[:, 0] += change / (2 * np.linalg.norm(change))
    return data, neighbour


def _distances(columns: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Relative distances of vectors (one a column) from the range of the columns."""
    basis = np.linalg.qr(columns)[0]
    return np.linalg.norm(vectors - basis @ (basis.T @ vectors), axis=0) / np.linalg.norm(vectors, axis=0)


PAPER = Paper(
    name="hu2019",
    authors="Hu et al.",
    year=2019,
    title="Learning privately over distributed features: an ADMM sharing approach",
    venue="arXiv, 2019",
    remarks=(
        "The objective is the sum of log losses plus (lambda / 2) |x|^2 with lambda = 1; rho = 0.3; everything starts "
        "at zero.",
        "Step sizes and batches of the SGD baseline are ours; the paper names none.",
        "Figure 2 runs on a synthetic stand-in of gisette's shape; its scenario says how to run on gisette itself.",
    ),
    figures=(
        PaperFigure(
            "hu2019-fig1",
            "Figure 1",
            "Training objective and test loss on a9a, whose columns two parties hold.",
            "hu2019-fig1",
            quick=("seeds.run=1", "stop.time=35"),
            quick_seeds=0,
            data="a9a",
        ),
        PaperFigure(
            "hu2019-fig2",
            "Figure 2",
            "The same where features are many: a stand-in for gisette over three parties.",
            "hu2019-fig2",
            quick=("seeds.run=1", "task.rows=400", "stop.time=30"),
            quick_seeds=0,
        ),
        PaperFigure(
            "hu2019-fig3",
            "Figure 3",
            "Test loss on a9a by the level of noise.",
            "hu2019-fig3",
            quick=("seeds.run=1", "stop.time=15"),
            quick_seeds=0,
            data="a9a",
        ),
    ),
    claims=(
        Claim(
            "hu2019-fig1",
            "ADMM is slightly slower than SGD, and reaches the same test loss.",
            slower_but_as_good,
            "all of these parts",
        ),
        Claim("hu2019-fig1", "ADMM sharing converges in a few epochs.", few_epochs, "for all"),
        Claim(
            "hu2019-fig1",
            "Under moderate noise it still converges; too much noise may ruin the model.",
            moderate_noise,
            "all of these parts",
        ),
        Claim(
            "hu2019-fig2",
            "On many features ADMM settles within a few epochs and SGD is slow.",
            faster_with_many_features,
            "all of these parts",
        ),
        Claim("hu2019-fig3", "More features help the first party significantly.", features_help, "for all"),
        Claim(
            "hu2019-fig3",
            "Under moderate noise sharing improves on the local model; too much ruins it.",
            noise_and_use,
            "all of these parts",
        ),
        Claim("hu2019-fig3", "Runs have the epsilon that theorem 3 and corollary 1 claim.", figure_3_promises),
    ),
    statements=(
        Statement(
            "Theorem 3",
            "noise of deviation sqrt(2 ln(1.25 / delta)) C / epsilon, within the range of D, makes each iteration "
            "(epsilon, delta)-differentially private.",
            theorem_3,
        ),
    ),
)
